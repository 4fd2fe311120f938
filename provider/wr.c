// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * softrnic provider: ibv_wr_*(). The SQ lock is held from wr_start to
 * wr_complete or wr_abort.
 *
 * WRs are built in the ring at idx and nothing is published before
 * wr_complete, so that a batch is dropped by setting idx back. The first error
 * makes everything that follows in the batch a no-op.
 */
#include "sqe.h"

static void fail(struct srn_qp *qp, int err)
{
	qp->err = err;
	qp->sqe = NULL;
}

/* The WR being built has got all its parts: check it and count it. */
static void close_wr(struct srn_qp *qp)
{
	if (!qp->sqe)
		return;
	if ((qp->vqp.qp.qp_type == IBV_QPT_UD && !qp->addressed) ||
	    srn_sqe_check_data(qp->sqe)) {
		fail(qp, EINVAL);
		return;
	}
	qp->sqe = NULL;
	qp->sq.idx++;
}

/* Return: the entry to fill in, or NULL when the batch has failed. */
static struct srn_sqe *open_wr(struct srn_qp *qp, enum srn_wr_opcode opcode)
{
	const struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	close_wr(qp);
	if (qp->err)
		return NULL;
	if (srn_ring_full(&qp->sq)) {
		fail(qp, ENOMEM);
		return NULL;
	}
	if (ex->wr_flags & ~SRN_SQE_FLAGS) {
		fail(qp, EINVAL);
		return NULL;
	}
	qp->sqe = srn_ring_entry(&qp->sq, qp->sq.idx);
	qp->addressed = false;
	/* what makes a WR inline here is the setter */
	srn_sqe_init(qp->sqe, ex->wr_id, opcode,
		     ex->wr_flags & ~IBV_SEND_INLINE);
	return qp->sqe;
}

static void open_rdma(struct srn_qp *qp, enum srn_wr_opcode opcode,
		      uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	struct srn_sqe *sqe = open_wr(qp, opcode);

	if (!sqe)
		return;
	sqe->imm = imm;
	srn_sqe_rdma(sqe, remote_addr, rkey);
}

static void open_atomic(struct srn_qp *qp, enum srn_wr_opcode opcode,
			uint32_t rkey, uint64_t remote_addr,
			uint64_t compare_add, uint64_t swap)
{
	struct srn_sqe *sqe = open_wr(qp, opcode);
	int ret;

	if (!sqe)
		return;
	ret = srn_sqe_atomic(sqe, remote_addr, rkey, compare_add, swap);
	if (ret)
		fail(qp, ret);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct srn_qp *qp = to_srn_qp_ex(ex);

	pthread_spin_lock(&qp->sq_lock);
	qp->batch = qp->sq.idx;
	qp->sqe = NULL;
	qp->err = srn_sq_state_error(qp);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct srn_qp *qp = to_srn_qp_ex(ex);
	bool kick = false;
	int ret;

	close_wr(qp);
	ret = qp->err;
	if (ret)
		qp->sq.idx = qp->batch;
	else if (qp->sq.idx != qp->batch)
		kick = srn_sq_publish(qp);
	pthread_spin_unlock(&qp->sq_lock);

	return kick ? srn_kick_sq(qp) : ret;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct srn_qp *qp = to_srn_qp_ex(ex);

	qp->sq.idx = qp->batch;
	qp->sqe = NULL;
	pthread_spin_unlock(&qp->sq_lock);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	open_wr(to_srn_qp_ex(ex), SRN_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct srn_sqe *sqe = open_wr(to_srn_qp_ex(ex), SRN_WR_SEND_IMM);

	if (sqe)
		sqe->imm = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct srn_sqe *sqe = open_wr(to_srn_qp_ex(ex), SRN_WR_SEND_INV);

	if (sqe)
		sqe->inv_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct srn_sqe *sqe = open_wr(to_srn_qp_ex(ex), SRN_WR_LOCAL_INV);

	if (sqe)
		sqe->inv_rkey = rkey;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			  uint64_t remote_addr)
{
	open_rdma(to_srn_qp_ex(ex), SRN_WR_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm)
{
	open_rdma(to_srn_qp_ex(ex), SRN_WR_WRITE_IMM, rkey, remote_addr, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			 uint64_t remote_addr)
{
	open_rdma(to_srn_qp_ex(ex), SRN_WR_READ, rkey, remote_addr, 0);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	open_atomic(to_srn_qp_ex(ex), SRN_WR_COMP_SWAP, rkey, remote_addr,
		    compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	open_atomic(to_srn_qp_ex(ex), SRN_WR_FETCH_ADD, rkey, remote_addr, add,
		    0);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct srn_qp *qp = to_srn_qp_ex(ex);

	if (!qp->sqe)
		return;
	if (srn_sqe_ud(qp->sqe, ah, remote_qpn, remote_qkey))
		fail(qp, EINVAL);
	else
		qp->addressed = true;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num,
			    const struct ibv_sge *list)
{
	struct srn_qp *qp = to_srn_qp_ex(ex);

	if (qp->sqe && srn_sqe_sges(qp, qp->sqe, list, num))
		fail(qp, EINVAL);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num,
				    const struct ibv_data_buf *list)
{
	struct srn_qp *qp = to_srn_qp_ex(ex);
	struct srn_sqe *sqe = qp->sqe;
	size_t i, sum = 0;

	if (!sqe)
		return;
	if (!(SRN_INLINE_OPS & 1u << sqe->opcode)) {
		fail(qp, EINVAL);
		return;
	}
	for (i = 0; i < num; i++) {
		if (srn_sqe_inline(qp, sqe, &sum, list[i].addr,
				   list[i].length)) {
			fail(qp, EINVAL);
			return;
		}
	}
	sqe->flags |= SRN_SQE_INLINE;
	sqe->inline_len = sum;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

/* Creation has refused to a user what qp->ops has not. */
void srn_qp_set_wr_ops(struct srn_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;

	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;

	if (qp->vqp.qp.qp_type == IBV_QPT_UD) {
		ex->wr_set_ud_addr = wr_set_ud_addr;
		return;
	}
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
}
