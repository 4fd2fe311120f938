// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * softrnic provider: ibv_post_send(), ibv_post_recv(), ibv_post_srq_recv().
 *
 * A list is put into the ring up to the first WR that is refused, published
 * once, and announced by at most one doorbell.
 */
#include "sqe.h"

/* Known to the API but to no QP type of ours, or wrong here. */
static int refuse_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_BIND_MW:
	case IBV_WR_TSO:
	case IBV_WR_FLUSH:
	case IBV_WR_ATOMIC_WRITE:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
}

static int check_wr(const struct srn_qp *qp, const struct ibv_send_wr *wr)
{
	if (wr->opcode >= 32 || !(qp->ops & 1u << wr->opcode))
		return refuse_opcode(wr->opcode);
	if (wr->send_flags & ~SRN_SQE_FLAGS)
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    !(SRN_INLINE_OPS & 1u << wr->opcode))
		return EINVAL;
	if (wr->num_sge < 0 || wr->num_sge > qp->max_send_sge)
		return EINVAL;
	return 0;
}

static int fill_op(struct srn_sqe *sqe, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		sqe->imm = wr->imm_data;
		srn_sqe_rdma(sqe, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		return 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		srn_sqe_rdma(sqe, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return srn_sqe_atomic(sqe, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.rkey,
				      wr->wr.atomic.compare_add,
				      wr->wr.atomic.swap);
	case IBV_WR_SEND_WITH_IMM:
		sqe->imm = wr->imm_data;
		return 0;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		sqe->inv_rkey = wr->invalidate_rkey;
		return 0;
	default:
		return 0;
	}
}

static int fill_inline(const struct srn_qp *qp, struct srn_sqe *sqe,
		       const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge;
	size_t sum = 0;
	int i, ret;

	for (i = 0; i < wr->num_sge; i++) {
		sge = &wr->sg_list[i];
		ret = srn_sqe_inline(qp, sqe, &sum,
				     (void *)(uintptr_t)sge->addr, sge->length);
		if (ret)
			return ret;
	}
	sqe->inline_len = sum;
	return 0;
}

static int fill_data(const struct srn_qp *qp, struct srn_sqe *sqe,
		     const struct ibv_send_wr *wr)
{
	int ret;

	if (wr->opcode == IBV_WR_LOCAL_INV)
		return 0;
	if (wr->send_flags & IBV_SEND_INLINE)
		return fill_inline(qp, sqe, wr);

	ret = srn_sqe_sges(qp, sqe, wr->sg_list, wr->num_sge);
	return ret ? ret : srn_sqe_check_data(sqe);
}

/* Put one WR at idx. The slot is free to be scribbled on until idx moves. */
static int put_send(struct srn_qp *qp, const struct ibv_send_wr *wr)
{
	struct srn_sqe *sqe;
	int ret;

	ret = check_wr(qp, wr);
	if (ret)
		return ret;
	if (srn_ring_full(&qp->sq))
		return ENOMEM;

	sqe = srn_ring_entry(&qp->sq, qp->sq.idx);
	srn_sqe_init(sqe, wr->wr_id, wr->opcode, wr->send_flags);

	if (qp->vqp.qp.qp_type == IBV_QPT_UD) {
		ret = srn_sqe_ud(sqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
				 wr->wr.ud.remote_qkey);
		if (ret)
			return ret;
	}
	ret = fill_op(sqe, wr);
	if (ret)
		return ret;
	ret = fill_data(qp, sqe, wr);
	if (ret)
		return ret;

	qp->sq.idx++;
	return 0;
}

int srn_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad)
{
	struct srn_qp *qp = to_srn_qp(ibqp);
	struct ibv_send_wr *first = wr;
	bool kick = false;
	uint32_t start;
	int ret, err;

	pthread_spin_lock(&qp->sq_lock);
	start = qp->sq.idx;
	ret = srn_sq_state_error(qp);
	for (; wr && !ret; wr = wr->next) {
		ret = put_send(qp, wr);
		if (ret)
			break;
	}
	if (qp->sq.idx != start)
		kick = srn_sq_publish(qp);
	pthread_spin_unlock(&qp->sq_lock);

	if (ret)
		*bad = wr;
	if (!kick)
		return ret;

	/* Only when the device is gone: nothing of the list will be done. */
	err = srn_kick_sq(qp);
	if (err) {
		*bad = first;
		return err;
	}
	return ret;
}

static int put_recv(struct srn_rq *rq, const struct ibv_recv_wr *wr)
{
	struct srn_rqe *rqe;

	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return EINVAL;
	if (srn_ring_full(&rq->ring))
		return ENOMEM;

	rqe = srn_ring_entry(&rq->ring, rq->ring.idx);
	rqe->wr_id = wr->wr_id;
	rqe->num_sge = wr->num_sge;
	rqe->rsvd = 0;
	if (wr->num_sge)
		memcpy(rqe + 1, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));

	rq->ring.idx++;
	return 0;
}

/* Caller holds the lock. */
static int put_recv_list(struct srn_rq *rq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad)
{
	uint32_t start = rq->ring.idx;
	int ret = 0;

	for (; wr; wr = wr->next) {
		ret = put_recv(rq, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	if (rq->ring.idx != start)
		srn_ring_publish_prod(&rq->ring);
	return ret;
}

int srn_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad)
{
	struct srn_qp *qp = to_srn_qp(ibqp);
	bool kick = false;
	int ret, err;

	if (ibqp->state == IBV_QPS_RESET || ibqp->srq) {
		*bad = wr;
		return EINVAL;
	}

	pthread_spin_lock(&qp->rq.lock);
	ret = put_recv_list(&qp->rq, wr, bad);
	if (qp->rq.ring.ctl)
		kick = srn_ring_kflags(&qp->rq.ring) & SRN_RING_DOORBELL;
	pthread_spin_unlock(&qp->rq.lock);

	if (!kick)
		return ret;
	err = srn_kick_rq(qp);
	if (err) {
		*bad = wr;
		return err;
	}
	return ret;
}

int srn_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad)
{
	struct srn_rq *rq = &to_srn_srq(ibsrq)->rq;
	int ret;

	pthread_spin_lock(&rq->lock);
	ret = put_recv_list(rq, wr, bad);
	pthread_spin_unlock(&rq->lock);
	return ret;
}
