// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * softrnic provider: queue pairs.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "softrnic.h"

/* Opcodes of a QP type; 0 for a type that there is not. */
static uint32_t ops_of_type(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return IBV_QP_EX_WITH_RDMA_WRITE |
		       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		       IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
		       IBV_QP_EX_WITH_RDMA_READ |
		       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		       IBV_QP_EX_WITH_LOCAL_INV |
		       IBV_QP_EX_WITH_SEND_WITH_INV;
	case IBV_QPT_UD:
		return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	default:
		return 0;
	}
}

/* qp->ops holds these bits and is asked for an opcode. */
static_assert(IBV_QP_EX_WITH_RDMA_WRITE == 1 << IBV_WR_RDMA_WRITE &&
	      IBV_QP_EX_WITH_SEND_WITH_IMM == 1 << IBV_WR_SEND_WITH_IMM &&
	      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD ==
		      1 << IBV_WR_ATOMIC_FETCH_AND_ADD &&
	      IBV_QP_EX_WITH_LOCAL_INV == 1 << IBV_WR_LOCAL_INV &&
	      IBV_QP_EX_WITH_SEND_WITH_INV == 1 << IBV_WR_SEND_WITH_INV,
	      "send_ops_flags are opcode bits");

static int check_init(const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t ops = ops_of_type(attr->qp_type);

	if (!check_comp_mask(attr->comp_mask,
			     IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    attr->create_flags)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    !check_comp_mask(attr->send_ops_flags, ops))
		return EOPNOTSUPP;
	return ops ? 0 : EOPNOTSUPP;
}

/*
 * struct ibv_qp_ex grew at its end while the private ABI stayed the same, so an
 * older libibverbs looks for verbs_qp.comp_mask where we have the newest
 * operations. Those we do not offer, and their slots are free for the flag.
 */
static void mark_extended(struct verbs_qp *vqp)
{
	static const uint32_t flag = VERBS_QP_EX;
	size_t off;

	for (off = offsetof(struct ibv_qp_ex, wr_atomic_write);
	     off < sizeof(struct ibv_qp_ex); off += sizeof(void *))
		memcpy((uint8_t *)vqp + off, &flag, sizeof(flag));
	vqp->comp_mask |= VERBS_QP_EX;
}

static size_t max_of(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Map what the kernel made. A queue without room has no mapping. */
static int map_queues(struct srn_qp *qp, const struct ibv_qp_cap *cap,
		      const struct srn_uresp_qp *resp)
{
	int fd = qp->vqp.qp.context->cmd_fd;
	size_t sqe_data = max_of(resp->max_send_sge * sizeof(struct srn_sge),
				 resp->max_inline);
	size_t rqe_data = resp->max_recv_sge * sizeof(struct srn_sge);
	int ret;

	if (resp->sq.count) {
		ret = srn_ring_map_producer(&qp->sq, fd, &resp->sq,
					    cap->max_send_wr,
					    SRN_SQE_BYTES + sqe_data);
		if (ret)
			return ret;
	}
	if (resp->rq.count) {
		ret = srn_ring_map_producer(&qp->rq.ring, fd, &resp->rq,
					    cap->max_recv_wr,
					    SRN_RQE_BYTES + rqe_data);
		if (ret) {
			srn_ring_unmap(&qp->sq);
			return ret;
		}
	}
	qp->max_send_sge = resp->max_send_sge;
	qp->max_inline = resp->max_inline;
	qp->rq.max_sge = resp->max_recv_sge;
	return 0;
}

struct ibv_qp *srn_create_qp_ex(struct ibv_context *context,
				struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex init = *attr;
	struct srn_cmd_create_qp_resp resp = {};
	struct ibv_create_qp cmd;
	struct srn_qp *qp;
	int ret;

	ret = check_init(attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	/* no flag is set: nothing to tell the kernel */
	init.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;

	ret = ibv_cmd_create_qp_ex(context, &qp->vqp, &init, &cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_free;
	ret = map_queues(qp, &init.cap, &resp.drv_payload);
	if (ret)
		goto err_destroy;

	pthread_spin_init(&qp->sq_lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&qp->rq.lock, PTHREAD_PROCESS_PRIVATE);
	qp->ops = ops_of_type(init.qp_type);
	if (init.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		srn_qp_set_wr_ops(qp);
		mark_extended(&qp->vqp);
	}
	attr->cap = init.cap;
	return &qp->vqp.qp;

err_destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_free:
	free(qp);
	errno = ret;
	return NULL;
}

struct ibv_qp *srn_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = srn_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

int srn_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibqp, attr, mask, init, &cmd, sizeof(cmd));
}

/*
 * Indices are not touched: on the way to RESET the kernel discards what was
 * posted by moving its own up to ours.
 */
int srn_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_modify_qp cmd = {};
	int ret;

	ret = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (ret || !(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_RESET)
		return ret;

	srn_cq_forget_qp(ibqp->recv_cq, ibqp->qp_num);
	if (ibqp->send_cq != ibqp->recv_cq)
		srn_cq_forget_qp(ibqp->send_cq, ibqp->qp_num);
	return 0;
}

int srn_destroy_qp(struct ibv_qp *ibqp)
{
	struct srn_qp *qp = to_srn_qp(ibqp);
	int ret;

	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;

	srn_ring_unmap(&qp->sq);
	srn_ring_unmap(&qp->rq.ring);
	pthread_spin_destroy(&qp->rq.lock);
	pthread_spin_destroy(&qp->sq_lock);
	free(qp);
	return 0;
}
