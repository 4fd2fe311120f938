// SPDX-License-Identifier: GPL-2.0
/*
 * The RoCE opcode table and everything that is read off it: header lengths,
 * parse, build, order of packets and length of payloads.
 *
 * Any context. Knows neither queue pairs nor sockets; what follows from a
 * fault (drop, NAK) is decided by the caller.
 */
#include "bth.h"

/*
 * One word per opcode: enum bth_flag below, header bytes in the top byte. The
 * length is computed from the flags, so the two cannot disagree, and a packet
 * costs one load whatever its opcode.
 */
#define OP_LEN_SHIFT 24
#define OP_FLAGS_MASK ((1u << OP_LEN_SHIFT) - 1)

#define OP_LEN(f) (BTH_BYTES + \
	((f) & BTH_F_DETH ? DETH_BYTES : 0) + \
	((f) & BTH_F_RETH ? RETH_BYTES : 0) + \
	((f) & BTH_F_ATOMICETH ? ATOMICETH_BYTES : 0) + \
	((f) & BTH_F_AETH ? AETH_BYTES : 0) + \
	((f) & BTH_F_ATOMICACKETH ? ATOMICACKETH_BYTES : 0) + \
	((f) & BTH_F_IMM ? IMMDT_BYTES : 0) + \
	((f) & BTH_F_IETH ? IETH_BYTES : 0) + \
	((f) & BTH_F_CNP ? CNP_PAD_BYTES : 0))
#define OP(f) ((u32)(BTH_F_KNOWN | (f)) | (u32)OP_LEN(f) << OP_LEN_SHIFT)

#define F_SEND (BTH_F_REQUEST | BTH_F_SEND | BTH_F_PAYLOAD)
#define F_WRITE (BTH_F_REQUEST | BTH_F_WRITE | BTH_F_PAYLOAD)
#define F_READ_RESP (BTH_F_RESPONSE | BTH_F_READ_RESP | BTH_F_PAYLOAD)
#define F_ONLY (BTH_F_START | BTH_F_END)

/* RC and UC number and lay out SEND and WRITE alike (IBA 9.2.1). */
#define SEND_WRITE_OPS(c) \
	[(c) + ROCE_OP_SEND_FIRST] = OP(F_SEND | BTH_F_START | BTH_F_RWQE), \
	[(c) + ROCE_OP_SEND_MIDDLE] = OP(F_SEND | BTH_F_MIDDLE), \
	[(c) + ROCE_OP_SEND_LAST] = OP(F_SEND | BTH_F_END), \
	[(c) + ROCE_OP_SEND_LAST_IMM] = OP(F_SEND | BTH_F_END | BTH_F_IMM), \
	[(c) + ROCE_OP_SEND_ONLY] = OP(F_SEND | F_ONLY | BTH_F_RWQE), \
	[(c) + ROCE_OP_SEND_ONLY_IMM] = OP(F_SEND | F_ONLY | BTH_F_RWQE | BTH_F_IMM), \
	[(c) + ROCE_OP_WRITE_FIRST] = OP(F_WRITE | BTH_F_START | BTH_F_RETH), \
	[(c) + ROCE_OP_WRITE_MIDDLE] = OP(F_WRITE | BTH_F_MIDDLE), \
	[(c) + ROCE_OP_WRITE_LAST] = OP(F_WRITE | BTH_F_END), \
	[(c) + ROCE_OP_WRITE_LAST_IMM] = \
		OP(F_WRITE | BTH_F_END | BTH_F_RWQE | BTH_F_IMM), \
	[(c) + ROCE_OP_WRITE_ONLY] = OP(F_WRITE | F_ONLY | BTH_F_RETH), \
	[(c) + ROCE_OP_WRITE_ONLY_IMM] = \
		OP(F_WRITE | F_ONLY | BTH_F_RWQE | BTH_F_RETH | BTH_F_IMM)

static const u32 op_table[256] = {
	SEND_WRITE_OPS(0x00),
	[ROCE_OP_READ_REQUEST] = OP(BTH_F_REQUEST | BTH_F_READ_REQ | BTH_F_RETH),
	[ROCE_OP_READ_RESP_FIRST] = OP(F_READ_RESP | BTH_F_START | BTH_F_AETH),
	[ROCE_OP_READ_RESP_MIDDLE] = OP(F_READ_RESP | BTH_F_MIDDLE),
	[ROCE_OP_READ_RESP_LAST] = OP(F_READ_RESP | BTH_F_END | BTH_F_AETH),
	[ROCE_OP_READ_RESP_ONLY] = OP(F_READ_RESP | F_ONLY | BTH_F_AETH),
	[ROCE_OP_ACK] = OP(BTH_F_RESPONSE | BTH_F_AETH),
	[ROCE_OP_ATOMIC_ACK] = OP(BTH_F_RESPONSE | BTH_F_AETH | BTH_F_ATOMICACKETH),
	[ROCE_OP_COMPARE_SWAP] = OP(BTH_F_REQUEST | BTH_F_ATOMIC | BTH_F_ATOMICETH),
	[ROCE_OP_FETCH_ADD] = OP(BTH_F_REQUEST | BTH_F_ATOMIC | BTH_F_ATOMICETH),
	[ROCE_OP_SEND_LAST_INV] = OP(F_SEND | BTH_F_END | BTH_F_IETH),
	[ROCE_OP_SEND_ONLY_INV] = OP(F_SEND | F_ONLY | BTH_F_RWQE | BTH_F_IETH),

	SEND_WRITE_OPS(0x20),

	[ROCE_UD_SEND_ONLY] = OP(F_SEND | F_ONLY | BTH_F_RWQE | BTH_F_DETH),
	[ROCE_UD_SEND_ONLY_IMM] = OP(F_SEND | F_ONLY | BTH_F_RWQE | BTH_F_DETH | BTH_F_IMM),

	[ROCE_CNP] = OP(BTH_F_CNP),
};

u32 bth_op_flags(u8 opcode)
{
	return op_table[opcode] & OP_FLAGS_MASK;
}

u8 bth_op_hdr_len(u8 opcode)
{
	return (u8)(op_table[opcode] >> OP_LEN_SHIFT);
}

/* The caller has seen that all bytes that @flags stand for are there. */
static void ext_parse(const u8 *p, u32 flags, struct roce_hdr *h)
{
	if (flags & BTH_F_DETH) {
		h->qkey = wire_get32(p);
		h->sqpn = wire_get32(p + 4) & 0xffffff;
		p += DETH_BYTES;
	}
	if (flags & BTH_F_RETH) {
		h->va = wire_get64(p);
		h->rkey = wire_get32(p + 8);
		h->dmalen = wire_get32(p + 12);
		p += RETH_BYTES;
	}
	if (flags & BTH_F_ATOMICETH) {
		h->va = wire_get64(p);
		h->rkey = wire_get32(p + 8);
		h->swap_add = wire_get64(p + 12);
		h->compare = wire_get64(p + 20);
		p += ATOMICETH_BYTES;
	}
	if (flags & BTH_F_AETH) {
		h->syndrome = p[0];
		h->msn = wire_get24(p + 1);
		p += AETH_BYTES;
	}
	if (flags & BTH_F_ATOMICACKETH) {
		h->orig = wire_get64(p);
		p += ATOMICACKETH_BYTES;
	}
	if (flags & BTH_F_IMM) {
		__builtin_memcpy(&h->imm, p, IMMDT_BYTES);
		p += IMMDT_BYTES;
	}
	if (flags & BTH_F_IETH)
		h->inv_rkey = wire_get32(p);
}

enum bth_err bth_parse(const u8 *t, size_t len, struct roce_hdr *h)
{
	u32 w0, w1, w2, op;
	size_t need;

	if (len < BTH_BYTES + ICRC_BYTES)
		return BTH_ERR_SHORT;
	if (len & 3 || len > ROCE_TRANSPORT_MAX)
		return BTH_ERR_ALIGN;

	w0 = wire_get32(t);
	w1 = wire_get32(t + 4);
	w2 = wire_get32(t + 8);

	h->tver = w0 >> 16 & 0x0f;
	if (h->tver)
		return BTH_ERR_TVER;

	h->opcode = (u8)(w0 >> 24);
	h->se = w0 >> 23 & 1;
	h->migreq = w0 >> 22 & 1;
	h->pad = w0 >> 20 & 3;
	h->pkey = (u16)w0;
	h->fecn = w1 >> 31;
	h->becn = w1 >> 30 & 1;
	h->dqpn = w1 & 0xffffff;
	h->ackreq = w2 >> 31;
	h->psn = w2 & 0xffffff;

	op = op_table[h->opcode];
	h->flags = op & OP_FLAGS_MASK;
	if (!op) {
		h->hdr_len = BTH_BYTES;
		h->payload_len = 0;
		return BTH_ERR_OPCODE;
	}

	h->hdr_len = (u16)(op >> OP_LEN_SHIFT);
	need = (size_t)h->hdr_len + h->pad + ICRC_BYTES;
	if (len < need)
		return BTH_ERR_SHORT;
	h->payload_len = (u16)(len - need);

	ext_parse(t + BTH_BYTES, h->flags, h);
	return BTH_OK;
}

size_t bth_build(u8 *t, const struct roce_hdr *h)
{
	const u32 flags = bth_op_flags(h->opcode);
	u8 *p = t + BTH_BYTES;

	if (!flags)
		return 0;

	t[0] = h->opcode;
	t[1] = (u8)(h->se << 7 | h->migreq << 6 | (h->pad & 3) << 4 | (h->tver & 0x0f));
	wire_put16(t + 2, h->pkey);
	t[4] = (u8)(h->fecn << 7 | h->becn << 6);
	wire_put24(t + 5, h->dqpn);
	t[8] = (u8)(h->ackreq << 7);
	wire_put24(t + 9, h->psn);

	if (flags & BTH_F_DETH) {
		wire_put32(p, h->qkey);
		wire_put32(p + 4, h->sqpn & 0xffffff);
		p += DETH_BYTES;
	}
	if (flags & BTH_F_RETH) {
		wire_put64(p, h->va);
		wire_put32(p + 8, h->rkey);
		wire_put32(p + 12, h->dmalen);
		p += RETH_BYTES;
	}
	if (flags & BTH_F_ATOMICETH) {
		wire_put64(p, h->va);
		wire_put32(p + 8, h->rkey);
		wire_put64(p + 12, h->swap_add);
		wire_put64(p + 20, h->compare);
		p += ATOMICETH_BYTES;
	}
	if (flags & BTH_F_AETH) {
		p[0] = h->syndrome;
		wire_put24(p + 1, h->msn);
		p += AETH_BYTES;
	}
	if (flags & BTH_F_ATOMICACKETH) {
		wire_put64(p, h->orig);
		p += ATOMICACKETH_BYTES;
	}
	if (flags & BTH_F_IMM) {
		__builtin_memcpy(p, &h->imm, IMMDT_BYTES);
		p += IMMDT_BYTES;
	}
	if (flags & BTH_F_IETH) {
		wire_put32(p, h->inv_rkey);
		p += IETH_BYTES;
	}
	if (flags & BTH_F_CNP) {
		memset(p, 0, CNP_PAD_BYTES);
		p += CNP_PAD_BYTES;
	}
	return (size_t)(p - t);
}

bool bth_seq_next(enum roce_seq seq, u32 flags, enum roce_seq *next)
{
	u32 kind;

	if (!(flags & BTH_F_REQUEST))
		return false;

	if (seq == ROCE_SEQ_IDLE) {
		/* READ and atomics have no place bits: whole in themselves. */
		if (!(flags & (BTH_F_START | BTH_F_READ_REQ | BTH_F_ATOMIC)))
			return false;
		if ((flags & F_ONLY) == BTH_F_START)
			*next = flags & BTH_F_SEND ? ROCE_SEQ_SEND : ROCE_SEQ_WRITE;
		else
			*next = ROCE_SEQ_IDLE;
		return true;
	}

	kind = seq == ROCE_SEQ_SEND ? BTH_F_SEND : BTH_F_WRITE;
	if (!(flags & kind) || flags & BTH_F_START)
		return false;
	*next = flags & BTH_F_END ? ROCE_SEQ_IDLE : seq;
	return true;
}

bool bth_len_ok(const struct roce_hdr *h, u32 pmtu)
{
	if (!(h->flags & BTH_F_PAYLOAD))
		return !h->payload_len && !h->pad;

	/* FIRST and MIDDLE: more follows, so the packet has to be full. */
	if (!(h->flags & BTH_F_END))
		return h->payload_len == pmtu && !h->pad;

	if ((h->payload_len + h->pad) & 3 || h->payload_len > pmtu)
		return false;
	/* An empty LAST would have made the packet before it the last one. */
	return h->flags & BTH_F_START || h->payload_len;
}
