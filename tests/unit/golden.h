/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Golden frames: what a packet must be, byte for byte. X1 and X2 come from
 * hardware (a public capture and a public regression value); the R frames
 * were computed with two independent CRC implementations.
 *
 * X2 has no Ethernet header in its source, R5 was given by its fields.
 */
#ifndef SRN_TESTS_GOLDEN_H
#define SRN_TESTS_GOLDEN_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace golden {

using bytes = std::vector<uint8_t>;

/* Two hexadecimal digits per byte, blanks anywhere between. */
inline bytes hex(std::string_view text)
{
	bytes out;
	int high = -1;

	for (char c : text) {
		int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (v < 0)
			continue;
		if (high < 0) {
			high = v;
		} else {
			out.push_back(static_cast<uint8_t>(high << 4 | v));
			high = -1;
		}
	}
	return out;
}

struct frame {
	const char *name;
	bool ethernet;	/* begins with an Ethernet header, else with the L3 header */
	bytes data;
};

inline const frame &X1()
{
	static const frame f = {"X1 CNP", true, hex(
		"e4 1d 2d ab 2b c2 7c fe 90 64 3b 32 08 00 45 c2"
		"00 3c 71 8c 40 00 40 11 91 61 0a 00 11 01 0a 00"
		"12 01 00 00 12 b7 00 28 00 00 81 00 ff ff 40 00"
		"01 18 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
		"00 00 00 00 00 00 82 fd 00 2a")};
	return f;
}

inline const frame &X2()
{
	static const frame f = {"X2 UC SEND_ONLY", false, hex(
		"45 01 00 40 04 78 40 00 40 11 b4 d5 c0 a8 00 07"
		"c0 a8 00 07 c0 00 12 b7 00 2c 00 00 24 60 ff ff"
		"00 00 00 d3 00 cf 17 10 46 30 81 8b e2 89 35 d9"
		"0e 9a 95 50 54 01 be 88 5e 50 00 00 78 f3 53 f3")};
	return f;
}

inline const frame &R1()
{
	static const frame f = {"R1 IPv4 RC SEND_ONLY", true, hex(
		"02 00 00 00 00 02 02 00 00 00 00 01 08 00 45 02"
		"00 34 00 00 40 00 40 11 b7 63 c0 a8 01 01 c0 a8"
		"01 02 c1 32 12 b7 00 20 00 00 04 70 ff ff 00 00"
		"00 11 80 00 01 00 68 65 6c 6c 6f 00 00 00 d5 09"
		"1a 4a")};
	return f;
}

inline const frame &R2()
{
	static const frame f = {"R2 IPv6 RC ACKNOWLEDGE", true, hex(
		"02 00 00 00 00 01 02 00 00 00 00 02 86 dd 66 a1"
		"23 45 00 1c 11 40 fe 80 00 00 00 00 00 00 00 00"
		"00 ff fe 00 00 02 fe 80 00 00 00 00 00 00 00 00"
		"00 ff fe 00 00 01 e3 41 12 b7 00 1c 00 00 11 40"
		"ff ff 00 00 00 12 00 00 01 00 1f 00 00 01 2f e5"
		"68 ce")};
	return f;
}

inline const frame &R3()
{
	static const frame f = {"R3 GRH UD SEND_ONLY", true, hex(
		"02 00 00 00 00 02 02 00 00 00 00 01 89 15 60 00"
		"00 00 00 28 1b 01 fe 80 00 00 00 00 00 00 00 00"
		"00 ff fe 00 00 01 fe 80 00 00 00 00 00 00 00 00"
		"00 ff fe 00 00 02 64 00 ff ff 00 00 00 01 00 00"
		"00 00 80 01 00 00 00 00 00 01 00 01 02 03 04 05"
		"06 07 08 09 0a 0b 0c 0d 0e 0f b3 12 3f 34")};
	return f;
}

inline const frame &R4()
{
	static const frame f = {"R4 IPv4 RC WRITE_ONLY", true, hex(
		"02 00 00 00 00 02 02 00 00 00 00 01 08 00 45 02"
		"00 40 12 34 40 00 40 11 a5 23 c0 a8 01 01 c0 a8"
		"01 02 c1 32 12 b7 00 2c 00 00 0a 40 ff ff 00 00"
		"00 11 80 00 01 01 00 00 7f 00 12 34 50 00 00 00"
		"01 23 00 00 00 04 de ad be ef 7c ac 32 c4")};
	return f;
}

inline const frame &R5()
{
	static const frame f = {"R5 CNP", false, hex(
		"45 c0 00 3c 00 00 40 00 40 11 b6 9d c0 a8 01 02"
		"c0 a8 01 01 c1 32 12 b7 00 28 00 00 81 00 ff ff"
		"40 00 00 12 00 00 00 00 00 00 00 00 00 00 00 00"
		"00 00 00 00 00 00 00 00 42 01 2a b1")};
	return f;
}

inline std::vector<const frame *> all()
{
	return {&X1(), &X2(), &R1(), &R2(), &R3(), &R4(), &R5()};
}

} /* namespace golden */

#endif /* SRN_TESTS_GOLDEN_H */
