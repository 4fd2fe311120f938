// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of an RC QP: which packet leaves next, and when it leaves again.
 *
 * Owns psn_send and everything up to the wire; responses are comp.c's. Runs in
 * whoever holds the SQ owner bit (poster, softirq after an ACK, work item) and
 * in timers. Packets are built in batches under req->lock and sent without it.
 * IBA 9.7.2 (PSN), 9.7.5 (acknowledge), 9.7.6 (retry), 9.7.8 (ordering).
 */
#include "roce.h"

/* Batches one holder of the owner bit sends before the work item goes on. */
#define REQ_ROUNDS 8

#define REQ_WINDOW_START (128 * 1024)
#define REQ_WINDOW_MAX (1024 * 1024)

/* PSNs that may be outstanding; less than half of the space (R027). */
#define REQ_PSN_SPAN (PSN_HALF - 1)

static bool req_is_read(const struct srn_wqe *wqe)
{
	return wqe->sqe.opcode == SRN_WR_READ;
}

static bool req_is_atomic(const struct srn_wqe *wqe)
{
	return wqe->sqe.opcode == SRN_WR_COMP_SWAP ||
	       wqe->sqe.opcode == SRN_WR_FETCH_ADD;
}

static bool req_is_local(const struct srn_wqe *wqe)
{
	return wqe->sqe.opcode == SRN_WR_LOCAL_INV ||
	       wqe->sqe.opcode == SRN_WR_REG_MR;
}

/* PSNs from the oldest unacknowledged one to the next to send. */
static u32 req_span(const struct roce_req *req)
{
	return (req->psn_send - req->psn_una) & PSN_MASK;
}

static bool req_outstanding(const struct roce_req *req)
{
	return req->psn_una != req->psn_max;
}

static void req_timer_arm(struct roce_req *req)
{
	if (!req->timeout)
		return;
	req->deadline = jiffies + req->timeout_jiffies;
	/* A pending timer looks at the deadline when it fires. */
	if (!timer_pending(&req->retrans))
		mod_timer(&req->retrans, req->deadline);
}

void roce_req_seek(struct roce_qp *rqp, u32 psn)
{
	struct srn_sq *sq = &rqp->qp->sq;
	struct roce_req *req = &rqp->req;
	u32 i;

	req->psn_send = psn;
	for (i = sq->ring.idx; i != sq->next; i++) {
		struct roce_wqe *w = to_rwqe(srn_sq_wqe(rqp->qp, i));

		if (!(w->flags & ROCE_WQE_STARTED) ||
		    psn_in(psn, w->psn, w->npkts))
			break;
	}
	req->wqe_send = i;
}

/*
 * The window follows the path: it grows fast up to half of where loss was seen
 * last, from there by one packet each time a window is acknowledged.
 */
static void req_grow_window(struct roce_qp *rqp, u32 packets)
{
	struct roce_req *req = &rqp->req;
	u64 bytes = (u64)packets * rqp->pmtu;
	u32 grow = bytes / 4;

	if (req->window >= req->loss_window)
		grow = div_u64(bytes * rqp->pmtu, req->window);
	req->window = min(req->window + min(grow, req->window),
			  (u32)REQ_WINDOW_MAX);
}

/* Loss: less may be in flight, but always enough for the peer to notice a gap. */
static void req_shrink_window(struct roce_qp *rqp)
{
	struct roce_req *req = &rqp->req;

	req->window = max(req->window / 2, 8 * rqp->pmtu);
	req->loss_window = req->window;
}

void roce_req_progress(struct roce_qp *rqp, u32 packets)
{
	struct roce_req *req = &rqp->req;

	req->retries = req->retry_cnt;
	req->rnr_retries = req->rnr_retry;
	req->recovering = false;
	req_grow_window(rqp, packets);
	if (psn_before(req->psn_send, req->psn_una))
		roce_req_seek(rqp, req->psn_una);
	req_timer_arm(req);
}

void roce_req_fail(struct roce_qp *rqp, u32 index, u8 status, u8 verr,
		   struct roce_done *done)
{
	struct srn_sq *sq = &rqp->qp->sq;

	while (sq->ring.idx != index) {
		srn_sq_wqe(rqp->qp, sq->ring.idx)->status = IB_WC_WR_FLUSH_ERR;
		roce_done_add(rqp, done, rqp->qp->send_cq,
			      srn_sq_retire(rqp->qp, 0));
	}
	if (sq->ring.idx != sq->next) {
		struct srn_wqe *wqe = srn_sq_wqe(rqp->qp, index);

		wqe->status = status;
		wqe->vendor_err = verr;
		roce_done_add(rqp, done, rqp->qp->send_cq,
			      srn_sq_retire(rqp->qp, 0));
	}
	srn_qp_fatal(rqp->qp, -1);
}

static bool req_finished(const struct roce_req *req, struct srn_wqe *wqe)
{
	struct roce_wqe *w = to_rwqe(wqe);

	if (!(w->flags & ROCE_WQE_STARTED))
		return false;
	if (req_is_read(wqe) || req_is_atomic(wqe) || req_is_local(wqe))
		return w->flags & ROCE_WQE_DONE;
	return ((req->psn_una - w->psn) & PSN_MASK) >= w->npkts &&
	       !psn_before(req->psn_una, w->psn);
}

/* SQD: raise the event once everything that was started has finished (R051). */
static void req_check_drained(struct roce_qp *rqp)
{
	struct srn_sq *sq = &rqp->qp->sq;
	struct roce_req *req = &rqp->req;

	if (!req->draining)
		return;
	if (sq->ring.idx != sq->next &&
	    to_rwqe(srn_sq_wqe(rqp->qp, sq->ring.idx))->flags & ROCE_WQE_STARTED)
		return;
	req->draining = false;
	if (req->drain_event)
		srn_qp_event(rqp->qp, IB_EVENT_SQ_DRAINED);
}

void roce_req_retire(struct roce_qp *rqp, struct roce_done *done)
{
	struct srn_sq *sq = &rqp->qp->sq;
	struct roce_req *req = &rqp->req;

	while (sq->ring.idx != sq->next) {
		struct srn_wqe *wqe = srn_sq_wqe(rqp->qp, sq->ring.idx);

		if (wqe->status != IB_WC_SUCCESS) {
			roce_req_fail(rqp, sq->ring.idx, wqe->status,
				      wqe->vendor_err, done);
			return;
		}
		if (!req_finished(req, wqe))
			break;
		roce_done_add(rqp, done, rqp->qp->send_cq,
			      srn_sq_retire(rqp->qp, wqe->len));
	}
	/* An unstarted WQE cannot lie behind the oldest one. */
	if ((s32)(req->wqe_send - sq->ring.idx) < 0)
		req->wqe_send = sq->ring.idx;
	req_check_drained(rqp);
}

void roce_req_flush(struct roce_qp *rqp, struct roce_done *done)
{
	struct roce_req *req = &rqp->req;

	roce_done_add(rqp, done, rqp->qp->send_cq, srn_sq_flush(rqp->qp));
	req->wqe_send = rqp->qp->sq.next;
	req->psn_una = req->psn_next;
	req->psn_send = req->psn_next;
	req->psn_max = req->psn_next;
	req->rd_outstanding = 0;
	req->draining = false;
}

bool roce_req_go_back(struct roce_qp *rqp, struct roce_done *done)
{
	struct roce_req *req = &rqp->req;

	if (!req->retries) {
		srn_count(rqp->dev, RETRY_EXC);
		roce_req_fail(rqp, rqp->qp->sq.ring.idx, IB_WC_RETRY_EXC_ERR,
			      SRN_VERR_TIMEOUT, done);
		return false;
	}
	req->retries--;
	req_shrink_window(rqp);
	roce_req_seek(rqp, req->psn_una);
	req_timer_arm(req);
	return true;
}

bool roce_req_rnr(struct roce_qp *rqp, u32 usec, struct roce_done *done)
{
	struct roce_req *req = &rqp->req;

	/* 7 is the one value that means for ever (R036). */
	if (req->rnr_retry != 7) {
		if (!req->rnr_retries) {
			srn_count(rqp->dev, RNR_EXC);
			roce_req_fail(rqp, rqp->qp->sq.ring.idx,
				      IB_WC_RNR_RETRY_EXC_ERR, SRN_VERR_RNR,
				      done);
			return false;
		}
		req->rnr_retries--;
	}
	req->rnr_wait = true;
	roce_req_seek(rqp, req->psn_una);
	/* One jiffy more: the time is a minimum (R035). */
	mod_timer(&req->rnr_timer, jiffies + usecs_to_jiffies(usec) + 1);
	return true;
}

void roce_req_pause(struct roce_qp *rqp)
{
	srn_count(rqp->dev, TX_PAUSE);
	rqp->req.paused = true;
	mod_timer(&rqp->req.pause_timer, jiffies + 1);
}

void roce_kick(struct roce_qp *rqp)
{
	struct roce_req *req = &rqp->req;

	spin_lock(&req->lock);
	if (rqp->dead) {
		spin_unlock(&req->lock);
		return;
	}
	roce_visit(rqp);
	spin_unlock(&req->lock);

	srn_sq_kick(rqp->qp);
	roce_leave(rqp);
}

/* ---- building ----------------------------------------------------------- */

static enum seg_kind req_seg_kind(const struct srn_wqe *wqe)
{
	switch (wqe->sqe.opcode) {
	case SRN_WR_SEND:
		return SEG_SEND;
	case SRN_WR_SEND_IMM:
		return SEG_SEND_IMM;
	case SRN_WR_SEND_INV:
		return SEG_SEND_INV;
	case SRN_WR_WRITE_IMM:
		return SEG_WRITE_IMM;
	default:
		return SEG_WRITE;
	}
}

/* Transport headers of packet @i of a WQE; returns its payload bytes. */
static u32 req_header(struct roce_qp *rqp, struct srn_wqe *wqe, u32 i,
		      struct roce_hdr *h)
{
	const struct srn_sqe *sqe = &wqe->sqe;
	struct roce_wqe *w = to_rwqe(wqe);
	u32 off = seg_offset(i, rqp->pmtu);
	u32 flags;

	*h = (struct roce_hdr){
		.migreq = true,
		.pkey = ROCE_PKEY_DEFAULT,
		.dqpn = rqp->dqpn,
		.psn = psn_add(w->psn, i),
	};
	if (req_is_atomic(wqe)) {
		h->opcode = sqe->opcode == SRN_WR_COMP_SWAP ?
			    ROCE_OP_COMPARE_SWAP : ROCE_OP_FETCH_ADD;
		h->ackreq = true;
		h->va = sqe->atomic.remote_addr;
		h->rkey = sqe->atomic.rkey;
		if (sqe->opcode == SRN_WR_COMP_SWAP) {
			h->swap_add = sqe->atomic.swap;
			h->compare = sqe->atomic.compare_add;
		} else {
			h->swap_add = sqe->atomic.compare_add;
		}
		return 0;
	}
	if (req_is_read(wqe)) {
		/* A restart asks for what is missing, to the end (R040). */
		h->opcode = ROCE_OP_READ_REQUEST;
		h->ackreq = true;
		h->va = sqe->rdma.remote_addr + off;
		h->rkey = sqe->rdma.rkey;
		h->dmalen = wqe->len - off;
		return 0;
	}
	h->opcode = seg_opcode(req_seg_kind(wqe), i, w->npkts);
	flags = bth_op_flags(h->opcode);
	h->va = sqe->rdma.remote_addr;
	h->rkey = sqe->rdma.rkey;
	h->dmalen = wqe->len;
	h->imm = sqe->imm;
	h->inv_rkey = sqe->inv_rkey;
	h->se = (flags & BTH_F_END) && (flags & (BTH_F_SEND | BTH_F_IMM)) &&
		(sqe->flags & SRN_SQE_SOLICITED);
	return seg_len(wqe->len, rqp->pmtu, i);
}

static int req_gather(struct roce_req *req, struct srn_wqe *wqe, u32 index,
		      u32 off, u8 *dst, u32 len)
{
	int ret;

	if (wqe->sqe.flags & SRN_SQE_INLINE) {
		memcpy(dst, srn_wqe_inline(wqe) + off, len);
		return 0;
	}
	if (req->cur_wqe != index || req->cur_off != off)
		req->cur = srn_cursor_at(wqe->sge, wqe->sqe.num_sge, off);
	ret = srn_sge_gather(wqe->sge, wqe->sqe.num_sge, &req->cur, dst, len);
	req->cur_wqe = index;
	req->cur_off = off + len;
	return ret;
}

/* PSNs of the packets of a batch, to find the first one the network refused. */
struct req_sent {
	u32 psn[ROCE_BATCH_PKTS];
};

enum req_step {
	REQ_SENT,
	REQ_FAULT,
	REQ_NOMEM,
};

static enum req_step req_emit(struct roce_qp *rqp, struct roce_batch *b,
			      struct req_sent *sent, struct srn_wqe *wqe)
{
	struct roce_req *req = &rqp->req;
	struct roce_wqe *w = to_rwqe(wqe);
	u32 i = (req->psn_send - w->psn) & PSN_MASK;
	struct roce_hdr h;
	u32 len, next;
	u8 *dst;

	len = req_header(rqp, wqe, i, &h);
	dst = roce_batch_add(b, &rqp->path, &h, len);
	if (!dst)
		return REQ_NOMEM;
	if (len && req_gather(req, wqe, req->wqe_send,
			      seg_offset(i, rqp->pmtu), dst, len)) {
		/* It completes in its turn; what is before it is acknowledged first. */
		roce_batch_undo(b);
		wqe->status = IB_WC_LOC_PROT_ERR;
		wqe->vendor_err = SRN_VERR_MR_GONE;
		return REQ_FAULT;
	}
	sent->psn[b->count - 1] = h.psn;

	next = req_is_read(wqe) ? psn_add(w->psn, w->npkts) : psn_add(h.psn, 1);
	if (psn_before(h.psn, req->psn_max))
		srn_count(rqp->dev, RETRANS);
	if (psn_before(req->psn_max, next))
		req->psn_max = next;
	req->psn_send = next;
	if (next == psn_add(w->psn, w->npkts))
		req->wqe_send++;
	return REQ_SENT;
}

/* LOCAL_INV and REG_MR; they take no PSN. */
static void req_local_op(struct roce_qp *rqp, struct srn_wqe *wqe)
{
	struct ib_pd *pd = rqp->qp->ibqp.pd;
	struct roce_wqe *w = to_rwqe(wqe);
	int ret;

	if (wqe->sqe.opcode == SRN_WR_REG_MR)
		ret = srn_mr_reg(rqp->dev, pd, &wqe->sqe);
	else
		ret = srn_mr_invalidate(rqp->dev, pd, wqe->sqe.inv_rkey);
	if (ret) {
		/* The queue stops here. */
		wqe->status = IB_WC_LOC_QP_OP_ERR;
		wqe->vendor_err = SRN_VERR_LKEY;
		return;
	}
	w->psn = rqp->req.psn_next;
	w->flags |= ROCE_WQE_STARTED | ROCE_WQE_DONE;
	rqp->req.wqe_send++;
}

/*
 * May a WQE that has no PSNs yet begin? One that never may gets a status, so
 * that it does not block the queue for ever.
 */
static bool req_may_start(struct roce_qp *rqp, struct srn_wqe *wqe)
{
	struct roce_req *req = &rqp->req;

	if (READ_ONCE(rqp->qp->state) != IB_QPS_RTS)
		return false;
	if ((wqe->sqe.flags & SRN_SQE_FENCE) && req->rd_outstanding)
		return false;
	/* The key must not vanish under a WQE that still uses it. */
	if (wqe->sqe.opcode == SRN_WR_LOCAL_INV)
		return req->wqe_send == rqp->qp->sq.ring.idx;
	if (!req_is_read(wqe) && !req_is_atomic(wqe))
		return true;
	if (!req->max_rd_atomic) {
		wqe->status = IB_WC_LOC_QP_OP_ERR;
		wqe->vendor_err = SRN_VERR_WQE;
	}
	return req->rd_outstanding < req->max_rd_atomic;
}

static void req_start(struct roce_qp *rqp, struct srn_wqe *wqe)
{
	struct roce_req *req = &rqp->req;
	struct roce_wqe *w = to_rwqe(wqe);

	w->psn = req->psn_next;
	w->npkts = req_is_atomic(wqe) ? 1 : seg_packets(wqe->len, rqp->pmtu);
	w->flags = ROCE_WQE_STARTED;
	req->psn_next = psn_add(req->psn_next, w->npkts);
	if (req_is_read(wqe) || req_is_atomic(wqe)) {
		w->flags |= ROCE_WQE_RD_ATOMIC;
		req->rd_outstanding++;
	}
}

/* The WQE that wqe_send stands at, fetched if need be; NULL when there is none. */
static struct srn_wqe *req_current(struct roce_qp *rqp)
{
	struct srn_wqe *wqe;

	if (rqp->req.wqe_send != rqp->qp->sq.next)
		return srn_sq_wqe(rqp->qp, rqp->req.wqe_send);
	if (READ_ONCE(rqp->qp->state) != IB_QPS_RTS)
		return NULL;
	wqe = srn_sq_fetch(rqp->qp);
	if (IS_ERR(wqe)) {
		srn_qp_fatal(rqp->qp, IB_EVENT_QP_FATAL);
		return NULL;
	}
	if (wqe)
		memset(wqe->priv, 0, sizeof(wqe->priv));
	return wqe;
}

/*
 * Is there room for one more packet, and for the answers to a READ? One message
 * may always be under way, so that a small window never stops a QP.
 */
static bool req_window_open(const struct roce_qp *rqp, struct srn_wqe *wqe)
{
	const struct roce_req *req = &rqp->req;
	u32 span = req_span(req);

	if (!span)
		return true;
	if ((u64)span * rqp->pmtu >= req->window)
		return false;
	return span + (req_is_read(wqe) ? to_rwqe(wqe)->npkts : 1) <=
	       REQ_PSN_SPAN;
}

/*
 * One step of filling a batch. Return: false when nothing more can be sent now.
 */
static bool req_fill_one(struct roce_qp *rqp, struct roce_batch *b,
			 struct req_sent *sent, struct roce_done *done)
{
	struct roce_req *req = &rqp->req;
	struct srn_wqe *wqe = req_current(rqp);
	struct roce_wqe *w;

	if (!wqe)
		return false;
	if (wqe->status != IB_WC_SUCCESS) {
		roce_req_retire(rqp, done);
		return false;
	}
	w = to_rwqe(wqe);
	if (!(w->flags & ROCE_WQE_STARTED)) {
		if (!req_may_start(rqp, wqe))
			return wqe->status != IB_WC_SUCCESS;
		if (req_is_local(wqe)) {
			req_local_op(rqp, wqe);
			roce_req_retire(rqp, done);
			return true;
		}
		req_start(rqp, wqe);
	}
	if (!w->npkts || (w->flags & ROCE_WQE_DONE)) {
		/* Answered while a go-back was under way. */
		if (w->npkts)
			req->psn_send = psn_add(w->psn, w->npkts);
		req->wqe_send++;
		return true;
	}
	if (!req_window_open(rqp, wqe))
		return false;
	switch (req_emit(rqp, b, sent, wqe)) {
	case REQ_SENT:
		return true;
	case REQ_NOMEM:
		roce_req_pause(rqp);
		return false;
	case REQ_FAULT:
		roce_req_retire(rqp, done);
		return false;
	}
	return false;
}

static void req_fill(struct roce_qp *rqp, struct roce_batch *b,
		     struct req_sent *sent, struct roce_done *done)
{
	struct roce_req *req = &rqp->req;
	bool idle = !req_outstanding(req);

	while (!roce_batch_full(b) && !req->rnr_wait && !req->paused &&
	       req_fill_one(rqp, b, sent, done))
		;
	if (!b->count)
		return;
	roce_batch_ackreq(b);
	if (idle)
		req_timer_arm(req);
}

/* The network took only the first @taken packets: send the rest again soon. */
static void req_unsent(struct roce_qp *rqp, struct req_sent *sent, int taken)
{
	struct roce_req *req = &rqp->req;

	spin_lock(&req->lock);
	if (!rqp->dead && !psn_before(sent->psn[taken], req->psn_una) &&
	    psn_before(sent->psn[taken], req->psn_send)) {
		roce_req_seek(rqp, sent->psn[taken]);
		roce_req_pause(rqp);
	}
	spin_unlock(&req->lock);
}

static bool req_can_send(enum ib_qp_state state)
{
	return state == IB_QPS_RTS || state == IB_QPS_SQD;
}

/* One batch from the queue to the network. Return: there may be more. */
static bool req_round(struct roce_qp *rqp)
{
	struct roce_req *req = &rqp->req;
	struct roce_done done = {};
	struct req_sent sent;
	struct roce_batch b;
	u32 count;
	int taken;

	roce_batch_init(&b);
	spin_lock(&req->lock);
	if (!rqp->dead) {
		if (req_can_send(READ_ONCE(rqp->qp->state)))
			req_fill(rqp, &b, &sent, &done);
		if (READ_ONCE(rqp->qp->state) == IB_QPS_ERR)
			roce_req_flush(rqp, &done);
	}
	spin_unlock(&req->lock);
	roce_done_notify(&done);

	count = b.count;
	if (!count)
		return false;
	taken = roce_batch_send(&b, rqp->dev, &rqp->path, NULL);
	if (taken >= 0 && taken < count)
		req_unsent(rqp, &sent, taken);
	return true;
}

void roce_req_run(struct roce_qp *rqp)
{
	int round;

	for (round = 0; round < REQ_ROUNDS; round++)
		if (!req_round(rqp))
			return;
	queue_work(srn_wq, &rqp->qp->sq_work);
}

/* ---- timers ------------------------------------------------------------- */

/*
 * Timers are shut down before the verbs half goes (roce_req_stop()), so a
 * handler may use it.
 */
static void req_retrans_timer(struct timer_list *t)
{
	struct roce_qp *rqp = timer_container_of(rqp, t, req.retrans);
	struct roce_req *req = &rqp->req;
	struct roce_done done = {};
	bool kick = false;

	spin_lock(&req->lock);
	if (rqp->dead || !req_can_send(READ_ONCE(rqp->qp->state)) ||
	    !req_outstanding(req)) {
		/* Nothing to wait for; the next packet arms it again. */
	} else if (time_before(jiffies, req->deadline)) {
		mod_timer(&req->retrans, req->deadline);
	} else if (req->rnr_wait || req->paused) {
		req_timer_arm(req);
	} else {
		srn_count(rqp->dev, TIMEOUT);
		req->recovering = false;
		kick = roce_req_go_back(rqp, &done);
	}
	spin_unlock(&req->lock);
	roce_done_notify(&done);
	if (kick)
		srn_sq_kick(rqp->qp);
}

static void req_rnr_timer(struct timer_list *t)
{
	struct roce_qp *rqp = timer_container_of(rqp, t, req.rnr_timer);
	struct roce_req *req = &rqp->req;

	spin_lock(&req->lock);
	req->rnr_wait = false;
	req_timer_arm(req);
	spin_unlock(&req->lock);
	srn_sq_kick(rqp->qp);
}

static void req_pause_timer(struct timer_list *t)
{
	struct roce_qp *rqp = timer_container_of(rqp, t, req.pause_timer);
	struct roce_req *req = &rqp->req;

	spin_lock(&req->lock);
	req->paused = false;
	spin_unlock(&req->lock);
	srn_sq_kick(rqp->qp);
}

void roce_req_init(struct roce_qp *rqp)
{
	struct roce_req *req = &rqp->req;

	spin_lock_init(&req->lock);
	req->window = REQ_WINDOW_START;
	req->loss_window = REQ_WINDOW_MAX;
	timer_setup(&req->retrans, req_retrans_timer, 0);
	timer_setup(&req->rnr_timer, req_rnr_timer, 0);
	timer_setup(&req->pause_timer, req_pause_timer, 0);
}

void roce_req_stop(struct roce_qp *rqp)
{
	timer_shutdown_sync(&rqp->req.retrans);
	timer_shutdown_sync(&rqp->req.rnr_timer);
	timer_shutdown_sync(&rqp->req.pause_timer);
}

void roce_req_reset(struct roce_qp *rqp, u32 psn)
{
	struct roce_req *req = &rqp->req;

	req->psn_next = psn;
	req->psn_una = psn;
	req->psn_send = psn;
	req->psn_max = psn;
	req->wqe_send = rqp->qp->sq.next;
	req->cur_wqe = req->wqe_send - 1;
	req->rd_outstanding = 0;
	req->window = REQ_WINDOW_START;
	req->loss_window = REQ_WINDOW_MAX;
	req->retries = req->retry_cnt;
	req->rnr_retries = req->rnr_retry;
	req->rnr_wait = false;
	req->paused = false;
	req->recovering = false;
	req->draining = false;
}
