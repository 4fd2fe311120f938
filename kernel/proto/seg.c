// SPDX-License-Identifier: GPL-2.0
/*
 * Opcode of each packet of a message, and the UDP source port of a flow.
 *
 * Any context. Lengths and counts are inline in seg.h; here is what needs a
 * table or is done once per queue pair.
 */
#include "seg.h"

enum place { FIRST, MIDDLE, LAST, ONLY };

static const u8 seg_ops[][4] = {
	[SEG_SEND] = {
		ROCE_OP_SEND_FIRST, ROCE_OP_SEND_MIDDLE,
		ROCE_OP_SEND_LAST, ROCE_OP_SEND_ONLY,
	},
	[SEG_SEND_IMM] = {
		ROCE_OP_SEND_FIRST, ROCE_OP_SEND_MIDDLE,
		ROCE_OP_SEND_LAST_IMM, ROCE_OP_SEND_ONLY_IMM,
	},
	[SEG_SEND_INV] = {
		ROCE_OP_SEND_FIRST, ROCE_OP_SEND_MIDDLE,
		ROCE_OP_SEND_LAST_INV, ROCE_OP_SEND_ONLY_INV,
	},
	[SEG_WRITE] = {
		ROCE_OP_WRITE_FIRST, ROCE_OP_WRITE_MIDDLE,
		ROCE_OP_WRITE_LAST, ROCE_OP_WRITE_ONLY,
	},
	[SEG_WRITE_IMM] = {
		ROCE_OP_WRITE_FIRST, ROCE_OP_WRITE_MIDDLE,
		ROCE_OP_WRITE_LAST_IMM, ROCE_OP_WRITE_ONLY_IMM,
	},
	[SEG_READ_RESP] = {
		ROCE_OP_READ_RESP_FIRST, ROCE_OP_READ_RESP_MIDDLE,
		ROCE_OP_READ_RESP_LAST, ROCE_OP_READ_RESP_ONLY,
	},
};

u8 seg_opcode(enum seg_kind kind, u32 index, u32 count)
{
	enum place place;

	if (count <= 1)
		place = ONLY;
	else if (index == 0)
		place = FIRST;
	else
		place = index < count - 1 ? MIDDLE : LAST;
	return seg_ops[kind][place];
}

u16 seg_udp_sport(u32 flow_label, u32 lqpn, u32 rqpn)
{
	u32 fl = flow_label & 0xfffff;

	/* The product is symmetric: both ends of a connection pick one port. */
	if (!fl) {
		u64 v = (u64)lqpn * rqpn;

		v ^= v >> 20;
		v ^= v >> 40;
		fl = (u32)v & 0xfffff;
	}
	return (u16)(0xc000 | ((fl ^ fl >> 14) & 0x3fff));
}
