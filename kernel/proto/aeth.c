// SPDX-License-Identifier: GPL-2.0
/*
 * AETH credit codes, RNR timer codes and the Local ACK timeout.
 *
 * Any context. All three code spaces are geometric, so they are computed:
 * cheaper than the cache line of a table that is used once per ACK.
 */
#include "aeth.h"

/*
 * Codes 0.. stand for 0 1 2 3 4 6 8 12 16 24 ...: from 2 on two steps per
 * power of two. Credits count this series, RNR timers count it in 10 us.
 */
static u32 half_octave(u32 code)
{
	if (code < 2)
		return code;
	return (2 | (code & 1)) << (code / 2 - 1);
}

u32 aeth_credits(u8 code)
{
	code &= 0x1f;
	return code == AETH_CREDIT_NONE ? ~0u : half_octave(code);
}

u8 aeth_credit_code(u32 wqes)
{
	u32 log;

	if (wqes < 2)
		return (u8)wqes;
	log = 31 - (u32)__builtin_clz(wqes);
	if (log >= 15)
		return AETH_CREDIT_NONE - 1;
	return (u8)(2 * log + (wqes >> (log - 1) & 1));
}

u32 aeth_rnr_usec(u8 code)
{
	code &= 0x1f;
	/* Code 0 continues the series behind 31. */
	return 10 * half_octave(code ? code : 32);
}

u64 aeth_timeout_nsec(u8 code)
{
	code &= 0x1f;
	return code ? (u64)4096 << code : 0;
}
