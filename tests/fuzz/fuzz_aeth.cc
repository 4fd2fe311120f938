// SPDX-License-Identifier: GPL-2.0
/*
 * AETH syndromes, credits and timers: relations that hold for every value.
 * Input: syndrome, 4 bytes of receive WQEs.
 */
#include "aeth.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz::input in(data, size);
	const u8 s = static_cast<u8>(fuzz::take(in, 1));
	const u32 wqes = static_cast<u32>(fuzz::take(in, 4));
	const u8 v = aeth_value(s);

	ORACLE(v < 32);
	switch (aeth_type(s)) {
	case AETH_ACK:
		ORACLE(aeth_ack(v) == s);
		break;
	case AETH_RNR:
		ORACLE(aeth_rnr(v) == s);
		break;
	case AETH_NAK:
		ORACLE((s & 0xe0) == 0x60);
		break;
	case AETH_RSVD:
		ORACLE(s >= 0x80 || (s & 0xe0) == 0x40);
		break;
	default:
		ORACLE(!"a type that is none of the four");
	}

	/* codes above 31 must not read beyond a table or shift too far */
	ORACLE(aeth_credits(s) == aeth_credits(v));
	ORACLE(aeth_rnr_usec(s) == aeth_rnr_usec(v));
	ORACLE(aeth_timeout_nsec(s) == aeth_timeout_nsec(v));
	ORACLE(aeth_rnr_usec(s) >= 10 && aeth_rnr_usec(s) <= aeth_rnr_usec(0));
	ORACLE(aeth_timeout_nsec(v) == (v ? 4096.0 * static_cast<double>(1u << v) : 0.0));
	if (v && v < AETH_CREDIT_NONE) {
		ORACLE(aeth_credits(v) > aeth_credits(v - 1));
		ORACLE(aeth_rnr_usec(v + 1) > aeth_rnr_usec(v));
		ORACLE(aeth_credit_code(aeth_credits(v)) == v);
		ORACLE(aeth_credit_code(aeth_credits(v) - 1) == v - 1);
	}

	const u8 code = aeth_credit_code(wqes);

	ORACLE(code < AETH_CREDIT_NONE);
	ORACLE(aeth_credits(code) <= wqes);
	ORACLE(code == 0x1e || aeth_credits(code + 1) > wqes);
	return 0;
}
