/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Filling in send queue entries; shared by ibv_post_send() and ibv_wr_*().
 *
 * Entries are built in the ring: the kernel does not look past prod. The
 * caller holds the SQ lock.
 */
#ifndef SOFTRNIC_SQE_H
#define SOFTRNIC_SQE_H

#include <string.h>

#include "softrnic.h"

static_assert(sizeof(struct ibv_sge) == sizeof(struct srn_sge), "SGE layout");
static_assert(offsetof(struct ibv_sge, length) ==
		      offsetof(struct srn_sge, length), "SGE layout");
static_assert(offsetof(struct ibv_sge, lkey) == offsetof(struct srn_sge, lkey),
	      "SGE layout");
static_assert((int)SRN_SQE_FENCE == IBV_SEND_FENCE &&
	      (int)SRN_SQE_SIGNALED == IBV_SEND_SIGNALED &&
	      (int)SRN_SQE_SOLICITED == IBV_SEND_SOLICITED &&
	      (int)SRN_SQE_INLINE == IBV_SEND_INLINE, "flags");
static_assert((int)SRN_WR_WRITE == IBV_WR_RDMA_WRITE &&
	      (int)SRN_WR_SEND == IBV_WR_SEND &&
	      (int)SRN_WR_LOCAL_INV == IBV_WR_LOCAL_INV &&
	      (int)SRN_WR_SEND_INV == IBV_WR_SEND_WITH_INV, "opcodes");

#define SRN_SQE_FLAGS                                                          \
	(SRN_SQE_FENCE | SRN_SQE_SIGNALED | SRN_SQE_SOLICITED | SRN_SQE_INLINE)

/* Opcodes, as bits, that may carry inline data. */
#define SRN_INLINE_OPS                                                         \
	(1u << SRN_WR_WRITE | 1u << SRN_WR_WRITE_IMM | 1u << SRN_WR_SEND |     \
	 1u << SRN_WR_SEND_IMM | 1u << SRN_WR_SEND_INV)

/* Opcodes that take exactly one SGE of 8 bytes. */
#define SRN_ATOMIC_OPS (1u << SRN_WR_COMP_SWAP | 1u << SRN_WR_FETCH_ADD)

static inline void *srn_sqe_data(struct srn_sqe *sqe)
{
	return sqe + 1;
}

/* May the user post in the state that the QP was last brought to? */
static inline int srn_sq_state_error(const struct srn_qp *qp)
{
	switch (qp->vqp.qp.state) {
	case IBV_QPS_RESET:
	case IBV_QPS_INIT:
	case IBV_QPS_RTR:
		return EINVAL;
	default:
		return 0;
	}
}

static inline void srn_sqe_init(struct srn_sqe *sqe, uint64_t wr_id,
				uint8_t opcode, uint16_t flags)
{
	sqe->wr_id = wr_id;
	sqe->opcode = opcode;
	sqe->num_sge = 0;
	sqe->flags = flags;
	sqe->inline_len = 0;
	sqe->imm = 0;
	sqe->rsvd0 = 0;
}

static inline void srn_sqe_rdma(struct srn_sqe *sqe, uint64_t remote_addr,
				uint32_t rkey)
{
	sqe->rdma.remote_addr = remote_addr;
	sqe->rdma.rkey = rkey;
	sqe->rdma.rsvd = 0;
}

static inline int srn_sqe_atomic(struct srn_sqe *sqe, uint64_t remote_addr,
				 uint32_t rkey, uint64_t compare_add,
				 uint64_t swap)
{
	if (remote_addr & 7)
		return EINVAL;
	sqe->atomic.remote_addr = remote_addr;
	sqe->atomic.rkey = rkey;
	sqe->atomic.rsvd = 0;
	sqe->atomic.compare_add = compare_add;
	sqe->atomic.swap = swap;
	return 0;
}

static inline int srn_sqe_ud(struct srn_sqe *sqe, struct ibv_ah *ah,
			     uint32_t remote_qpn, uint32_t remote_qkey)
{
	if (!ah)
		return EINVAL;
	sqe->ud.ah = to_srn_ah(ah)->ah;
	sqe->ud.remote_qpn = remote_qpn;
	sqe->ud.remote_qkey = remote_qkey;
	sqe->ud.pkey_index = 0;
	sqe->ud.rsvd = 0;
	return 0;
}

static inline int srn_sqe_sges(const struct srn_qp *qp, struct srn_sqe *sqe,
			       const struct ibv_sge *list, size_t num)
{
	if (num > qp->max_send_sge)
		return EINVAL;
	if (num)
		memcpy(srn_sqe_data(sqe), list, num * sizeof(*list));
	sqe->num_sge = num;
	return 0;
}

/*
 * Append inline data at *sum. What is left is compared, not the new sum, so
 * that no length can wrap. A refused entry is never published.
 */
static inline int srn_sqe_inline(const struct srn_qp *qp, struct srn_sqe *sqe,
				 size_t *sum, const void *data, size_t len)
{
	if (len > qp->max_inline - *sum)
		return EINVAL;
	if (len)
		memcpy((uint8_t *)srn_sqe_data(sqe) + *sum, data, len);
	*sum += len;
	return 0;
}

/* Does the WR have the data that its opcode asks for? */
static inline int srn_sqe_check_data(struct srn_sqe *sqe)
{
	const struct srn_sge *sge = srn_sqe_data(sqe);

	if (sqe->opcode == SRN_WR_LOCAL_INV)
		return sqe->num_sge ? EINVAL : 0;
	if (!(1u << sqe->opcode & SRN_ATOMIC_OPS))
		return 0;
	return sqe->num_sge == 1 && sge->length == 8 ? 0 : EINVAL;
}

/*
 * Publish the entries before idx. Return: whether the kernel needs a doorbell,
 * which is best rung after the lock is dropped.
 */
static inline bool srn_sq_publish(struct srn_qp *qp)
{
	srn_ring_publish_prod(&qp->sq);
	return !(srn_ring_kflags(&qp->sq) & SRN_RING_ACTIVE);
}

#endif /* SOFTRNIC_SQE_H */
