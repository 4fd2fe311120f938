// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: verbs, writing completions, notification.
 *
 * The kernel is the producer and writes under cq->lock from any context. What
 * user space is promised, beyond the rules of softrnic-abi.h:
 *
 *  - Arming: store SRN_ARM_* and cons to ctl->arm, execute a full barrier, poll
 *    once more. The kernel stores prod, executes a full barrier, then looks at arm,
 *    so one of the two sees the other. An event takes the arming away. A
 *    consumer that has armed for NEXT must not weaken it to SOLICITED.
 *  - Error completions count as solicited.
 *  - prod - cons never exceeds count. A completion that finds the queue full is
 *    lost, nothing is written any more and IB_EVENT_CQ_ERR is raised; a cons
 *    that cannot be has the same effect.
 *  - Resize: between the command and the switch to the ring it returned nobody
 *    may poll, arm or move cons. The new ring carries the unread completions,
 *    both indices and the arming on; indices stay unmasked. The old mapping
 *    stays readable until it is unmapped and is not written any more.
 */
#include <linux/slab.h>

#include "softrnic.h"

static_assert((int)IB_WC_SEND == 0 && (int)IB_WC_RDMA_WRITE == 1 &&
	      (int)IB_WC_RDMA_READ == 2 && (int)IB_WC_COMP_SWAP == 3 &&
	      (int)IB_WC_FETCH_ADD == 4 && (int)IB_WC_BIND_MW == 5 &&
	      (int)IB_WC_LOCAL_INV == 6 && (int)IB_WC_RECV == 128 &&
	      (int)IB_WC_RECV_RDMA_WITH_IMM == 129);

static void cq_raise_overflow(struct work_struct *work)
{
	struct srn_cq *cq = container_of(work, struct srn_cq, overflow_work);
	struct ib_event event = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/* Make a ring and tell user space where it is; nothing to undo on failure. */
static int cq_make_ring(struct srn_ring *ring, u32 cqe, struct ib_udata *udata)
{
	struct srn_ucontext *uc = rdma_udata_to_drv_context(udata,
							    struct srn_ucontext,
							    ibuc);
	struct srn_uresp_cq resp = {};
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;

	ret = srn_ring_init(ring, uc ? &uc->ibuc : NULL, cqe, SRN_CQE_BYTES,
			    &resp.cq);
	if (ret || !udata)
		return ret;
	ret = ib_respond_udata(udata, resp);
	if (ret)
		srn_ring_fini(ring);
	return ret;
}

int srn_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct ib_udata *udata)
{
	struct srn_cq *cq = to_scq(ibcq);
	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > SRN_MAX_CQE)
		return -EINVAL;

	spin_lock_init(&cq->lock);
	refcount_set(&cq->notifiers, 1);
	init_completion(&cq->idle);
	INIT_WORK(&cq->overflow_work, cq_raise_overflow);
	ret = cq_make_ring(&cq->ring, attr->cqe, udata);
	if (ret)
		return ret;
	ibcq->cqe = cq->ring.count;
	return 0;
}

int srn_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct srn_cq *cq = to_scq(ibcq);

	/*
	 * No QP is left, so nobody pushes; but who has pushed before may still be
	 * on the way to the completion handler.
	 */
	if (refcount_dec_and_test(&cq->notifiers))
		complete(&cq->idle);
	wait_for_completion(&cq->idle);
	cancel_work_sync(&cq->overflow_work);
	srn_ring_fini(&cq->ring);
	return 0;
}

/* The consumer's index: it has read the entries before, they may be overwritten. */
static u32 cq_cons(const struct srn_cq *cq)
{
	if (!cq->ring.user)
		return cq->cons;
	/* Pairs with the store-release of a polling user. */
	return smp_load_acquire(&cq->ring.mem->ctl->cons);
}

/* Copy the unread completions over; cq->lock is held. */
static int cq_move(struct srn_cq *cq, struct srn_ring *to)
{
	u32 prod = cq->ring.idx, cons = cq_cons(cq), i;

	if (prod - cons > cq->ring.count || prod - cons > to->count)
		return -EINVAL;
	for (i = cons; i != prod; i++)
		memcpy(srn_ring_entry(to, i), srn_ring_entry(&cq->ring, i),
		       SRN_CQE_BYTES);
	to->idx = prod;
	to->mem->ctl->prod = prod;
	to->mem->ctl->cons = cons;
	to->mem->ctl->arm = READ_ONCE(cq->ring.mem->ctl->arm);
	return 0;
}

int srn_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	struct srn_cq *cq = to_scq(ibcq);
	struct srn_ring ring;
	unsigned long flags;
	int ret;

	if (!cqe || cqe > SRN_MAX_CQE)
		return -EINVAL;
	if (cq->ring.user != !!udata)
		return -EINVAL;

	ret = cq_make_ring(&ring, cqe, udata);
	if (ret)
		return ret;

	spin_lock_irqsave(&cq->lock, flags);
	ret = cq->overflow ? -EINVAL : cq_move(cq, &ring);
	if (!ret) {
		swap(cq->ring, ring);
		ibcq->cqe = cq->ring.count;
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	srn_ring_fini(&ring);
	return ret;
}

/* Was completion @index still unread when the consumer wrote @arm? */
static bool cq_armed_before(u32 arm, u32 index)
{
	u32 cons = arm >> SRN_ARM_CONS_SHIFT;

	/* 30-bit serial numbers; a CQ holds far fewer completions. */
	return !((index - cons) & BIT(31 - SRN_ARM_CONS_SHIFT));
}

/* Does completion @index wake the consumer? Takes the arming away if so. */
static bool cq_fires(struct srn_cq *cq, u32 index, bool solicited)
{
	u32 *arm = cq->ring.user ? &cq->ring.mem->ctl->arm : &cq->arm;
	u32 now = READ_ONCE(*arm);
	u32 mode = now & SRN_ARM_MODE;

	if (likely(mode == SRN_ARM_NONE))
		return false;
	if (mode == SRN_ARM_SOLICITED && !solicited) {
		/* An arming that waits long must not become one of the future. */
		if (!(index & 0xffffff))
			cmpxchg(arm, now, mode | index << SRN_ARM_CONS_SHIFT);
		return false;
	}
	if (!cq_armed_before(now, index))
		return false;
	/* What user space arms meanwhile is served, whatever it is. */
	return (xchg(arm, SRN_ARM_NONE) & SRN_ARM_MODE) != SRN_ARM_NONE;
}

static void cq_count_error(struct srn_cq *cq, const struct srn_cqe *cqe)
{
	struct srn_dev *dev = to_sdev(cq->ibcq.device);

	if (cqe->status == IB_WC_WR_FLUSH_ERR)
		return;
	if (cqe->opcode & IB_WC_RECV)
		srn_count(dev, RESP_CQE_ERROR);
	else
		srn_count(dev, REQ_CQE_ERROR);
}

int srn_cq_push(struct srn_cq *cq, struct ib_qp *qp, const struct srn_cqe *cqe,
		bool solicited)
{
	struct srn_ring *ring = &cq->ring;
	struct srn_cqe *entry;
	unsigned long flags;
	int ret = 0;

	if (unlikely(cqe->status != IB_WC_SUCCESS)) {
		solicited = true;
		cq_count_error(cq, cqe);
	}

	spin_lock_irqsave(&cq->lock, flags);
	if (unlikely(cq->overflow || ring->idx - cq_cons(cq) >= ring->count)) {
		if (!cq->overflow) {
			cq->overflow = true;
			srn_count(to_sdev(cq->ibcq.device), CQ_OVERFLOW);
			queue_work(srn_wq, &cq->overflow_work);
		}
		ret = -EOVERFLOW;
		goto out_unlock;
	}

	entry = srn_ring_entry(ring, ring->idx);
	*entry = *cqe;
	/* A kernel ring is never mapped, so the pointer stays in the kernel. */
	entry->timestamp = ring->user ? 0 : (uintptr_t)qp;
	ring->idx++;
	/* Pairs with the acquire of a polling user. */
	smp_store_release(&ring->mem->ctl->prod, ring->idx);

	if (ring->user)
		smp_mb();	/* pairs with the barrier of an arming user */
	if (cq_fires(cq, ring->idx - 1, solicited)) {
		refcount_inc(&cq->notifiers);
		ret = 1;
	}
out_unlock:
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

void srn_cq_notify(struct srn_cq *cq)
{
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	if (refcount_dec_and_test(&cq->notifiers))
		complete(&cq->idle);
}

static void cq_to_wc(const struct srn_cqe *cqe, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode == SRN_WC_REG_MR ? IB_WC_REG_MR : cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->qp = (struct ib_qp *)(uintptr_t)cqe->timestamp;
	wc->src_qp = cqe->src_qp;
	wc->pkey_index = cqe->pkey_index;
	wc->sl = cqe->sl;
	wc->port_num = cqe->port_num;

	if (cqe->wc_flags & SRN_WC_WITH_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cqe->imm;
	} else if (cqe->wc_flags & SRN_WC_WITH_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = cqe->inv_rkey;
	}
	if (cqe->wc_flags & SRN_WC_GRH) {
		wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;
		wc->network_hdr_type = cqe->net_type;
		if (cqe->vlan_id != 0xffff) {
			wc->wc_flags |= IB_WC_WITH_VLAN;
			wc->vlan_id = cqe->vlan_id;
		}
	}
}

int srn_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct srn_cq *cq = to_scq(ibcq);
	unsigned long flags;
	int i;

	if (cq->ring.user)
		return -EINVAL;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < n && cq->cons != cq->ring.idx; i++)
		cq_to_wc(srn_ring_entry(&cq->ring, cq->cons++), &wc[i]);
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

/* User space arms in its mapping and comes here only by the classic command. */
int srn_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct srn_cq *cq = to_scq(ibcq);
	unsigned long irqflags;
	u32 *arm, cons;
	int ret;

	spin_lock_irqsave(&cq->lock, irqflags);
	arm = cq->ring.user ? &cq->ring.mem->ctl->arm : &cq->arm;
	cons = cq_cons(cq) << SRN_ARM_CONS_SHIFT;
	if ((flags & IB_CQ_SOLICITED_MASK) == IB_CQ_NEXT_COMP)
		WRITE_ONCE(*arm, cons | SRN_ARM_NEXT);
	else if ((READ_ONCE(*arm) & SRN_ARM_MODE) != SRN_ARM_NEXT)
		WRITE_ONCE(*arm, cons | SRN_ARM_SOLICITED);
	ret = (flags & IB_CQ_REPORT_MISSED_EVENTS) &&
	      cq_cons(cq) != cq->ring.idx;
	spin_unlock_irqrestore(&cq->lock, irqflags);
	return ret;
}
