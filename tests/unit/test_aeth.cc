// SPDX-License-Identifier: GPL-2.0
/*
 * AETH syndromes and the three code tables, against the tables written out.
 */
#include "aeth.h"
#include "unit.h"

namespace {

const u32 credits[31] = {
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

const u32 rnr_usec[32] = {
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560,
	3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840,
	245760, 327680, 491520,
};

} /* namespace */

TEST("AETH types and values of all 256 syndromes")
{
	for (unsigned s = 0; s < 256; s++) {
		const enum aeth_type want = s < 0x20 ? AETH_ACK : s < 0x40 ? AETH_RNR :
			s < 0x60 ? AETH_RSVD : s < 0x80 ? AETH_NAK : AETH_RSVD;

		EQ(aeth_type(static_cast<u8>(s)), want, "syndrome %#x", s);
		EQ(aeth_value(static_cast<u8>(s)), s % 32, "syndrome %#x", s);
	}
	EQ(aeth_type(AETH_NAK_PSN_SEQ), AETH_NAK);
	EQ(aeth_type(AETH_NAK_INV_REQ), AETH_NAK);
	EQ(aeth_type(AETH_NAK_REM_ACCESS), AETH_NAK);
	EQ(aeth_type(AETH_NAK_REM_OP), AETH_NAK);
	EQ(+AETH_NAK_PSN_SEQ, 0x60);
	EQ(+AETH_NAK_INV_REQ, 0x61);
	EQ(+AETH_NAK_REM_ACCESS, 0x62);
	EQ(+AETH_NAK_REM_OP, 0x63);
}

TEST("AETH ACK and RNR syndromes carry their five bits")
{
	for (unsigned v = 0; v < 256; v++) {
		EQ(aeth_ack(static_cast<u8>(v)), v % 32);
		EQ(aeth_rnr(static_cast<u8>(v)), 0x20 + v % 32);
	}
}

TEST("credit table, all codes")
{
	for (unsigned code = 0; code < 31; code++)
		EQ(aeth_credits(static_cast<u8>(code)), credits[code], "code %#x", code);
	EQ(aeth_credits(AETH_CREDIT_NONE), ~0u);
	EQ(aeth_credits(aeth_value(aeth_ack(AETH_CREDIT_NONE))), ~0u);
}

TEST("credit code is the largest that does not exceed the free WQEs")
{
	const auto check = [](u32 wqes) {
		unsigned want = 0;

		for (unsigned code = 0; code < 31; code++)
			if (credits[code] <= wqes)
				want = code;
		EQ(aeth_credit_code(wqes), want, "%u WQEs", wqes);
	};

	for (u32 wqes = 0; wqes < 70000; wqes++)
		check(wqes);
	for (u32 wqes : {0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu})
		check(wqes);
}

TEST("R035 RNR timer table, all codes, code 0 is 655.36 ms")
{
	EQ(aeth_rnr_usec(0), 655360u);
	for (unsigned code = 0; code < 32; code++) {
		EQ(aeth_rnr_usec(static_cast<u8>(code)), rnr_usec[code], "code %#x", code);
		EQ(aeth_rnr_usec(aeth_value(aeth_rnr(static_cast<u8>(code)))), rnr_usec[code],
		   "code %#x through the syndrome", code);
	}
}

TEST("R037 Local ACK timeout is 4.096 us * 2^code and code 0 never fires")
{
	double want = 4096;

	EQ(aeth_timeout_nsec(0), 0u);
	for (unsigned code = 1; code < 32; code++) {
		want *= 2;
		EQ(aeth_timeout_nsec(static_cast<u8>(code)), static_cast<u64>(want), "code %u", code);
	}
	EQ(aeth_timeout_nsec(14), 67108864u);
	EQ(aeth_timeout_nsec(31), 8796093022208u);
}
