/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages cut into packets (IBA 9.7.2, 9.4.1).
 */
#ifndef SRN_PROTO_SEG_H
#define SRN_PROTO_SEG_H

#include "bth.h"

SRN_PROTO_BEGIN

/** seg_packets() - packets of a message: max(1, ceil(len / pmtu)). @pmtu is a power of two. */
static inline u32 seg_packets(u32 len, u32 pmtu)
{
	return len ? (len - 1) / pmtu + 1 : 1;
}

/** seg_offset() - byte offset of packet @index. */
static inline u32 seg_offset(u32 index, u32 pmtu)
{
	return index * pmtu;
}

/** seg_len() - payload bytes of packet @index of a message of @len bytes. */
static inline u32 seg_len(u32 len, u32 pmtu, u32 index)
{
	u32 off = seg_offset(index, pmtu);

	return len - off < pmtu ? len - off : pmtu;
}

/** seg_pad() - PadCnt of a payload. */
static inline u8 seg_pad(u32 payload)
{
	return (u8)(-payload & 3);
}

/* Message kinds a requester or responder cuts. */
enum seg_kind {
	SEG_SEND,
	SEG_SEND_IMM,
	SEG_SEND_INV,
	SEG_WRITE,
	SEG_WRITE_IMM,
	SEG_READ_RESP,
};

/**
 * seg_opcode() - RC numbering of packet @index of @count
 *
 * Add ROCE_CLASS_UC for UC. A message of one packet gives ONLY.
 */
u8 seg_opcode(enum seg_kind kind, u32 index, u32 count);

/**
 * seg_udp_sport() - UDP source port of a flow (2.4, R006)
 * @flow_label: of the address vector; 0 leaves the choice to the QPNs
 * @lqpn: local QPN
 * @rqpn: remote QPN; the result is the same at both ends
 */
u16 seg_udp_sport(u32 flow_label, u32 lqpn, u32 rqpn);

SRN_PROTO_END

#endif /* SRN_PROTO_SEG_H */
