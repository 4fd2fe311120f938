// SPDX-License-Identifier: GPL-2.0
/*
 * Receive queues: posting by kernel consumers, the doorbell of user space, and
 * taking receive WQEs, from the QP's own queue or its SRQ.
 *
 * Entries of a user queue can change at any moment. Each is copied once, and the
 * copy is checked and used. Posting runs in any context; taking and flushing run
 * under the transport's responder lock.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "softrnic.h"
#include "transport.h"

int srn_rqe_post(struct srn_ring *ring, u32 *prod, u32 max_sge,
		 const struct ib_recv_wr *wr, const struct ib_recv_wr **bad_wr)
{
	/* Pairs with srn_ring_publish_cons(): the entry may be overwritten. */
	u32 cons = smp_load_acquire(&ring->mem->ctl->cons);
	u32 next = *prod;
	int ret = 0;

	for (; wr; wr = wr->next) {
		struct srn_rqe *rqe;
		struct srn_sge *sge;
		int i;

		if (wr->num_sge < 0 || wr->num_sge > max_sge) {
			ret = -EINVAL;
			break;
		}
		if (next - cons >= ring->count) {
			ret = -ENOMEM;
			break;
		}
		rqe = srn_ring_entry(ring, next++);
		rqe->wr_id = wr->wr_id;
		rqe->num_sge = wr->num_sge;
		sge = (struct srn_sge *)(rqe + 1);
		for (i = 0; i < wr->num_sge; i++) {
			sge[i].addr = wr->sg_list[i].addr;
			sge[i].length = wr->sg_list[i].length;
			sge[i].lkey = wr->sg_list[i].lkey;
		}
	}
	if (wr)
		*bad_wr = wr;
	*prod = next;
	/* Pairs with the acquire of srn_ring_prod(). */
	smp_store_release(&ring->mem->ctl->prod, next);
	return ret;
}

int srn_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr)
{
	struct srn_qp *qp = to_sqp(ibqp);
	enum ib_qp_state state = READ_ONCE(qp->state);
	unsigned long flags;
	int ret;

	if (qp->srq || state == IB_QPS_RESET || (qp->user && wr)) {
		*bad_wr = wr;
		return -EINVAL;
	}
	if (qp->user) {
		/* The doorbell: it means something in a QP in error only. */
		mutex_lock(&qp->mutex);
		if (READ_ONCE(qp->state) == IB_QPS_ERR)
			qp->dev->ops->qp_flush(qp);
		mutex_unlock(&qp->mutex);
		return 0;
	}

	spin_lock_irqsave(&qp->rq.lock, flags);
	ret = srn_rqe_post(&qp->rq.ring, &qp->rq.prod, qp->rq.max_sge, wr,
			   bad_wr);
	spin_unlock_irqrestore(&qp->rq.lock, flags);

	/*
	 * Either we see ERR here or the flush sees what was posted: it writes the
	 * state, executes the barrier of srn_rq_flush(), then reads prod.
	 */
	smp_mb();
	if (unlikely(READ_ONCE(qp->state) == IB_QPS_ERR))
		queue_work(srn_wq, &qp->event_work);
	return ret;
}

/*
 * WQEs posted and not taken, or -EPROTO when prod is impossible. *prod is the
 * index that the answer was made from, read once.
 */
static int ring_posted(const struct srn_ring *ring, u32 *prod)
{
	u32 n;

	*prod = srn_ring_prod(ring);
	n = *prod - ring->idx;
	return n <= ring->count ? n : -EPROTO;
}

/* A receive WQE out of the ring, not bound to memory yet. */
struct rqe_copy {
	u64 wr_id;
	u32 num_sge;
	struct srn_sge sge[SRN_MAX_SGE];
};

/* Take the oldest entry of a ring that has one; it is the poster's again. */
static void ring_take(struct srn_ring *ring, u32 max_sge, struct rqe_copy *out)
{
	const struct srn_rqe *rqe = srn_ring_entry(ring, ring->idx);

	out->wr_id = READ_ONCE(rqe->wr_id);
	out->num_sge = READ_ONCE(rqe->num_sge);
	if (out->num_sge <= max_sge)
		memcpy(out->sge, rqe + 1, out->num_sge * sizeof(out->sge[0]));
	/* No compiler may go back to the ring for what was copied. */
	barrier();
	ring->idx++;
	srn_ring_publish_cons(ring);
}

static int srq_take(struct srn_srq *srq, struct rqe_copy *out)
{
	unsigned long flags;
	bool limit = false;
	int n = -EPROTO;
	u32 prod;

	spin_lock_irqsave(&srq->lock, flags);
	if (!srq->error) {
		n = ring_posted(&srq->ring, &prod);
		if (n < 0) {
			srq->error = true;
			srn_srq_event(srq, IB_EVENT_SRQ_ERR);
		}
	}
	if (n > 0) {
		ring_take(&srq->ring, srq->max_sge, out);
		limit = n - 1 < srq->limit;
		if (limit)
			srq->limit = 0;
	}
	spin_unlock_irqrestore(&srq->lock, flags);

	if (limit)
		srn_srq_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
	return n;
}

int srn_rq_take(struct srn_qp *qp, struct srn_rwqe *rwqe)
{
	struct srn_srq *srq = qp->srq;
	struct ib_pd *pd = srq ? srq->ibsrq.pd : qp->ibqp.pd;
	struct srn_rq *rq = &qp->rq;
	struct rqe_copy rqe;
	u64 total = 0;
	u32 prod;
	int n;

	if (srq) {
		n = srq_take(srq, &rqe);
	} else {
		n = ring_posted(&rq->ring, &prod);
		if (n > 0)
			ring_take(&rq->ring, rq->max_sge, &rqe);
	}
	if (n <= 0)
		return n ? n : -ENOENT;

	rwqe->wr_id = rqe.wr_id;
	rwqe->num_sge = 0;
	rwqe->capacity = 0;
	rwqe->status = IB_WC_SUCCESS;
	rwqe->vendor_err = SRN_VERR_NONE;
	rwqe->valid = true;
	if (rqe.num_sge > (srq ? srq->max_sge : rq->max_sge)) {
		rwqe->status = IB_WC_LOC_QP_OP_ERR;
		rwqe->vendor_err = SRN_VERR_WQE;
	} else if (srn_sge_bind(qp->dev, pd, !(srq ? srq->ring.user : qp->user),
				rqe.sge, rqe.num_sge, IB_ACCESS_LOCAL_WRITE,
				rwqe->sge, &total)) {
		rwqe->status = IB_WC_LOC_PROT_ERR;
		rwqe->vendor_err = SRN_VERR_LKEY;
	} else {
		rwqe->num_sge = rqe.num_sge;
		rwqe->capacity = min_t(u64, total, 1u << 31);
	}
	return 0;
}

void srn_rwqe_put(struct srn_rwqe *rwqe)
{
	srn_sge_put(rwqe->sge, rwqe->num_sge);
	rwqe->num_sge = 0;
	rwqe->valid = false;
}

int srn_rq_flush(struct srn_qp *qp)
{
	struct srn_ring *ring = &qp->rq.ring;
	int ret = 0, n;
	u32 prod;

	if (qp->srq)
		return 0;

	/* From here on user space rings the doorbell. */
	WRITE_ONCE(ring->mem->ctl->kflags, SRN_RING_DOORBELL);
	/*
	 * What it posted without one is seen below. Pairs with its barrier between
	 * prod and kflags, and with the one in srn_post_recv().
	 */
	smp_mb();

	n = ring_posted(ring, &prod);
	while (n-- > 0) {
		const struct srn_rqe *rqe = srn_ring_entry(ring, ring->idx);
		struct srn_cqe cqe = {
			.wr_id = READ_ONCE(rqe->wr_id),
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
			.qp_num = qp->qpn,
			.port_num = 1,
			.vlan_id = 0xffff,
		};

		ring->idx++;
		srn_ring_publish_cons(ring);
		ret = srn_cq_merge(qp->recv_cq, ret,
				   srn_cq_push(qp->recv_cq, &qp->ibqp, &cqe,
					       false));
	}
	return ret;
}

void srn_rq_reset(struct srn_qp *qp)
{
	struct srn_ring *ring = &qp->rq.ring;

	if (qp->srq)
		return;
	ring->idx = srn_ring_prod(ring);
	srn_ring_publish_cons(ring);
	WRITE_ONCE(ring->mem->ctl->kflags, 0);
}
