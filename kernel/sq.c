// SPDX-License-Identifier: GPL-2.0
/*
 * Send queues: posting by kernel consumers, who runs a queue, and taking WQEs
 * off it for the transport's requester.
 *
 * Entries of a user queue can change at any moment. Each is copied once into a
 * kernel snapshot, and the snapshot is checked and used. Fetching, retiring and
 * flushing run under the transport's requester lock, with BH off.
 */
#include <linux/bottom_half.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait_bit.h>

#include "softrnic.h"
#include "transport.h"

#define SRN_MAX_MESSAGE BIT_ULL(31)

/* Runs of one owner before it leaves the rest to the work item. */
#define SQ_RUNS 16

static_assert((int)SRN_WR_WRITE == (int)IB_WR_RDMA_WRITE &&
	      (int)SRN_WR_WRITE_IMM == (int)IB_WR_RDMA_WRITE_WITH_IMM &&
	      (int)SRN_WR_SEND == (int)IB_WR_SEND &&
	      (int)SRN_WR_SEND_IMM == (int)IB_WR_SEND_WITH_IMM &&
	      (int)SRN_WR_READ == (int)IB_WR_RDMA_READ &&
	      (int)SRN_WR_COMP_SWAP == (int)IB_WR_ATOMIC_CMP_AND_SWP &&
	      (int)SRN_WR_FETCH_ADD == (int)IB_WR_ATOMIC_FETCH_AND_ADD &&
	      (int)SRN_WR_LOCAL_INV == (int)IB_WR_LOCAL_INV &&
	      (int)SRN_WR_SEND_INV == (int)IB_WR_SEND_WITH_INV &&
	      (int)SRN_WR_REG_MR == (int)IB_WR_REG_MR);
static_assert((int)SRN_SQE_FENCE == (int)IB_SEND_FENCE &&
	      (int)SRN_SQE_SIGNALED == (int)IB_SEND_SIGNALED &&
	      (int)SRN_SQE_SOLICITED == (int)IB_SEND_SOLICITED &&
	      (int)SRN_SQE_INLINE == (int)IB_SEND_INLINE);

#define SQE_FLAGS \
	(SRN_SQE_FENCE | SRN_SQE_SIGNALED | SRN_SQE_SOLICITED | SRN_SQE_INLINE)

#define OP(name) BIT_ULL(SRN_WR_##name)
#define OPS_SEND (OP(SEND) | OP(SEND_IMM))
#define OPS_ATOMIC (OP(COMP_SWAP) | OP(FETCH_ADD))
#define OPS_INLINE (OPS_SEND | OP(SEND_INV) | OP(WRITE) | OP(WRITE_IMM))
#define OPS_RC \
	(OPS_INLINE | OP(READ) | OPS_ATOMIC | OP(LOCAL_INV) | OP(REG_MR))
#define OPS_NO_DATA (OP(LOCAL_INV) | OP(REG_MR))
#define OPS_SINK (OP(READ) | OPS_ATOMIC)

/* What may be posted to @qp. Keys of user space cannot be fast registered. */
static u64 sq_ops(const struct srn_qp *qp)
{
	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
		return qp->user ? OPS_RC & ~OP(REG_MR) : OPS_RC;
	case IB_QPT_UD:
	case IB_QPT_GSI:
		return OPS_SEND;
	default:
		return 0;
	}
}

static bool op_in(u32 opcode, u64 ops)
{
	return opcode < 64 && (BIT_ULL(opcode) & ops);
}

static u8 sq_wc_opcode(u8 opcode)
{
	switch (opcode) {
	case SRN_WR_WRITE:
	case SRN_WR_WRITE_IMM:
		return IB_WC_RDMA_WRITE;
	case SRN_WR_READ:
		return IB_WC_RDMA_READ;
	case SRN_WR_COMP_SWAP:
		return IB_WC_COMP_SWAP;
	case SRN_WR_FETCH_ADD:
		return IB_WC_FETCH_ADD;
	case SRN_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case SRN_WR_BIND_MW:
		return IB_WC_BIND_MW;
	case SRN_WR_REG_MR:
		return SRN_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

/* Posting by kernel consumers. */

static int sq_fill_inline(const struct srn_sq *sq, const struct ib_send_wr *wr,
			  struct srn_sqe *sqe)
{
	u8 *to = (u8 *)(sqe + 1);
	u64 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (len > sq->max_inline)
		return -EINVAL;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
		to += sge->length;
	}
	sqe->inline_len = len;
	return 0;
}

static int sq_fill_ud(struct srn_qp *qp, const struct ib_send_wr *wr,
		      struct srn_sqe *sqe)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (!ud->ah || ud->ah->pd != qp->ibqp.pd)
		return -EINVAL;
	sqe->ud.ah = srn_ah_number(ud->ah);
	sqe->ud.remote_qpn = ud->remote_qpn;
	sqe->ud.remote_qkey = ud->remote_qkey;
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		sqe->ud.pkey_index = ud->pkey_index;
	return 0;
}

static int sq_fill_atomic(const struct ib_send_wr *wr, struct srn_sqe *sqe)
{
	const struct ib_atomic_wr *atomic = atomic_wr(wr);

	if (wr->num_sge != 1 || wr->sg_list[0].length != sizeof(u64) ||
	    !IS_ALIGNED(atomic->remote_addr, sizeof(u64)))
		return -EINVAL;
	sqe->atomic.remote_addr = atomic->remote_addr;
	sqe->atomic.rkey = atomic->rkey;
	sqe->atomic.compare_add = atomic->compare_add;
	sqe->atomic.swap = atomic->swap;
	return 0;
}

static void sq_fill_reg(const struct ib_send_wr *wr, struct srn_sqe *sqe)
{
	const struct ib_reg_wr *reg = reg_wr(wr);

	sqe->reg.iova = reg->mr->iova;
	sqe->reg.length = reg->mr->length;
	sqe->reg.mr_index = to_smr(reg->mr)->index;
	sqe->reg.key = reg->key;
	sqe->reg.access = reg->access;
}

/* Make the ring entry of @wr; half of it may be written on failure. */
static int sq_fill(struct srn_qp *qp, const struct ib_send_wr *wr,
		   struct srn_sqe *sqe)
{
	struct srn_sge *sge = (struct srn_sge *)(sqe + 1);
	u32 op = wr->opcode;
	int ret = 0, i;

	if (!op_in(op, sq_ops(qp)) || (wr->send_flags & ~SQE_FLAGS))
		return -EINVAL;

	memset(sqe, 0, sizeof(*sqe));
	sqe->wr_id = wr->wr_id;
	sqe->opcode = op;
	sqe->flags = wr->send_flags;

	if (op == SRN_WR_SEND_IMM || op == SRN_WR_WRITE_IMM)
		sqe->imm = wr->ex.imm_data;
	else if (op == SRN_WR_SEND_INV || op == SRN_WR_LOCAL_INV)
		sqe->inv_rkey = wr->ex.invalidate_rkey;

	if (qp->ibqp.qp_type != IB_QPT_RC) {
		ret = sq_fill_ud(qp, wr, sqe);
	} else if (op_in(op, OP(WRITE) | OP(WRITE_IMM) | OP(READ))) {
		sqe->rdma.remote_addr = rdma_wr(wr)->remote_addr;
		sqe->rdma.rkey = rdma_wr(wr)->rkey;
	} else if (op_in(op, OPS_ATOMIC)) {
		ret = sq_fill_atomic(wr, sqe);
	} else if (op == SRN_WR_REG_MR) {
		sq_fill_reg(wr, sqe);
	}
	if (ret)
		return ret;

	/* SGEs and IB_SEND_INLINE mean nothing here and consumers leave them in. */
	if (op_in(op, OPS_NO_DATA)) {
		sqe->flags &= ~SRN_SQE_INLINE;
		return 0;
	}
	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE)
		return op_in(op, OPS_INLINE) ?
			sq_fill_inline(&qp->sq, wr, sqe) : -EINVAL;

	sqe->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		sge[i].addr = wr->sg_list[i].addr;
		sge[i].length = wr->sg_list[i].length;
		sge[i].lkey = wr->sg_list[i].lkey;
	}
	return 0;
}

int srn_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr)
{
	struct srn_qp *qp = to_sqp(ibqp);
	struct srn_sq *sq = &qp->sq;
	struct srn_ring *ring = &sq->ring;
	unsigned long flags;
	int ret = 0;
	u32 cons;

	if (READ_ONCE(qp->state) < IB_QPS_RTS || (qp->user && wr)) {
		*bad_wr = wr;
		return -EINVAL;
	}
	if (qp->user) {
		srn_sq_kick(qp);
		return 0;
	}

	spin_lock_irqsave(&sq->post_lock, flags);
	/* Pairs with srn_ring_publish_cons(): the entry may be overwritten. */
	cons = smp_load_acquire(&ring->mem->ctl->cons);
	for (; wr; wr = wr->next) {
		ret = -ENOMEM;
		if (sq->prod - cons < ring->count)
			ret = sq_fill(qp, wr, srn_ring_entry(ring, sq->prod));
		if (ret) {
			*bad_wr = wr;
			break;
		}
		sq->prod++;
	}
	/* Pairs with the acquire of srn_ring_prod(). */
	smp_store_release(&ring->mem->ctl->prod, sq->prod);
	spin_unlock_irqrestore(&sq->post_lock, flags);

	srn_sq_kick(qp);
	return ret;
}

/* Who runs the queue. */

/* Tell user space whether the queue is being run; kernel posters always kick. */
static void sq_mark(struct srn_ring *ring, u32 kflags)
{
	if (ring->user)
		WRITE_ONCE(ring->mem->ctl->kflags, kflags);
}

/*
 * Run the queue as its owner, then again for as long as somebody left a mark
 * or user space posted without a doorbell. A queue that stopped for its window
 * is left alone: it has no mark, and prod is what it was before the last run.
 * Return: true when the rest was left to the work item, after SQ_RUNS.
 */
static bool sq_drive(struct srn_qp *qp, u32 *runs)
{
	struct srn_ring *ring = &qp->sq.ring;
	bool again;
	u32 seen;

	do {
		if (test_bit(SRN_SQ_PENDING, &qp->sq_flags)) {
			clear_bit(SRN_SQ_PENDING, &qp->sq_flags);
			/* What was marked before this is seen by the run. */
			smp_mb__after_atomic();
		}
		sq_mark(ring, SRN_RING_ACTIVE);
		seen = srn_ring_prod(ring);
		qp->dev->ops->sq_run(qp);

		again = test_bit(SRN_SQ_PENDING, &qp->sq_flags);
		if (ring->user) {
			sq_mark(ring, 0);
			smp_mb();	/* pairs with the barrier of a posting user */
			again = again || srn_ring_prod(ring) != seen;
		}
	} while (++*runs < SQ_RUNS && again);

	/* Before OWNER is given up: srn_sq_close() and then cancel stop it. */
	if (again)
		queue_work(srn_wq, &qp->sq_work);
	return again;
}

/* Give the queue up; true when a mark came too late for the owner to see. */
static bool sq_release(struct srn_qp *qp)
{
	clear_bit_unlock(SRN_SQ_OWNER, &qp->sq_flags);
	/* Pairs with the barrier of sq_acquire(); and orders wake_up_bit(). */
	smp_mb__after_atomic();
	if (unlikely(test_bit(SRN_SQ_CLOSED, &qp->sq_flags))) {
		wake_up_bit(&qp->sq_flags, SRN_SQ_OWNER);
		return false;
	}
	return test_bit(SRN_SQ_PENDING, &qp->sq_flags);
}

/* Become the owner, or leave a mark that the owner sees. */
static bool sq_acquire(struct srn_qp *qp)
{
	if (unlikely(test_bit(SRN_SQ_CLOSED, &qp->sq_flags))) {
		/* Still closed after what was posted: srn_sq_reopen() sees it. */
		smp_mb();
		if (test_bit(SRN_SQ_CLOSED, &qp->sq_flags))
			return false;
	}
	if (!test_and_set_bit_lock(SRN_SQ_OWNER, &qp->sq_flags))
		return true;
	set_bit(SRN_SQ_PENDING, &qp->sq_flags);
	/* The owner may have looked for marks already and be gone by now. */
	smp_mb__after_atomic();
	return !test_bit(SRN_SQ_CLOSED, &qp->sq_flags) &&
	       !test_and_set_bit_lock(SRN_SQ_OWNER, &qp->sq_flags);
}

void srn_sq_kick(struct srn_qp *qp)
{
	u32 runs = 0;
	bool left;

	if (irqs_disabled()) {
		if (!test_bit(SRN_SQ_CLOSED, &qp->sq_flags))
			queue_work(srn_wq, &qp->sq_work);
		return;
	}

	/*
	 * Packets of a loopback are received when BH is enabled again, or inside
	 * sq_run() when this is a softirq: such a kick finds the bit set.
	 */
	local_bh_disable();
	while (sq_acquire(qp)) {
		left = sq_drive(qp, &runs);
		if (!sq_release(qp) || left)
			break;
	}
	local_bh_enable();
}

void srn_sq_work(struct work_struct *work)
{
	srn_sq_kick(container_of(work, struct srn_qp, sq_work));
}

void srn_sq_close(struct srn_qp *qp)
{
	might_sleep();
	/* Ends the competition for the bit, so the wait is for one owner only. */
	set_bit(SRN_SQ_CLOSED, &qp->sq_flags);
	wait_on_bit_lock(&qp->sq_flags, SRN_SQ_OWNER, TASK_UNINTERRUPTIBLE);
}

void srn_sq_reopen(struct srn_qp *qp)
{
	clear_bit(SRN_SQ_CLOSED, &qp->sq_flags);
	clear_bit_unlock(SRN_SQ_OWNER, &qp->sq_flags);
	srn_sq_kick(qp);
}

/* Taking WQEs off the queue. */

static void wqe_fail(struct srn_wqe *wqe, u8 status, u8 vendor_err)
{
	wqe->status = status;
	wqe->vendor_err = vendor_err;
	wqe->len = 0;
	wqe->sqe.num_sge = 0;
	wqe->sqe.inline_len = 0;
	wqe->sqe.flags &= ~SRN_SQE_INLINE;
}

/* Copy and check what follows the entry's head: inline data or SGEs. */
static void wqe_load_data(struct srn_qp *qp, struct srn_wqe *wqe,
			  const void *data)
{
	struct srn_sq *sq = &qp->sq;
	struct srn_sqe *sqe = &wqe->sqe;
	struct srn_sge sge[SRN_MAX_SGE];
	bool sink = op_in(sqe->opcode, OPS_SINK);
	u64 len;

	if (sqe->flags & SRN_SQE_INLINE) {
		sqe->num_sge = 0;
		if (!op_in(sqe->opcode, OPS_INLINE) ||
		    sqe->inline_len > sq->max_inline) {
			wqe_fail(wqe, IB_WC_LOC_QP_OP_ERR, SRN_VERR_WQE);
			return;
		}
		memcpy(srn_wqe_inline(wqe), data, sqe->inline_len);
		wqe->len = sqe->inline_len;
		return;
	}

	sqe->inline_len = 0;
	if (sqe->num_sge > sq->max_sge) {
		wqe_fail(wqe, IB_WC_LOC_QP_OP_ERR, SRN_VERR_WQE);
		return;
	}
	memcpy(sge, data, sqe->num_sge * sizeof(sge[0]));
	/* No compiler may go back to the ring for what was copied. */
	barrier();
	if (srn_sge_bind(qp->dev, qp->ibqp.pd, !qp->user, sge, sqe->num_sge,
			 sink ? IB_ACCESS_LOCAL_WRITE : 0, wqe->sge, &len)) {
		wqe_fail(wqe, IB_WC_LOC_PROT_ERR, SRN_VERR_LKEY);
		return;
	}
	if (len > SRN_MAX_MESSAGE) {
		srn_sge_put(wqe->sge, sqe->num_sge);
		wqe_fail(wqe, IB_WC_LOC_LEN_ERR, SRN_VERR_LENGTH);
		return;
	}
	wqe->len = len;
}

static void wqe_load(struct srn_qp *qp, struct srn_wqe *wqe,
		     const struct srn_sqe *entry)
{
	struct srn_sqe *sqe = &wqe->sqe;

	memcpy(sqe, entry, sizeof(*sqe));
	/* No compiler may go back to the ring for what was copied. */
	barrier();
	memset(wqe->priv, 0, sizeof(wqe->priv));
	wqe->status = IB_WC_SUCCESS;
	wqe->vendor_err = SRN_VERR_NONE;
	wqe->rsvd = 0;
	wqe->len = 0;
	sqe->flags &= SQE_FLAGS;

	if (!op_in(sqe->opcode, sq_ops(qp))) {
		wqe_fail(wqe, IB_WC_LOC_QP_OP_ERR, SRN_VERR_WQE);
		return;
	}
	if (op_in(sqe->opcode, OPS_NO_DATA)) {
		sqe->num_sge = 0;
		sqe->inline_len = 0;
		sqe->flags &= ~SRN_SQE_INLINE;
		return;
	}
	wqe_load_data(qp, wqe, entry + 1);
	if (op_in(sqe->opcode, OPS_ATOMIC) && wqe->status == IB_WC_SUCCESS &&
	    (wqe->len != sizeof(u64) ||
	     !IS_ALIGNED(sqe->atomic.remote_addr, sizeof(u64)))) {
		srn_sge_put(wqe->sge, sqe->num_sge);
		wqe_fail(wqe, IB_WC_LOC_QP_OP_ERR, SRN_VERR_WQE);
	}
}

/*
 * WQEs posted and not fetched, or -EPROTO when prod is impossible. *prod is
 * the index that the answer was made from, read once.
 */
static int sq_posted(const struct srn_sq *sq, u32 *prod)
{
	u32 fetched = sq->next - sq->ring.idx;
	u32 posted;

	*prod = srn_ring_prod(&sq->ring);
	posted = *prod - sq->ring.idx;
	if (posted > sq->ring.count || posted < fetched)
		return -EPROTO;
	return posted - fetched;
}

struct srn_wqe *srn_sq_fetch(struct srn_qp *qp)
{
	struct srn_sq *sq = &qp->sq;
	struct srn_wqe *wqe;
	u32 prod;
	int n;

	n = sq_posted(sq, &prod);
	if (n < 0)
		return ERR_PTR(n);
	if (!n || sq->next - sq->ring.idx >= sq->depth)
		return NULL;
	wqe = srn_sq_wqe(qp, sq->next);
	wqe_load(qp, wqe, srn_ring_entry(&sq->ring, sq->next));
	sq->next++;
	return wqe;
}

static int sq_complete(struct srn_qp *qp, u64 wr_id, u8 opcode, u8 status,
		       u8 vendor_err, u32 byte_len)
{
	struct srn_cqe cqe = {
		.wr_id = wr_id,
		.status = status,
		.opcode = sq_wc_opcode(opcode),
		.byte_len = byte_len,
		.qp_num = qp->qpn,
		.vendor_err = vendor_err,
		.port_num = 1,
		.vlan_id = 0xffff,
	};

	return srn_cq_push(qp->send_cq, &qp->ibqp, &cqe, false);
}

/* The oldest WQE leaves: its memory, its snapshot, its place in the ring. */
static void sq_advance(struct srn_sq *sq)
{
	sq->ring.idx++;
	srn_ring_publish_cons(&sq->ring);
}

int srn_sq_retire(struct srn_qp *qp, u32 byte_len)
{
	struct srn_sq *sq = &qp->sq;
	struct srn_wqe *wqe = srn_sq_wqe(qp, sq->ring.idx);

	srn_sge_put(wqe->sge, wqe->sqe.num_sge);
	/* First the place, then the completion that tells of it. */
	sq_advance(sq);
	if (wqe->status == IB_WC_SUCCESS && !sq->sig_all &&
	    !(wqe->sqe.flags & SRN_SQE_SIGNALED))
		return 0;
	return sq_complete(qp, wqe->sqe.wr_id, wqe->sqe.opcode, wqe->status,
			   wqe->vendor_err, byte_len);
}

/* Drop the snapshot of the oldest WQE, which was fetched. */
static struct srn_wqe *sq_drop_oldest(struct srn_qp *qp)
{
	struct srn_wqe *wqe = srn_sq_wqe(qp, qp->sq.ring.idx);

	srn_sge_put(wqe->sge, wqe->sqe.num_sge);
	sq_advance(&qp->sq);
	return wqe;
}

int srn_sq_flush(struct srn_qp *qp)
{
	struct srn_sq *sq = &qp->sq;
	struct srn_cq *cq = qp->send_cq;
	int ret = 0, n;
	u32 prod;

	n = sq_posted(sq, &prod);
	while (sq->ring.idx != sq->next) {
		const struct srn_wqe *wqe = sq_drop_oldest(qp);

		ret = srn_cq_merge(cq, ret,
				   sq_complete(qp, wqe->sqe.wr_id,
					       wqe->sqe.opcode,
					       IB_WC_WR_FLUSH_ERR,
					       SRN_VERR_NONE, 0));
	}
	while (n-- > 0) {
		const struct srn_sqe *sqe = srn_ring_entry(&sq->ring, sq->next);
		u64 wr_id = READ_ONCE(sqe->wr_id);
		u8 opcode = READ_ONCE(sqe->opcode);

		sq->next++;
		sq_advance(sq);
		ret = srn_cq_merge(cq, ret,
				   sq_complete(qp, wr_id, opcode,
					       IB_WC_WR_FLUSH_ERR,
					       SRN_VERR_NONE, 0));
	}
	return ret;
}

void srn_sq_reset(struct srn_qp *qp)
{
	struct srn_sq *sq = &qp->sq;

	while (sq->ring.idx != sq->next)
		sq_drop_oldest(qp);
	sq->ring.idx = srn_ring_prod(&sq->ring);
	sq->next = sq->ring.idx;
	srn_ring_publish_cons(&sq->ring);
}
