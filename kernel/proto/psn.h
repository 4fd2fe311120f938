/* SPDX-License-Identifier: GPL-2.0 */
/*
 * 24-bit serial arithmetic for PSN, MSN and SSN (IBA 9.7.2).
 *
 * Two numbers are comparable while they are less than 2^23 apart; a requester
 * keeps fewer than 2^23 PSNs outstanding.
 */
#ifndef SRN_PROTO_PSN_H
#define SRN_PROTO_PSN_H

#include "types.h"

#define PSN_MASK 0xffffffu
#define PSN_HALF 0x800000u

/** psn_add() - @psn moved forward by @n, modulo 2^24. */
static inline u32 psn_add(u32 psn, u32 n)
{
	return (psn + n) & PSN_MASK;
}

/** psn_sub() - @psn moved back by @n, modulo 2^24. */
static inline u32 psn_sub(u32 psn, u32 n)
{
	return (psn - n) & PSN_MASK;
}

/** psn_diff() - signed distance a - b in -2^23 .. 2^23-1. */
static inline s32 psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/** psn_before() - does @a come before @b? */
static inline bool psn_before(u32 a, u32 b)
{
	return psn_diff(a, b) < 0;
}

/** psn_in() - does @psn lie in [first, first + n)? */
static inline bool psn_in(u32 psn, u32 first, u32 n)
{
	return ((psn - first) & PSN_MASK) < n;
}

#endif /* SRN_PROTO_PSN_H */
