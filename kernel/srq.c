// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: verbs, posting by kernel consumers, events. Taking
 * WQEs is in rq.c.
 *
 * Resize of a user SRQ: between the command and the switch to the ring it
 * returned nobody may post. The new ring carries the unread WQEs and both
 * indices on; the old mapping stays until it is unmapped and is not read again.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "softrnic.h"

static atomic_t srqn_next;

void srn_srq_event(struct srn_srq *srq, enum ib_event_type event)
{
	set_bit(event, &srq->events);
	queue_work(srn_wq, &srq->event_work);
}

static void srq_raise_events(struct work_struct *work)
{
	struct srn_srq *srq = container_of(work, struct srn_srq, event_work);
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.element.srq = &srq->ibsrq,
	};
	unsigned long events = xchg(&srq->events, 0);
	unsigned int bit;

	for_each_set_bit(bit, &events, BITS_PER_LONG) {
		event.event = bit;
		if (srq->ibsrq.event_handler)
			srq->ibsrq.event_handler(&event,
						 srq->ibsrq.srq_context);
	}
}

static u32 srq_stride(u32 max_sge)
{
	return SRN_RQE_BYTES + max_sge * sizeof(struct srn_sge);
}

int srn_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		   struct ib_udata *udata)
{
	struct srn_srq *srq = to_ssrq(ibsrq);
	struct srn_uresp_srq resp = {};
	struct srn_ucontext *uc = rdma_udata_to_drv_context(udata,
							    struct srn_ucontext,
							    ibuc);
	int ret;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > SRN_MAX_SRQ_WR ||
	    init->attr.max_sge > SRN_MAX_SGE ||
	    init->attr.srq_limit > init->attr.max_wr)
		return -EINVAL;
	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;

	spin_lock_init(&srq->lock);
	INIT_WORK(&srq->event_work, srq_raise_events);
	srq->max_sge = max(init->attr.max_sge, 1U);
	srq->limit = init->attr.srq_limit;
	srq->srqn = atomic_inc_return(&srqn_next);

	ret = srn_ring_init(&srq->ring, uc ? &uc->ibuc : NULL,
			    init->attr.max_wr, srq_stride(srq->max_sge),
			    &resp.srq);
	if (ret)
		return ret;
	srq->max_wr = srq->ring.count;
	if (udata) {
		resp.srqn = srq->srqn;
		ret = ib_respond_udata(udata, resp);
		if (ret)
			goto err_fini_ring;
	}
	init->attr.max_wr = srq->max_wr;
	init->attr.max_sge = srq->max_sge;
	return 0;

err_fini_ring:
	srn_ring_fini(&srq->ring);
	return ret;
}

/* Copy the unread WQEs over; srq->lock is held. */
static int srq_move(struct srn_srq *srq, struct srn_ring *to)
{
	u32 prod = srn_ring_prod(&srq->ring), cons = srq->ring.idx, i;

	if (srq->error || prod - cons > srq->ring.count ||
	    prod - cons > to->count)
		return -EINVAL;
	for (i = cons; i != prod; i++)
		memcpy(srn_ring_entry(to, i), srn_ring_entry(&srq->ring, i),
		       to->stride);
	to->idx = cons;
	to->mem->ctl->prod = prod;
	to->mem->ctl->cons = cons;
	return 0;
}

/* @limit is the limit that shall hold afterwards, or -1 for the one that does. */
static int srq_resize(struct srn_srq *srq, u32 max_wr, s64 limit,
		      struct ib_udata *udata)
{
	struct srn_uresp_srq resp = { .srqn = srq->srqn };
	struct srn_ureq_modify_srq req = {};
	struct srn_ucontext *uc = rdma_udata_to_drv_context(udata,
							    struct srn_ucontext,
							    ibuc);
	struct srn_ring ring;
	unsigned long flags;
	int ret;

	if (srq->ring.user != !!udata)
		return -EINVAL;
	if (udata) {
		ret = ib_copy_validate_udata_in(udata, req, resp_addr);
		if (ret)
			return ret;
	}
	ret = srn_ring_init(&ring, uc ? &uc->ibuc : NULL, max_wr,
			    srq_stride(srq->max_sge), &resp.srq);
	if (ret)
		return ret;
	if (udata && copy_to_user(u64_to_user_ptr(req.resp_addr), &resp,
				  sizeof(resp))) {
		ret = -EFAULT;
		goto err_fini_ring;
	}

	spin_lock_irqsave(&srq->lock, flags);
	if (limit < 0)
		limit = srq->limit;
	ret = limit > ring.count ? -EINVAL : srq_move(srq, &ring);
	if (!ret) {
		swap(srq->ring, ring);
		srq->max_wr = srq->ring.count;
		srq->limit = limit;
	}
	spin_unlock_irqrestore(&srq->lock, flags);

err_fini_ring:
	srn_ring_fini(&ring);
	return ret;
}

int srn_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct srn_srq *srq = to_ssrq(ibsrq);
	unsigned long flags;
	int ret = 0;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR) {
		if (!attr->max_wr || attr->max_wr > SRN_MAX_SRQ_WR)
			return -EINVAL;
		return srq_resize(srq, attr->max_wr,
				  mask & IB_SRQ_LIMIT ? attr->srq_limit : -1LL,
				  udata);
	}
	if (mask & IB_SRQ_LIMIT) {
		spin_lock_irqsave(&srq->lock, flags);
		if (attr->srq_limit > srq->max_wr)
			ret = -EINVAL;
		else
			srq->limit = attr->srq_limit;
		spin_unlock_irqrestore(&srq->lock, flags);
	}
	return ret;
}

int srn_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct srn_srq *srq = to_ssrq(ibsrq);
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->limit;
	spin_unlock_irqrestore(&srq->lock, flags);
	return 0;
}

int srn_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct srn_srq *srq = to_ssrq(ibsrq);

	/* No QP is left to take from it, so no event is raised any more. */
	cancel_work_sync(&srq->event_work);
	srn_ring_fini(&srq->ring);
	return 0;
}

int srn_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	struct srn_srq *srq = to_ssrq(ibsrq);
	unsigned long flags;
	int ret;

	/* User space posts in its mapping, and an SRQ needs no doorbell. */
	if (srq->ring.user) {
		*bad_wr = wr;
		return wr ? -EINVAL : 0;
	}
	spin_lock_irqsave(&srq->lock, flags);
	ret = srn_rqe_post(&srq->ring, &srq->prod, srq->max_sge, wr, bad_wr);
	spin_unlock_irqrestore(&srq->lock, flags);
	return ret;
}
