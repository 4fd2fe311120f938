/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Invariant CRC of RoCE packets (IBA 7.8.1, A16, A17).
 *
 * CRC-32 (reflected 0xEDB88320, start all ones, final complement) over eight
 * bytes of ones, the L3 and L4 headers with their variant fields set to ones,
 * and the rest of the packet up to the last pad byte. Stored least
 * significant byte first.
 */
#ifndef SRN_PROTO_ICRC_H
#define SRN_PROTO_ICRC_H

#include "types.h"

SRN_PROTO_BEGIN

/* CRC register over @len bytes, no complement before or after. */
typedef u32 (*icrc_fn)(u32 crc, const void *buf, size_t len);

enum roce_l3 {
	ROCE_L3_GRH,	/* RoCEv1: GRH 40, BTH */
	ROCE_L3_IPV4,	/* IPv4 20, UDP 8, BTH */
	ROCE_L3_IPV6,	/* IPv6 40, UDP 8, BTH */
};

/** roce_l3_len() - bytes from the L3 header to the BTH. */
static inline u8 roce_l3_len(enum roce_l3 l3)
{
	return l3 == ROCE_L3_GRH ? 40 : l3 == ROCE_L3_IPV4 ? 28 : 48;
}

/**
 * icrc_begin() - CRC register after the masked headers, BTH included
 * @crc: CRC engine
 * @l3: kind of frame
 * @hdr: L3 header, L4 header and BTH, contiguous: roce_l3_len() + 12 bytes
 *
 * R011, R012. The rest of the packet is then fed to @crc as it is.
 */
u32 icrc_begin(icrc_fn crc, enum roce_l3 l3, const u8 *hdr);

/** icrc_store() - write the final value of register @crc to the 4 bytes at @p. */
static inline void icrc_store(u8 *p, u32 crc)
{
	crc = ~crc;
	p[0] = (u8)crc;
	p[1] = (u8)(crc >> 8);
	p[2] = (u8)(crc >> 16);
	p[3] = (u8)(crc >> 24);
}

/** icrc_match() - do the 4 bytes at @p hold the final value of register @crc? */
static inline bool icrc_match(const u8 *p, u32 crc)
{
	return ((u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24) == ~crc;
}

SRN_PROTO_END

#endif /* SRN_PROTO_ICRC_H */
