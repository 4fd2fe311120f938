/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the protocol says, written a second time and in another form than in
 * kernel/proto, for the unit tests and the fuzzers to compare with: the
 * opcode table, header layouts, a bit-at-a-time CRC and the ICRC's mask.
 *
 * Slow and plain on purpose. Nothing in here may call or include the code
 * under test beyond the type and flag names.
 */
#ifndef SRN_TESTS_MODEL_H
#define SRN_TESTS_MODEL_H

#include "bth.h"
#include "icrc.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace model {

using bytes = std::vector<uint8_t>;

/*
 * One row of the opcode tables: extended headers in wire order, payload rule
 * (M exactly PMTU, L 1..PMTU, O 0..PMTU, 0 none), use of the receive queue.
 */
struct op {
	uint8_t opcode;
	const char *name;
	const char *ext;
	unsigned hdr_bytes;
	char payload;
	const char *rq;
};

inline const std::vector<op> &ops()
{
	static const std::vector<op> table = {
		{0x00, "SEND_FIRST", "", 12, 'M', "take"},
		{0x01, "SEND_MIDDLE", "", 12, 'M', ""},
		{0x02, "SEND_LAST", "", 12, 'L', "complete"},
		{0x03, "SEND_LAST_IMM", "ImmDt", 16, 'L', "complete"},
		{0x04, "SEND_ONLY", "", 12, 'O', "take complete"},
		{0x05, "SEND_ONLY_IMM", "ImmDt", 16, 'O', "take complete"},
		{0x06, "WRITE_FIRST", "RETH", 28, 'M', ""},
		{0x07, "WRITE_MIDDLE", "", 12, 'M', ""},
		{0x08, "WRITE_LAST", "", 12, 'L', ""},
		{0x09, "WRITE_LAST_IMM", "ImmDt", 16, 'L', "take complete"},
		{0x0a, "WRITE_ONLY", "RETH", 28, 'O', ""},
		{0x0b, "WRITE_ONLY_IMM", "RETH ImmDt", 32, 'O', "take complete"},
		{0x0c, "READ_REQUEST", "RETH", 28, '0', ""},
		{0x0d, "READ_RESP_FIRST", "AETH", 16, 'M', ""},
		{0x0e, "READ_RESP_MIDDLE", "", 12, 'M', ""},
		{0x0f, "READ_RESP_LAST", "AETH", 16, 'L', ""},
		{0x10, "READ_RESP_ONLY", "AETH", 16, 'O', ""},
		{0x11, "ACKNOWLEDGE", "AETH", 16, '0', ""},
		{0x12, "ATOMIC_ACKNOWLEDGE", "AETH AtomicAckETH", 24, '0', ""},
		{0x13, "COMPARE_SWAP", "AtomicETH", 40, '0', ""},
		{0x14, "FETCH_ADD", "AtomicETH", 40, '0', ""},
		{0x16, "SEND_LAST_INV", "IETH", 16, 'L', "complete"},
		{0x17, "SEND_ONLY_INV", "IETH", 16, 'O', "take complete"},

		{0x20, "SEND_FIRST", "", 12, 'M', "take"},
		{0x21, "SEND_MIDDLE", "", 12, 'M', ""},
		{0x22, "SEND_LAST", "", 12, 'L', "complete"},
		{0x23, "SEND_LAST_IMM", "ImmDt", 16, 'L', "complete"},
		{0x24, "SEND_ONLY", "", 12, 'O', "take complete"},
		{0x25, "SEND_ONLY_IMM", "ImmDt", 16, 'O', "take complete"},
		{0x26, "WRITE_FIRST", "RETH", 28, 'M', ""},
		{0x27, "WRITE_MIDDLE", "", 12, 'M', ""},
		{0x28, "WRITE_LAST", "", 12, 'L', ""},
		{0x29, "WRITE_LAST_IMM", "ImmDt", 16, 'L', "take complete"},
		{0x2a, "WRITE_ONLY", "RETH", 28, 'O', ""},
		{0x2b, "WRITE_ONLY_IMM", "RETH ImmDt", 32, 'O', "take complete"},

		{0x64, "SEND_ONLY", "DETH", 20, 'O', "take complete"},
		{0x65, "SEND_ONLY_IMM", "DETH ImmDt", 24, 'O', "take complete"},

		{0x81, "CNP", "CNP", 28, '0', ""},
	};
	return table;
}

/* The row of an opcode, nullptr when it is reserved or not supported. */
inline const op *find_op(unsigned opcode)
{
	for (const op &o : ops())
		if (o.opcode == opcode)
			return &o;
	return nullptr;
}

inline bool has(std::string_view words, std::string_view word)
{
	while (!words.empty()) {
		const auto end = words.find(' ');

		if (words.substr(0, end) == word)
			return true;
		if (end == words.npos)
			break;
		words.remove_prefix(end + 1);
	}
	return false;
}

inline bool contains(std::string_view text, std::string_view part)
{
	return text.find(part) != text.npos;
}

inline bool is_first(const op &o) { return contains(o.name, "FIRST"); }
inline bool is_middle(const op &o) { return contains(o.name, "MIDDLE"); }
inline bool is_last(const op &o) { return contains(o.name, "LAST"); }
inline bool is_only(const op &o) { return contains(o.name, "ONLY"); }
inline bool is_send(const op &o) { return std::string_view(o.name).starts_with("SEND"); }
inline bool is_write(const op &o) { return std::string_view(o.name).starts_with("WRITE"); }
inline bool is_read_resp(const op &o) { return contains(o.name, "READ_RESP"); }
inline bool is_read_req(const op &o) { return contains(o.name, "READ_REQUEST"); }
inline bool is_atomic(const op &o) { return has(o.ext, "AtomicETH"); }
inline bool is_response(const op &o) { return is_read_resp(o) || contains(o.name, "ACKNOWLEDGE"); }
inline bool is_request(const op &o)
{
	return is_send(o) || is_write(o) || is_read_req(o) || is_atomic(o);
}

/* enum bth_flag as the names and columns of the table give it. */
inline u32 flags(const op &o)
{
	u32 f = BTH_F_KNOWN;

	f |= has(o.ext, "DETH") ? BTH_F_DETH : 0;
	f |= has(o.ext, "RETH") ? BTH_F_RETH : 0;
	f |= has(o.ext, "AtomicETH") ? BTH_F_ATOMICETH : 0;
	f |= has(o.ext, "AETH") ? BTH_F_AETH : 0;
	f |= has(o.ext, "AtomicAckETH") ? BTH_F_ATOMICACKETH : 0;
	f |= has(o.ext, "ImmDt") ? BTH_F_IMM : 0;
	f |= has(o.ext, "IETH") ? BTH_F_IETH : 0;
	f |= has(o.ext, "CNP") ? BTH_F_CNP : 0;
	f |= is_first(o) || is_only(o) ? BTH_F_START : 0;
	f |= is_last(o) || is_only(o) ? BTH_F_END : 0;
	f |= is_middle(o) ? BTH_F_MIDDLE : 0;
	f |= is_send(o) ? BTH_F_SEND : 0;
	f |= is_write(o) ? BTH_F_WRITE : 0;
	f |= is_read_req(o) ? BTH_F_READ_REQ : 0;
	f |= is_read_resp(o) ? BTH_F_READ_RESP : 0;
	f |= is_atomic(o) ? BTH_F_ATOMIC : 0;
	f |= is_response(o) ? BTH_F_RESPONSE : 0;
	f |= is_request(o) ? BTH_F_REQUEST : 0;
	f |= has(o.rq, "take") ? BTH_F_RWQE : 0;
	f |= o.payload != '0' ? BTH_F_PAYLOAD : 0;
	return f;
}

/* What bth_parse() has to say of @len transport bytes that begin with @t. */
inline enum bth_err verdict(std::span<const uint8_t> t, size_t len)
{
	if (len < 16)
		return BTH_ERR_SHORT;
	if (len % 4 != 0 || len > 65535)
		return BTH_ERR_ALIGN;
	if (t[1] % 16 != 0)
		return BTH_ERR_TVER;

	const op *o = find_op(t[0]);

	if (!o)
		return BTH_ERR_OPCODE;
	return len < o->hdr_bytes + t[1] / 16 % 4 + 4 ? BTH_ERR_SHORT : BTH_OK;
}

/* Big-endian append of the low @bits of @v. */
inline void put(bytes &out, uint64_t v, unsigned bits)
{
	for (unsigned at = bits; at; at -= 8)
		out.push_back(static_cast<uint8_t>(v >> (at - 8)));
}

/* BTH and extended headers, laid out field by field. */
inline bytes headers(const roce_hdr &h, const op &o)
{
	bytes out;

	put(out, o.opcode, 8);
	put(out, h.se * 128u + h.migreq * 64u + h.pad * 16u + h.tver, 8);
	put(out, h.pkey, 16);
	put(out, h.fecn * 128u + h.becn * 64u, 8);
	put(out, h.dqpn, 24);
	put(out, h.ackreq * 128u, 8);
	put(out, h.psn, 24);
	if (has(o.ext, "DETH")) {
		put(out, h.qkey, 32);
		put(out, 0, 8);
		put(out, h.sqpn, 24);
	}
	if (has(o.ext, "RETH")) {
		put(out, h.va, 64);
		put(out, h.rkey, 32);
		put(out, h.dmalen, 32);
	}
	if (has(o.ext, "AtomicETH")) {
		put(out, h.va, 64);
		put(out, h.rkey, 32);
		put(out, h.swap_add, 64);
		put(out, h.compare, 64);
	}
	if (has(o.ext, "AETH")) {
		put(out, h.syndrome, 8);
		put(out, h.msn, 24);
	}
	if (has(o.ext, "AtomicAckETH"))
		put(out, h.orig, 64);
	if (has(o.ext, "ImmDt")) {
		const auto *p = reinterpret_cast<const uint8_t *>(&h.imm);

		out.insert(out.end(), p, p + 4);
	}
	if (has(o.ext, "IETH"))
		put(out, h.inv_rkey, 32);
	if (has(o.ext, "CNP"))
		out.insert(out.end(), 16, 0);
	return out;
}

/*
 * The register of the CRC, one bit at a time, in the form of the standard:
 * most significant bit first with polynomial 0x04C11DB7, bytes entering with
 * their least significant bit first. The register is returned reflected, as
 * icrc_fn keeps it.
 */
inline uint32_t reflect32(uint32_t v)
{
	uint32_t out = 0;

	for (unsigned i = 0; i < 32; i++)
		if (v >> i & 1)
			out |= 1u << (31 - i);
	return out;
}

inline uint32_t crc_bits(uint32_t reg, std::span<const uint8_t> data)
{
	uint32_t r = reflect32(reg);

	for (uint8_t byte : data)
		for (unsigned bit = 0; bit < 8; bit++) {
			const bool in = byte >> bit & 1, out = r >> 31;

			r <<= 1;
			if (in != out)
				r ^= 0x04c11db7u;
		}
	return reflect32(r);
}

struct range {
	unsigned first_bit;	/* bit 0 is the most significant of byte 0 */
	unsigned bits;
};

/* Fields of L3, L4 and BTH that count as ones (table of the ICRC section). */
inline std::vector<range> mask(enum roce_l3 l3)
{
	switch (l3) {
	case ROCE_L3_IPV4:
		return {{1 * 8, 8}, {8 * 8, 8}, {10 * 8, 16}, {(20 + 6) * 8, 16}, {(28 + 4) * 8, 8}};
	case ROCE_L3_IPV6:
		return {{4, 8}, {12, 20}, {7 * 8, 8}, {(40 + 6) * 8, 16}, {(48 + 4) * 8, 8}};
	case ROCE_L3_GRH:
		return {{4, 8}, {12, 20}, {7 * 8, 8}, {(40 + 4) * 8, 8}};
	}
	return {};
}

inline bool is_masked(enum roce_l3 l3, unsigned bit)
{
	for (const range &r : mask(l3))
		if (bit >= r.first_bit && bit < r.first_bit + r.bits)
			return true;
	return false;
}

/* The message the ICRC covers: L3 header .. last pad byte in @packet. */
inline bytes icrc_message(enum roce_l3 l3, std::span<const uint8_t> packet)
{
	bytes out(8, 0xff);

	out.insert(out.end(), packet.begin(), packet.end());
	for (const range &r : mask(l3))
		for (unsigned bit = r.first_bit; bit < r.first_bit + r.bits; bit++)
			out[8 + bit / 8] |= static_cast<uint8_t>(0x80 >> bit % 8);
	return out;
}

/* The four ICRC bytes as they travel. */
inline bytes icrc_wire(enum roce_l3 l3, std::span<const uint8_t> packet)
{
	const uint32_t v = ~crc_bits(0xffffffffu, icrc_message(l3, packet));

	return {static_cast<uint8_t>(v), static_cast<uint8_t>(v >> 8),
		static_cast<uint8_t>(v >> 16), static_cast<uint8_t>(v >> 24)};
}

} /* namespace model */

#endif /* SRN_TESTS_MODEL_H */
