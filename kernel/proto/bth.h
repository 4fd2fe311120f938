/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RoCE transport headers: opcodes, the opcode table, parse and build.
 *
 * Input is a byte range and its length, output a struct by value; every
 * length is checked before a byte is read. Source: IBA vol. 1 clause 9,
 * annexes A16 (RoCE) and A17 (RoCEv2).
 */
#ifndef SRN_PROTO_BTH_H
#define SRN_PROTO_BTH_H

#include "types.h"

SRN_PROTO_BEGIN

#define ROCE_UDP_PORT 4791
#define ROCE_QPN_GSI 1u
#define ROCE_QPN_MCAST 0xffffffu
#define ROCE_GSI_QKEY 0x80010000u
#define ROCE_PKEY_DEFAULT 0xffffu

#define BTH_BYTES 12
#define DETH_BYTES 8
#define RETH_BYTES 16
#define AETH_BYTES 4
#define ATOMICETH_BYTES 28
#define ATOMICACKETH_BYTES 8
#define IMMDT_BYTES 4
#define IETH_BYTES 4
#define CNP_PAD_BYTES 16
#define ICRC_BYTES 4

/* Largest BTH plus extended headers of any opcode built here (atomics). */
#define ROCE_HDR_MAX (BTH_BYTES + ATOMICETH_BYTES)

/* Largest BTH .. ICRC: every L3 and L4 length field has 16 bits. */
#define ROCE_TRANSPORT_MAX 0xffffu

/* Largest message, and so the largest RETH.DMALen (IBA C9-3). */
#define ROCE_MSG_MAX 0x80000000u

/* Transport class, BTH.OpCode[7:5]. */
enum roce_class {
	ROCE_CLASS_RC = 0x00,
	ROCE_CLASS_UC = 0x20,
	ROCE_CLASS_RD = 0x40,
	ROCE_CLASS_UD = 0x60,
	ROCE_CLASS_CNP = 0x80,
	ROCE_CLASS_XRC = 0xa0,
	ROCE_CLASS_MASK = 0xe0,
};

/* Operation, BTH.OpCode[4:0], added to a class. */
enum roce_op {
	ROCE_OP_SEND_FIRST = 0x00,
	ROCE_OP_SEND_MIDDLE = 0x01,
	ROCE_OP_SEND_LAST = 0x02,
	ROCE_OP_SEND_LAST_IMM = 0x03,
	ROCE_OP_SEND_ONLY = 0x04,
	ROCE_OP_SEND_ONLY_IMM = 0x05,
	ROCE_OP_WRITE_FIRST = 0x06,
	ROCE_OP_WRITE_MIDDLE = 0x07,
	ROCE_OP_WRITE_LAST = 0x08,
	ROCE_OP_WRITE_LAST_IMM = 0x09,
	ROCE_OP_WRITE_ONLY = 0x0a,
	ROCE_OP_WRITE_ONLY_IMM = 0x0b,
	ROCE_OP_READ_REQUEST = 0x0c,
	ROCE_OP_READ_RESP_FIRST = 0x0d,
	ROCE_OP_READ_RESP_MIDDLE = 0x0e,
	ROCE_OP_READ_RESP_LAST = 0x0f,
	ROCE_OP_READ_RESP_ONLY = 0x10,
	ROCE_OP_ACK = 0x11,
	ROCE_OP_ATOMIC_ACK = 0x12,
	ROCE_OP_COMPARE_SWAP = 0x13,
	ROCE_OP_FETCH_ADD = 0x14,
	ROCE_OP_SEND_LAST_INV = 0x16,
	ROCE_OP_SEND_ONLY_INV = 0x17,

	ROCE_UD_SEND_ONLY = 0x64,
	ROCE_UD_SEND_ONLY_IMM = 0x65,
	ROCE_CNP = 0x81,
};

/*
 * What the opcode table says of an opcode (bth_op_flags()). READ_REQUEST,
 * ACK and the atomics are one packet by nature and have no place flags.
 */
enum bth_flag {
	BTH_F_KNOWN = 1 << 0,
	/* extended headers, in wire order */
	BTH_F_DETH = 1 << 1,
	BTH_F_RETH = 1 << 2,
	BTH_F_ATOMICETH = 1 << 3,
	BTH_F_AETH = 1 << 4,
	BTH_F_ATOMICACKETH = 1 << 5,
	BTH_F_IMM = 1 << 6,
	BTH_F_IETH = 1 << 7,
	BTH_F_CNP = 1 << 8,
	/* place in a message */
	BTH_F_START = 1 << 9,	/* FIRST or ONLY */
	BTH_F_END = 1 << 10,	/* LAST or ONLY */
	BTH_F_MIDDLE = 1 << 11,
	/* kind */
	BTH_F_SEND = 1 << 12,
	BTH_F_WRITE = 1 << 13,
	BTH_F_READ_REQ = 1 << 14,
	BTH_F_READ_RESP = 1 << 15,
	BTH_F_ATOMIC = 1 << 16,	/* COMPARE_SWAP, FETCH_ADD; ATOMIC_ACK has BTH_F_ATOMICACKETH */
	BTH_F_RESPONSE = 1 << 17,	/* ACK, READ_RESP*, ATOMIC_ACK */
	BTH_F_REQUEST = 1 << 18,
	/* takes a receive WQE: SEND at FIRST or ONLY, WRITE_*_IMM; SEND_LAST has it already */
	BTH_F_RWQE = 1 << 19,
	BTH_F_PAYLOAD = 1 << 20,	/* may carry payload */
};

/**
 * struct roce_hdr - BTH and extended headers of one packet, in host order
 * @opcode: BTH.OpCode, class included
 * @pad: PadCnt, 0..3
 * @tver: transport version, 0 for every packet that is processed
 * @se: solicited event
 * @migreq: MigReq; 1 in the migration state Migrated, so in all that is sent:
 *          some hardware refuses 0
 * @ackreq: AckReq
 * @fecn: FECN bit
 * @becn: BECN bit
 * @pkey: P_Key
 * @dqpn: destination QPN, 24 bits
 * @psn: PSN, 24 bits
 * @va: RETH or AtomicETH virtual address
 * @rkey: RETH or AtomicETH R_Key
 * @dmalen: RETH DMA length, bytes of the whole message
 * @swap_add: AtomicETH swap or add operand
 * @compare: AtomicETH compare operand
 * @orig: AtomicAckETH original remote data
 * @imm: ImmDt, as on the wire (opaque, network order)
 * @inv_rkey: IETH R_Key
 * @qkey: DETH Q_Key
 * @sqpn: DETH source QPN
 * @syndrome: AETH syndrome (aeth.h)
 * @msn: AETH MSN, 24 bits
 * @flags: enum bth_flag of @opcode
 * @hdr_len: BTH plus extended headers, bytes
 * @payload_len: payload without pad and ICRC, bytes
 */
struct roce_hdr {
	u8 opcode;
	u8 pad;
	u8 tver;
	bool se;
	bool migreq;
	bool ackreq;
	bool fecn;
	bool becn;
	u16 pkey;
	u8 syndrome;
	u32 dqpn;
	u32 psn;
	u32 msn;
	u64 va;
	u32 rkey;
	u32 dmalen;
	u64 swap_add;
	u64 compare;
	u64 orig;
	__be32 imm;
	u32 inv_rkey;
	u32 qkey;
	u32 sqpn;
	u32 flags;
	u16 hdr_len;
	u16 payload_len;
};

enum bth_err {
	BTH_OK = 0,
	BTH_ERR_SHORT,		/* shorter than headers + pad + ICRC */
	BTH_ERR_TVER,		/* transport version not 0 */
	BTH_ERR_OPCODE,		/* no entry in the table */
	BTH_ERR_ALIGN,		/* length not a multiple of 4, or above ROCE_TRANSPORT_MAX */
};

/** bth_op_flags() - enum bth_flag set of an opcode, 0 when it is unknown. */
u32 bth_op_flags(u8 opcode);

/** bth_op_hdr_len() - BTH plus extended headers of an opcode in bytes, 0 when it is unknown. */
u8 bth_op_hdr_len(u8 opcode);

/**
 * bth_parse() - read the transport headers of one packet
 * @t: first byte of the BTH; at least min(@len, ROCE_HDR_MAX) bytes readable
 * @len: transport length T of IBA A17: BTH .. ICRC, taken from the UDP or GRH length
 * @h: filled on BTH_OK; on BTH_ERR_OPCODE the BTH fields are valid (so that a
 *     reserved RC operation can be refused with a NAK), else undefined. Fields
 *     of headers that the opcode does not have are left as they were.
 *
 * Any context. R014, R019, R020..R022 (length part).
 * Return: BTH_OK or the first fault.
 */
enum bth_err bth_parse(const u8 *t, size_t len, struct roce_hdr *h);

/**
 * bth_build() - write BTH and the extended headers that @h->opcode calls for
 * @t: destination, ROCE_HDR_MAX bytes
 * @h: fields; flags, hdr_len and payload_len are not read
 *
 * Return: bytes written, 0 when the opcode is unknown.
 */
size_t bth_build(u8 *t, const struct roce_hdr *h);

/** bth_set_ackreq() - set AckReq in a BTH that is already built. */
static inline void bth_set_ackreq(u8 *t)
{
	t[8] |= 0x80;
}

/**
 * enum roce_seq - where the responder stands inside a message (4.7)
 */
enum roce_seq {
	ROCE_SEQ_IDLE = 0,
	ROCE_SEQ_SEND,
	ROCE_SEQ_WRITE,
};

/**
 * bth_seq_next() - may a request packet follow? (R023)
 * @seq: where the responder stands
 * @flags: enum bth_flag of the packet
 * @next: state after the packet when it is allowed
 */
bool bth_seq_next(enum roce_seq seq, u32 flags, enum roce_seq *next);

/**
 * bth_len_ok() - payload and pad fit the packet's place in its message (R020..R022)
 * @h: parsed header of a request or read response
 * @pmtu: path MTU in bytes
 */
bool bth_len_ok(const struct roce_hdr *h, u32 pmtu);

SRN_PROTO_END

#endif /* SRN_PROTO_BTH_H */
