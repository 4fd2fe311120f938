// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * softrnic provider: completion queues. Polling and arming are memory
 * accesses only.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cq.h"

/* Both calls end here: an extended CQ needs nothing more from the kernel. */
static struct srn_cq *new_cq(struct ibv_context *context, int cqe,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_create_cq cmd;
	struct srn_cmd_create_cq_resp resp = {};
	struct srn_cq *cq;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	ret = ibv_cmd_create_cq(context, cqe, channel, comp_vector, &cq->vcq.cq,
				&cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (ret)
		goto err_free;

	ret = srn_ring_map_consumer(&cq->ring, context->cmd_fd,
				    &resp.drv_payload.cq, SRN_CQE_BYTES);
	if (ret)
		goto err_destroy;

	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&cq->arm_lock, PTHREAD_PROCESS_PRIVATE);
	return cq;

err_destroy:
	ibv_cmd_destroy_cq(&cq->vcq.cq);
err_free:
	free(cq);
	errno = ret;
	return NULL;
}

struct ibv_cq *srn_create_cq(struct ibv_context *context, int cqe,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct srn_cq *cq = new_cq(context, cqe, channel, comp_vector);

	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *srn_create_cq_ex(struct ibv_context *context,
				   struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = 0;
	struct srn_cq *cq;

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		flags = attr->flags;

	if (!check_comp_mask(attr->comp_mask, IBV_CQ_INIT_ATTR_MASK_FLAGS) ||
	    !check_comp_mask(attr->wc_flags, IBV_WC_STANDARD_FLAGS) ||
	    !check_comp_mask(flags, IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	cq = new_cq(context, attr->cqe, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;

	cq->single = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	srn_cq_set_ex_ops(cq);
	return &cq->vcq.cq_ex;
}

/*
 * The locks are held over the command, so that nobody consumes from or arms
 * the old ring once the kernel has copied it. If the new one cannot be mapped,
 * what is left in the old one can still be polled, but the CQ is of no more
 * use.
 */
int srn_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct srn_cq *cq = to_srn_cq(ibcq);
	struct ibv_resize_cq cmd;
	struct srn_cmd_resize_cq_resp resp = {};
	struct srn_ring old, ring;
	int ret;

	pthread_spin_lock(&cq->lock);
	pthread_spin_lock(&cq->arm_lock);
	old = cq->ring;
	ret = ibv_cmd_resize_cq(ibcq, cqe, &cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (!ret)
		ret = srn_ring_map_consumer(&ring, ibcq->context->cmd_fd,
					    &resp.drv_payload.cq,
					    SRN_CQE_BYTES);
	if (!ret)
		cq->ring = ring;
	pthread_spin_unlock(&cq->arm_lock);
	pthread_spin_unlock(&cq->lock);

	if (!ret)
		srn_ring_unmap(&old);
	return ret;
}

/*
 * A QP that was reset is as new under its old number: what it completed before
 * and nobody has read yet must not be taken for something of now. The kernel
 * has stopped writing completions of it, those of others move up to where it
 * goes on writing. What the user is just reading stays in front.
 */
void srn_cq_forget_qp(struct ibv_cq *ibcq, uint32_t qp_num)
{
	struct srn_cq *cq = to_srn_cq(ibcq);
	struct srn_ring *ring = &cq->ring;
	uint32_t from, to;

	srn_cq_lock(cq);
	from = ring->idx + srn_ring_avail(ring);
	to = from;
	while (from-- != ring->idx) {
		const struct srn_cqe *cqe = srn_ring_entry(ring, from);

		if (cqe->qp_num == qp_num && cqe != cq->cur)
			continue;
		if (--to != from)
			memcpy(srn_ring_entry(ring, to), cqe, SRN_CQE_BYTES);
	}
	if (to != ring->idx) {
		ring->idx = to;
		if (cq->cur)
			cq->cur = srn_ring_entry(ring, to);
		srn_ring_publish_cons(ring);
	}
	srn_cq_unlock(cq);
}

int srn_destroy_cq(struct ibv_cq *ibcq)
{
	struct srn_cq *cq = to_srn_cq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	srn_ring_unmap(&cq->ring);
	pthread_spin_destroy(&cq->arm_lock);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}

static void fill_wc(struct ibv_wc *wc, const struct srn_cqe *cqe)
{
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm;
	wc->qp_num = cqe->qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = srn_wc_flags(cqe);
	wc->pkey_index = cqe->pkey_index;
	wc->slid = 0;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = 0;
}

int srn_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct srn_cq *cq = to_srn_cq(ibcq);
	uint32_t avail;
	int n = 0;

	srn_cq_lock(cq);
	avail = srn_ring_avail(&cq->ring);
	for (; n < num && n < avail; n++)
		fill_wc(&wc[n], srn_ring_entry(&cq->ring, cq->ring.idx + n));
	if (n) {
		cq->ring.idx += n;
		srn_ring_publish_cons(&cq->ring);
	}
	srn_cq_unlock(cq);
	return n;
}

/*
 * A request for solicited events does not weaken one for all that is pending.
 * Full barrier: either the poll that follows sees a completion, or the kernel,
 * having published it, sees the CQ armed.
 */
int srn_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct srn_cq *cq = to_srn_cq(ibcq);
	struct srn_ring_ctl *ctl;
	uint32_t armed, arm;

	pthread_spin_lock(&cq->arm_lock);
	ctl = cq->ring.ctl;
	arm = __atomic_load_n(&ctl->cons, __ATOMIC_RELAXED)
	      << SRN_ARM_CONS_SHIFT;
	if (!solicited_only) {
		__atomic_store_n(&ctl->arm, arm | SRN_ARM_NEXT,
				 __ATOMIC_RELEASE);
	} else {
		armed = __atomic_load_n(&ctl->arm, __ATOMIC_RELAXED);
		if ((armed & SRN_ARM_MODE) != SRN_ARM_NEXT)
			/* Fails when the kernel raises an event just now. */
			__atomic_compare_exchange_n(
				&ctl->arm, &armed, arm | SRN_ARM_SOLICITED,
				false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	pthread_spin_unlock(&cq->arm_lock);
	return 0;
}
