// SPDX-License-Identifier: GPL-2.0
/*
 * What comes back to the requester of an RC QP: ACK, NAK, READ and atomic
 * responses.
 *
 * Runs in softirq under req->lock, one packet at a time; completions are
 * notified after the lock is dropped. IBA 9.7.5, 9.7.6, 9.9.2.
 */
#include "roce.h"

/* The started WQE that holds @psn, or NULL; @index gets its number. */
static struct srn_wqe *comp_find(struct roce_qp *rqp, u32 psn, u32 *index)
{
	struct srn_sq *sq = &rqp->qp->sq;
	u32 i;

	for (i = sq->ring.idx; i != sq->next; i++) {
		struct srn_wqe *wqe = srn_sq_wqe(rqp->qp, i);
		struct roce_wqe *w = to_rwqe(wqe);

		if (!(w->flags & ROCE_WQE_STARTED))
			return NULL;
		if (psn_in(psn, w->psn, w->npkts)) {
			*index = i;
			return wqe;
		}
	}
	return NULL;
}

/*
 * Everything before @psn has been acknowledged, as far as that is believable:
 * a READ or atomic is finished by its own response only. Return: psn_una is
 * @psn now; false when a response before it was lost (implied NAK).
 */
static bool comp_ack_before(struct roce_qp *rqp, u32 psn)
{
	struct srn_sq *sq = &rqp->qp->sq;
	struct roce_req *req = &rqp->req;
	u32 una = psn;
	u32 i;

	if (psn_before(psn, req->psn_una))
		return false;
	for (i = sq->ring.idx; i != sq->next; i++) {
		struct roce_wqe *w = to_rwqe(srn_sq_wqe(rqp->qp, i));

		if (!(w->flags & ROCE_WQE_STARTED) || !psn_before(w->psn, psn))
			break;
		if ((w->flags & ROCE_WQE_RD_ATOMIC) &&
		    !(w->flags & ROCE_WQE_DONE)) {
			/* psn_una stands inside it already, or before it. */
			una = psn_before(req->psn_una, w->psn) ?
			      w->psn : req->psn_una;
			break;
		}
	}
	if (una != req->psn_una) {
		u32 packets = (una - req->psn_una) & PSN_MASK;

		req->psn_una = una;
		roce_req_progress(rqp, packets);
	}
	return una == psn;
}

/* A response that must have existed did not arrive. Return: kick. */
static bool comp_implied_nak(struct roce_qp *rqp, struct roce_done *done)
{
	/* The rest of the same burst shows the same loss. */
	if (rqp->req.recovering)
		return false;
	rqp->req.recovering = true;
	srn_count(rqp->dev, IMPLIED_NAK);
	return roce_req_go_back(rqp, done);
}

static bool comp_bad_response(struct roce_qp *rqp, struct roce_done *done)
{
	roce_req_fail(rqp, rqp->qp->sq.ring.idx, IB_WC_BAD_RESP_ERR,
		      SRN_VERR_BAD_RESP, done);
	return false;
}

static bool comp_fatal_nak(struct roce_qp *rqp, const struct roce_hdr *h,
			   struct roce_done *done)
{
	u8 status = IB_WC_REM_OP_ERR;
	u32 index;

	srn_count(rqp->dev, RX_NAKS);
	if (h->syndrome == AETH_NAK_INV_REQ)
		status = IB_WC_REM_INV_REQ_ERR;
	else if (h->syndrome == AETH_NAK_REM_ACCESS)
		status = IB_WC_REM_ACCESS_ERR;
	if (!comp_find(rqp, h->psn, &index))
		return false;
	comp_ack_before(rqp, h->psn);
	roce_req_retire(rqp, done);
	roce_req_fail(rqp, index, status, SRN_VERR_REMOTE, done);
	return false;
}

static bool comp_nak(struct roce_qp *rqp, const struct roce_hdr *h,
		     struct roce_done *done)
{
	struct roce_req *req = &rqp->req;
	u32 old = req->psn_una;

	if (h->syndrome != AETH_NAK_PSN_SEQ)
		return comp_fatal_nak(rqp, h, done);
	srn_count(rqp->dev, PSN_SEQ);
	if (!comp_ack_before(rqp, h->psn))
		return comp_implied_nak(rqp, done);
	roce_req_retire(rqp, done);
	/* While an RNR wait runs the peer refuses what follows; that is no loss. */
	if (req->rnr_wait && req->psn_una == old)
		return false;
	return roce_req_go_back(rqp, done);
}

static bool comp_rnr(struct roce_qp *rqp, const struct roce_hdr *h,
		     struct roce_done *done)
{
	srn_count(rqp->dev, RX_RNR);
	if (!comp_ack_before(rqp, h->psn))
		return comp_implied_nak(rqp, done);
	roce_req_retire(rqp, done);
	if (!rqp->req.rnr_wait)
		roce_req_rnr(rqp, aeth_rnr_usec(aeth_value(h->syndrome)), done);
	return false;
}

static bool comp_ack(struct roce_qp *rqp, const struct roce_hdr *h,
		     struct roce_done *done)
{
	srn_count(rqp->dev, RX_ACKS);
	switch (aeth_type(h->syndrome)) {
	case AETH_ACK:
		/* Credits are not used: the RNR NAK regulates (8.1). */
		if (!comp_ack_before(rqp, psn_add(h->psn, 1))) {
			roce_req_retire(rqp, done);
			return comp_implied_nak(rqp, done);
		}
		roce_req_retire(rqp, done);
		return true;
	case AETH_RNR:
		return comp_rnr(rqp, h, done);
	case AETH_NAK:
		return comp_nak(rqp, h, done);
	default:
		return comp_bad_response(rqp, done);
	}
}

/* One more PSN of the READ or atomic at psn_una is answered. */
static void comp_advance(struct roce_qp *rqp, struct roce_wqe *w,
			 struct roce_done *done)
{
	struct roce_req *req = &rqp->req;

	req->psn_una = psn_add(req->psn_una, 1);
	if (req->psn_una == psn_add(w->psn, w->npkts)) {
		w->flags |= ROCE_WQE_DONE;
		req->rd_outstanding--;
	}
	roce_req_progress(rqp, 1);
	roce_req_retire(rqp, done);
}

/*
 * Is the packet what packet @k of the READ has to be? After a restart the
 * responder begins with FIRST or ONLY again, so those may come at any place.
 */
static bool comp_read_shape_ok(const struct roce_qp *rqp,
			       const struct srn_wqe *wqe,
			       const struct roce_wqe *w, u32 k,
			       const struct roce_hdr *h)
{
	bool last = k == w->npkts - 1;
	bool end = h->flags & BTH_F_END;

	if (end != last || (k == 0 && !(h->flags & BTH_F_START)))
		return false;
	if ((h->flags & BTH_F_AETH) && aeth_type(h->syndrome) != AETH_ACK)
		return false;
	return h->payload_len == seg_len(wqe->len, rqp->pmtu, k);
}

static bool comp_read(struct roce_qp *rqp, struct roce_rx *rx,
		      struct roce_done *done)
{
	struct roce_req *req = &rqp->req;
	const struct roce_hdr *h = &rx->h;
	struct srn_cursor cur;
	struct srn_wqe *wqe;
	struct roce_wqe *w;
	u32 index, k;

	if (!comp_ack_before(rqp, h->psn))
		return comp_implied_nak(rqp, done);
	roce_req_retire(rqp, done);
	wqe = comp_find(rqp, req->psn_una, &index);
	if (!wqe || wqe->sqe.opcode != SRN_WR_READ)
		return comp_bad_response(rqp, done);
	w = to_rwqe(wqe);
	k = (h->psn - w->psn) & PSN_MASK;
	if (!comp_read_shape_ok(rqp, wqe, w, k, h))
		return comp_bad_response(rqp, done);
	if (h->payload_len) {
		cur = srn_cursor_at(wqe->sge, wqe->sqe.num_sge,
				    seg_offset(k, rqp->pmtu));
		if (roce_rx_to_sges(rx, wqe->sge, wqe->sqe.num_sge, &cur)) {
			roce_req_fail(rqp, index, IB_WC_LOC_PROT_ERR,
				      SRN_VERR_MR_GONE, done);
			return false;
		}
	}
	comp_advance(rqp, w, done);
	/* Something new can start only when the READ is over or a window opened. */
	return true;
}

static bool comp_atomic(struct roce_qp *rqp, struct roce_rx *rx,
			struct roce_done *done)
{
	struct roce_req *req = &rqp->req;
	struct srn_cursor cur = {};
	struct srn_wqe *wqe;
	u64 orig = rx->h.orig;
	u32 index;

	if (!comp_ack_before(rqp, rx->h.psn))
		return comp_implied_nak(rqp, done);
	roce_req_retire(rqp, done);
	wqe = comp_find(rqp, req->psn_una, &index);
	if (!wqe || !(to_rwqe(wqe)->flags & ROCE_WQE_RD_ATOMIC) ||
	    wqe->sqe.opcode == SRN_WR_READ ||
	    aeth_type(rx->h.syndrome) != AETH_ACK)
		return comp_bad_response(rqp, done);
	if (srn_sge_scatter(wqe->sge, wqe->sqe.num_sge, &cur, &orig,
			    sizeof(orig))) {
		roce_req_fail(rqp, index, IB_WC_LOC_PROT_ERR, SRN_VERR_MR_GONE,
			      done);
		return false;
	}
	comp_advance(rqp, to_rwqe(wqe), done);
	return true;
}

static bool comp_dispatch(struct roce_qp *rqp, struct roce_rx *rx,
			  struct roce_done *done)
{
	struct roce_req *req = &rqp->req;
	const struct roce_hdr *h = &rx->h;
	enum ib_qp_state state = READ_ONCE(rqp->qp->state);

	if (state != IB_QPS_RTS && state != IB_QPS_SQD) {
		srn_count(rqp->dev, DROP_STATE);
		return false;
	}
	/* Ghosts of what is acknowledged, and answers to what was never sent. */
	if (psn_before(h->psn, req->psn_una) ||
	    !psn_before(h->psn, req->psn_max)) {
		srn_count(rqp->dev, DROP_RESPONSE);
		return false;
	}
	if (h->flags & BTH_F_READ_RESP)
		return comp_read(rqp, rx, done);
	if (h->flags & BTH_F_ATOMICACKETH)
		return comp_atomic(rqp, rx, done);
	return comp_ack(rqp, h, done);
}

bool roce_comp_rx(struct roce_qp *rqp, struct roce_rx *rx)
{
	struct roce_req *req = &rqp->req;
	struct roce_done done = {};
	bool kick = false;

	spin_lock(&req->lock);
	if (!rqp->dead)
		kick = comp_dispatch(rqp, rx, &done);
	spin_unlock(&req->lock);
	roce_done_notify(&done);
	return kick;
}
