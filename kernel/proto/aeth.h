/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AETH syndromes, credits and the two timer codes (IBA 9.7.5.2, 9.7.6.1).
 */
#ifndef SRN_PROTO_AETH_H
#define SRN_PROTO_AETH_H

#include "types.h"

SRN_PROTO_BEGIN

enum aeth_type {
	AETH_ACK = 0,
	AETH_RNR = 1,
	AETH_RSVD = 2,
	AETH_NAK = 3,
};

enum aeth_nak {
	AETH_NAK_PSN_SEQ = 0x60,
	AETH_NAK_INV_REQ = 0x61,
	AETH_NAK_REM_ACCESS = 0x62,
	AETH_NAK_REM_OP = 0x63,
};

/* Credit code "no end-to-end flow control". */
#define AETH_CREDIT_NONE 0x1f

static inline enum aeth_type aeth_type(u8 syndrome)
{
	/* Bit 7 is reserved as zero; set, the syndrome means nothing known. */
	if (syndrome & 0x80)
		return AETH_RSVD;
	return (enum aeth_type)(syndrome >> 5 & 3);
}

/** aeth_ack() - syndrome of an ACK with a 5-bit credit code. */
static inline u8 aeth_ack(u8 credit)
{
	return credit & 0x1f;
}

/** aeth_rnr() - syndrome of an RNR NAK with a 5-bit timer code. */
static inline u8 aeth_rnr(u8 timer)
{
	return 0x20 | (timer & 0x1f);
}

/** aeth_value() - the 5-bit value: credit code, RNR timer code or NAK code. */
static inline u8 aeth_value(u8 syndrome)
{
	return syndrome & 0x1f;
}

/** aeth_credits() - receive WQEs that a credit code stands for; ~0u for code 0x1f. */
u32 aeth_credits(u8 code);

/** aeth_credit_code() - the largest code that does not exceed @wqes. */
u8 aeth_credit_code(u32 wqes);

/**
 * aeth_rnr_usec() - least wait of an RNR timer code in microseconds (R035)
 *
 * Code 0 is the longest, 655.36 ms.
 */
u32 aeth_rnr_usec(u8 code);

/** aeth_timeout_nsec() - Local ACK timeout 4.096 us * 2^code in ns; 0 (never) for code 0 (R037). */
u64 aeth_timeout_nsec(u8 code);

SRN_PROTO_END

#endif /* SRN_PROTO_AETH_H */
