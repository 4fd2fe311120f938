/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB */
/*
 * The kernel/user contract of softrnic: shared rings and the driver part of
 * the verbs commands. Used by the module and by the rdma-core provider.
 *
 * Each queue is one mapping: a struct srn_ring_ctl, then the entries. Indices
 * are unmasked 32-bit counters; entry number i lies at
 * SRN_RING_ENTRIES + (i & (count - 1)) * stride, and count is a power of two.
 * The producer writes entries, then store-releases prod; the consumer
 * load-acquires prod, reads, then store-releases cons. The kernel keeps its own
 * copy of the index it owns and never reads it back from here, copies each
 * entry once before it looks at it, and treats an impossible user index as a
 * fault of that queue alone.
 */
#ifndef SOFTRNIC_ABI_H
#define SOFTRNIC_ABI_H

#include <linux/types.h>

/* Changes only when an older provider or module could no longer work. */
#define SRN_ABI_VERSION 1

/* Own driver id, far from enum rdma_driver_id: "SRN1". */
#define SRN_DRIVER_ID 0x53524e31

#define SRN_RING_ENTRIES 128	/* bytes before the first entry */

#define SRN_MAX_SGE 32
#define SRN_MAX_INLINE 1024

/**
 * struct srn_ring_ctl - head of each shared queue
 * @prod: entries produced so far (user for SQ, RQ, SRQ; kernel for CQ)
 * @kflags: SRN_RING_* written by the kernel, advice for the user
 * @cons: entries consumed so far (kernel for SQ, RQ, SRQ; user for CQ)
 * @arm: CQ only: SRN_ARM_* in the low two bits, above them the low 30 bits of
 *       cons when it was armed, so that a completion that was polled before is never
 *       the one that raises the event. The user stores it, the kernel exchanges it
 *       for SRN_ARM_NONE when it raises the event
 *
 * SQ: @cons moves when a WQE has completed, signalled or not.
 */
struct srn_ring_ctl {
	__u32 prod;
	__u32 pad0[15];
	__u32 cons;
	__u32 kflags;
	__u32 arm;
	__u32 pad1[13];
};

/*
 * SQ: the kernel is draining this queue and will see what is produced before
 * it stops, so no doorbell is needed. The producer stores prod, executes a
 * full barrier, then reads kflags; the kernel clears the flag, executes a full
 * barrier, then reads prod once more.
 */
#define SRN_RING_ACTIVE (1u << 0)
/* RQ: the QP is in error; ring the doorbell after a post so that it is flushed. */
#define SRN_RING_DOORBELL (1u << 1)

#define SRN_ARM_NONE 0u
#define SRN_ARM_SOLICITED 1u
#define SRN_ARM_NEXT 2u
#define SRN_ARM_MODE 3u
#define SRN_ARM_CONS_SHIFT 2

/* One scatter/gather element; same layout as struct ibv_sge. */
struct srn_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/*
 * srn_sqe.opcode: the numbers that enum ibv_wr_opcode and the kernel's enum
 * ib_wr_opcode share.
 */
enum srn_wr_opcode {
	SRN_WR_WRITE = 0,
	SRN_WR_WRITE_IMM = 1,
	SRN_WR_SEND = 2,
	SRN_WR_SEND_IMM = 3,
	SRN_WR_READ = 4,
	SRN_WR_COMP_SWAP = 5,
	SRN_WR_FETCH_ADD = 6,
	SRN_WR_LOCAL_INV = 7,
	SRN_WR_BIND_MW = 8,
	SRN_WR_SEND_INV = 9,
	SRN_WR_REG_MR = 32,	/* kernel consumers only */
};

/* srn_sqe.flags: the values of enum ib_send_flags. */
#define SRN_SQE_FENCE (1u << 0)
#define SRN_SQE_SIGNALED (1u << 1)
#define SRN_SQE_SOLICITED (1u << 2)
#define SRN_SQE_INLINE (1u << 3)

/**
 * struct srn_sqe - send queue entry; 64 bytes, then SGEs or inline data
 * @wr_id: returned in the completion
 * @opcode: enum srn_wr_opcode
 * @num_sge: SGEs that follow; 0 when inline
 * @flags: SRN_SQE_*
 * @inline_len: bytes of inline data that follow (SRN_SQE_INLINE)
 * @imm: immediate data in network order (*_IMM)
 * @inv_rkey: key to invalidate (SEND_INV, LOCAL_INV)
 */
struct srn_sqe {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 num_sge;
	__u16 flags;
	__u32 inline_len;
	union {
		__be32 imm;
		__u32 inv_rkey;
	};
	__u32 rsvd0;
	union {
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 rsvd;
		} rdma;
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 rsvd;
			__aligned_u64 compare_add;
			__aligned_u64 swap;
		} atomic;
		struct {
			__u32 ah;	/* handle from create_ah */
			__u32 remote_qpn;
			__u32 remote_qkey;
			__u16 pkey_index;
			__u16 rsvd;
		} ud;
		struct {	/* SRN_WR_REG_MR */
			__aligned_u64 iova;
			__aligned_u64 length;
			__u32 mr_index;
			__u32 key;
			__u32 access;
			__u32 rsvd;
		} reg;
		__u8 raw[40];
	};
};

#define SRN_SQE_BYTES 64

/**
 * struct srn_rqe - receive queue entry of a QP or SRQ; SGEs follow
 */
struct srn_rqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 rsvd;
};

#define SRN_RQE_BYTES 16

/* srn_cqe.wc_flags */
#define SRN_WC_GRH (1u << 0)
#define SRN_WC_WITH_IMM (1u << 1)
#define SRN_WC_WITH_INV (1u << 2)

/**
 * struct srn_cqe - completion
 * @wr_id: of the WQE
 * @status: enum ib_wc_status
 * @opcode: enum ib_wc_opcode of the classic set (SEND 0, RDMA_WRITE 1,
 *          RDMA_READ 2, COMP_SWAP 3, FETCH_ADD 4, BIND_MW 5, LOCAL_INV 6,
 *          RECV 128, RECV_RDMA_WITH_IMM 129); REG_MR is SRN_WC_REG_MR
 * @wc_flags: SRN_WC_*
 * @net_type: kernel: enum rdma_network_type of a UD receive
 * @byte_len: bytes received or read
 * @imm: network order (WITH_IMM), or in @inv_rkey the key invalidated
 * @qp_num: local QP
 * @src_qp: UD receive
 * @pkey_index: GSI receive
 * @vendor_err: enum srn_vendor_err, 0 on success
 * @sl: service level of a UD receive
 * @port_num: always 1
 * @vlan_id: 0xffff when the frame was untagged
 * @timestamp: reserved, 0
 */
struct srn_cqe {
	__aligned_u64 wr_id;
	__u8 status;
	__u8 opcode;
	__u8 wc_flags;
	__u8 net_type;
	__u32 byte_len;
	union {
		__be32 imm;
		__u32 inv_rkey;
	};
	__u32 qp_num;
	__u32 src_qp;
	__u32 vendor_err;
	__u16 pkey_index;
	__u16 vlan_id;
	__u8 sl;
	__u8 port_num;
	__u8 rsvd[18];
	__aligned_u64 timestamp;
};

#define SRN_CQE_BYTES 64
#define SRN_WC_REG_MR 0x40

/*
 * Verbs commands, driver part. All lengths in bytes. mmap_off is the offset
 * to give to mmap() on the command fd; mmap_len its length.
 */
struct srn_ring_info {
	__aligned_u64 mmap_off;
	__u32 mmap_len;
	__u32 count;	/* entries, a power of two */
	__u32 stride;
	__u32 rsvd;
};

struct srn_uresp_ctx {
	__u32 abi_version;
	__u32 max_inline;
	__u32 max_sge;
	__u32 rsvd;
};

struct srn_uresp_pd {
	__u32 pdn;
	__u32 rsvd;
};

struct srn_uresp_cq {
	struct srn_ring_info cq;
};

struct srn_uresp_qp {
	struct srn_ring_info sq;
	struct srn_ring_info rq;	/* count 0 with an SRQ */
	__u32 max_inline;	/* granted */
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 rsvd;
};

struct srn_uresp_srq {
	struct srn_ring_info srq;
	__u32 srqn;
	__u32 rsvd;
};

/* modify_srq with SRQ_MAX_WR: where the resized ring is. */
struct srn_ureq_modify_srq {
	__aligned_u64 resp_addr;	/* struct srn_uresp_srq to fill */
};

struct srn_uresp_ah {
	__u32 ah;
	__u32 rsvd;
};

#ifndef __cplusplus
#define SRN_ABI_ASSERT(cond) _Static_assert(cond, #cond)
#else
#define SRN_ABI_ASSERT(cond) static_assert(cond, #cond)
#endif
SRN_ABI_ASSERT(sizeof(struct srn_ring_ctl) == SRN_RING_ENTRIES);
SRN_ABI_ASSERT(sizeof(struct srn_sge) == 16);
SRN_ABI_ASSERT(sizeof(struct srn_sqe) == SRN_SQE_BYTES);
SRN_ABI_ASSERT(sizeof(struct srn_rqe) == SRN_RQE_BYTES);
SRN_ABI_ASSERT(sizeof(struct srn_cqe) == SRN_CQE_BYTES);
SRN_ABI_ASSERT(sizeof(struct srn_ring_info) == 24);
SRN_ABI_ASSERT(sizeof(struct srn_uresp_qp) == 64);

#endif /* SOFTRNIC_ABI_H */
