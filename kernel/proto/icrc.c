// SPDX-License-Identifier: GPL-2.0
/*
 * The part of the ICRC that differs from a plain CRC-32: a virtual LRH of
 * ones in front and headers whose hop-by-hop fields count as ones.
 *
 * Any context. The headers are masked in a copy on the stack because those
 * in the packet may be shared with a clone or already checksummed.
 */
#include "bth.h"
#include "icrc.h"

/* CRC register after eight bytes of ones, which stand for the LRH. */
#define ICRC_SEED 0xdebb20e3u

#define HDR_MAX (40 + 8 + BTH_BYTES)

u32 icrc_begin(icrc_fn crc, enum roce_l3 l3, const u8 *hdr)
{
	const u32 l3_len = roce_l3_len(l3);
	u8 m[HDR_MAX];

	__builtin_memcpy(m, hdr, l3_len + BTH_BYTES);

	if (l3 == ROCE_L3_IPV4) {
		m[1] = 0xff;		/* ToS */
		m[8] = 0xff;		/* TTL */
		m[10] = 0xff;		/* header checksum */
		m[11] = 0xff;
	} else {
		m[0] |= 0x0f;		/* traffic class, flow label */
		m[1] = 0xff;
		m[2] = 0xff;
		m[3] = 0xff;
		m[7] = 0xff;		/* hop limit */
	}
	if (l3 != ROCE_L3_GRH) {
		m[l3_len - 2] = 0xff;	/* UDP checksum */
		m[l3_len - 1] = 0xff;
	}
	m[l3_len + 4] = 0xff;		/* BTH FECN, BECN, reserved */

	return crc(ICRC_SEED, m, l3_len + BTH_BYTES);
}
