// SPDX-License-Identifier: GPL-2.0
/*
 * Responder of an RC QP: checks a request, executes it, answers in order.
 *
 * Requests are placed in softirq under resp->lock; nothing is queued. What has
 * to be answered is remembered (READs, atomics, one coalesced ACK or NAK) and sent
 * by roce_resp_run() without the lock, by one sender at a time. IBA 9.7.3 to
 * 9.7.5, 9.7.7; order of checks as in C9-50ff.
 */
#include "roce.h"

/* Batches sent in one go before the work item goes on. */
#define RESP_ROUNDS 4

static struct srn_cq *resp_cq(struct roce_qp *rqp)
{
	return rqp->qp->recv_cq;
}

/* ---- answers that wait -------------------------------------------------- */

static bool resp_fatal_pending(const struct roce_resp *resp)
{
	return resp->ack_pending && resp->ack_syndrome > AETH_NAK_PSN_SEQ;
}

/* One ACK stands for all before it, so only the last one is kept (4.9). */
static void resp_answer(struct roce_resp *resp, u32 psn, u8 syndrome)
{
	if (resp_fatal_pending(resp))
		return;
	resp->ack_pending = true;
	resp->ack_psn = psn;
	resp->ack_syndrome = syndrome;
}

/* A sequence NAK that has not left yet. */
static bool resp_gap_pending(const struct roce_resp *resp)
{
	return resp->ack_pending && resp->ack_syndrome == AETH_NAK_PSN_SEQ;
}

static void resp_ack(struct roce_resp *resp, u32 psn)
{
	/* Packets behind the gap were dropped: the peer must still hear of it. */
	if (resp_gap_pending(resp))
		return;
	/* An ACK of a duplicate must not take a later one's place. */
	if (resp->ack_pending && psn_before(psn, resp->ack_psn))
		return;
	resp_answer(resp, psn, aeth_ack(AETH_CREDIT_NONE));
}

static struct roce_rsrc *resp_rsrc(struct roce_resp *resp, u32 index)
{
	return &resp->rsrc[index & (resp->rsrc_slots - 1)];
}

static void resp_rsrc_drop(struct roce_rsrc *r)
{
	if (r->mr)
		srn_mr_put(r->mr);
	r->mr = NULL;
}

static struct roce_rsrc *resp_rsrc_new(struct roce_resp *resp)
{
	struct roce_rsrc *r = resp_rsrc(resp, resp->rsrc_head);

	if (resp->rsrc_used < resp->rsrc_slots) {
		resp->rsrc_used++;
	} else {
		/* The oldest: a new request proves that its answer came through. */
		if (resp->rsrc_head - resp->rsrc_send == resp->rsrc_slots)
			resp->rsrc_send++;
		resp_rsrc_drop(r);
	}
	resp->rsrc_head++;
	*r = (struct roce_rsrc){};
	return r;
}

void roce_resp_cancel(struct roce_qp *rqp)
{
	struct roce_resp *resp = &rqp->resp;

	resp->rsrc_send = resp->rsrc_head;
	resp->rsrc_done = resp->rsrc_head;
	resp->ack_pending = false;
}

/* ---- receive WQEs ------------------------------------------------------- */

static void resp_complete(struct roce_qp *rqp, struct srn_cqe *cqe,
			  bool solicited, struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;

	cqe->wr_id = resp->rwqe.wr_id;
	cqe->qp_num = rqp->qpn;
	cqe->port_num = 1;
	cqe->vlan_id = 0xffff;
	roce_done_add(rqp, done, resp_cq(rqp),
		      srn_cq_push(resp_cq(rqp), &rqp->qp->ibqp, cqe, solicited));
	srn_rwqe_put(&resp->rwqe);
}

static void resp_complete_error(struct roce_qp *rqp, u8 status, u8 verr,
				struct roce_done *done)
{
	struct srn_cqe cqe = {
		.status = status,
		.opcode = IB_WC_RECV,
		.vendor_err = verr,
	};

	if (rqp->resp.rwqe.valid)
		resp_complete(rqp, &cqe, true, done);
}

void roce_resp_flush(struct roce_qp *rqp, struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;

	resp_complete_error(rqp, IB_WC_WR_FLUSH_ERR, SRN_VERR_NONE, done);
	roce_done_add(rqp, done, resp_cq(rqp), srn_rq_flush(rqp->qp));
	if (rqp->qp->srq && !resp->last_wqe) {
		resp->last_wqe = true;
		srn_qp_event(rqp->qp, IB_EVENT_QP_LAST_WQE_REACHED);
	}
}

/* ---- verdicts ----------------------------------------------------------- */

/* What a check decided; anything but PASS ends the packet. */
enum resp_verdict {
	RESP_PASS,
	RESP_DROP,
	RESP_ANSWER,	/* an answer waits to be sent */
};

/*
 * A request that cannot be served: NAK, error completion of the receive WQE it
 * holds, event, QP to ERR. @status goes to the receive WQE, if one is held.
 */
static enum resp_verdict resp_fatal(struct roce_qp *rqp,
				    const struct roce_hdr *h, u8 nak, u8 status,
				    u8 verr, struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;
	int event = -1;

	if (resp->rwqe.valid)
		resp_complete_error(rqp, status, verr, done);
	else if (nak == AETH_NAK_REM_ACCESS)
		event = IB_EVENT_QP_ACCESS_ERR;
	if (nak == AETH_NAK_INV_REQ)
		event = IB_EVENT_QP_REQ_ERR;
	resp_answer(resp, h->psn, nak);
	srn_qp_fatal(rqp->qp, event);
	return RESP_ANSWER;
}

static enum resp_verdict resp_invalid(struct roce_qp *rqp,
				      const struct roce_hdr *h,
				      struct roce_done *done)
{
	return resp_fatal(rqp, h, AETH_NAK_INV_REQ, IB_WC_REM_INV_REQ_ERR,
			  SRN_VERR_REMOTE, done);
}

static enum resp_verdict resp_access(struct roce_qp *rqp,
				     const struct roce_hdr *h,
				     struct roce_done *done)
{
	return resp_fatal(rqp, h, AETH_NAK_REM_ACCESS, IB_WC_LOC_ACCESS_ERR,
			  SRN_VERR_REMOTE, done);
}

/* ---- checks of an in-order request --------------------------------------- */

static bool resp_op_enabled(const struct roce_qp *rqp, u32 flags)
{
	int access = READ_ONCE(rqp->access);

	if (flags & BTH_F_WRITE)
		return access & IB_ACCESS_REMOTE_WRITE;
	if (flags & BTH_F_READ_REQ)
		return access & IB_ACCESS_REMOTE_READ;
	if (flags & BTH_F_ATOMIC)
		return access & IB_ACCESS_REMOTE_ATOMIC;
	return true;
}

/* Does this packet begin to use a receive WQE? */
static bool resp_needs_rwqe(const struct roce_hdr *h)
{
	if (h->flags & BTH_F_SEND)
		return h->flags & BTH_F_START;
	return (h->flags & BTH_F_WRITE) && (h->flags & BTH_F_IMM);
}

static enum resp_verdict resp_take_rwqe(struct roce_qp *rqp,
					const struct roce_hdr *h,
					struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;

	switch (srn_rq_take(rqp->qp, &resp->rwqe)) {
	case 0:
		break;
	case -ENOENT:
		srn_count(rqp->dev, OUT_OF_BUFFER);
		resp->nak_sent = true;
		resp_answer(resp, h->psn, aeth_rnr(resp->min_rnr_timer));
		return RESP_ANSWER;
	default:
		return resp_fatal(rqp, h, AETH_NAK_REM_OP, IB_WC_LOC_QP_OP_ERR,
				  SRN_VERR_WQE, done);
	}
	/* WRITE_IMM reports through the WQE and places nothing in it. */
	if ((h->flags & BTH_F_SEND) && resp->rwqe.status != IB_WC_SUCCESS)
		return resp_fatal(rqp, h, AETH_NAK_REM_OP, resp->rwqe.status,
				  resp->rwqe.vendor_err, done);
	resp->cur = (struct srn_cursor){};
	return RESP_PASS;
}

/*
 * READs and atomics that are accepted and were never answered (R045). A replay
 * that is under way does not count against the peer.
 */
static bool resp_rsrc_room(const struct roce_resp *resp)
{
	return resp->rsrc_head - resp->rsrc_done < resp->rsrc_max;
}

static enum resp_verdict resp_check(struct roce_qp *rqp,
				    const struct roce_hdr *h,
				    enum roce_seq *next,
				    struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;

	if (!(h->flags & BTH_F_REQUEST) ||
	    !bth_seq_next(resp->seq, h->flags, next) ||
	    !resp_op_enabled(rqp, h->flags))
		return resp_invalid(rqp, h, done);
	if ((h->flags & (BTH_F_READ_REQ | BTH_F_ATOMIC)) &&
	    !resp_rsrc_room(resp))
		return resp_invalid(rqp, h, done);
	if (resp_needs_rwqe(h)) {
		enum resp_verdict v = resp_take_rwqe(rqp, h, done);

		if (v != RESP_PASS)
			return v;
	}
	if (!bth_len_ok(h, rqp->pmtu) ||
	    ((h->flags & BTH_F_RETH) && h->dmalen > ROCE_MSG_MAX))
		return resp_invalid(rqp, h, done);
	return RESP_PASS;
}

/* ---- execution ---------------------------------------------------------- */

static enum resp_verdict resp_send(struct roce_qp *rqp, struct roce_rx *rx,
				   struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;
	const struct roce_hdr *h = &rx->h;

	if (h->flags & BTH_F_START)
		resp->off = 0;
	if (h->payload_len > resp->rwqe.capacity - resp->off)
		return resp_fatal(rqp, h, AETH_NAK_INV_REQ, IB_WC_LOC_LEN_ERR,
				  SRN_VERR_LENGTH, done);
	if (roce_rx_to_sges(rx, resp->rwqe.sge, resp->rwqe.num_sge,
			    &resp->cur))
		return resp_fatal(rqp, h, AETH_NAK_REM_OP, IB_WC_LOC_PROT_ERR,
				  SRN_VERR_MR_GONE, done);
	resp->off += h->payload_len;
	if ((h->flags & BTH_F_IETH) &&
	    srn_mr_invalidate(rqp->dev, rqp->qp->ibqp.pd, h->inv_rkey))
		return resp_fatal(rqp, h, AETH_NAK_REM_OP, IB_WC_LOC_QP_OP_ERR,
				  SRN_VERR_LKEY, done);
	return RESP_PASS;
}

static void resp_write_end(struct roce_resp *resp)
{
	if (resp->mr)
		srn_mr_put(resp->mr);
	resp->mr = NULL;
}

/* RETH of a WRITE: key and range of the whole message, once (C9-88: not for length 0). */
static bool resp_write_begin(struct roce_qp *rqp, const struct roce_hdr *h)
{
	struct roce_resp *resp = &rqp->resp;

	resp->off = 0;
	resp->va = h->va;
	resp->rkey = h->rkey;
	resp->dmalen = h->dmalen;
	if (!h->dmalen)
		return true;
	resp->mr = srn_mr_get(rqp->dev, rqp->qp->ibqp.pd, h->rkey,
			      IB_ACCESS_REMOTE_WRITE, h->va, h->dmalen);
	return resp->mr;
}

static enum resp_verdict resp_write(struct roce_qp *rqp, struct roce_rx *rx,
				    struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;
	const struct roce_hdr *h = &rx->h;
	u32 left;

	if ((h->flags & BTH_F_START) && !resp_write_begin(rqp, h))
		return resp_access(rqp, h, done);
	left = resp->dmalen - resp->off;
	if (h->payload_len > left ||
	    ((h->flags & BTH_F_END) && h->payload_len != left)) {
		resp_write_end(resp);
		return resp_invalid(rqp, h, done);
	}
	if (h->payload_len &&
	    roce_rx_to_mr(rx, resp->mr, resp->rkey, IB_ACCESS_REMOTE_WRITE,
			  resp->va + resp->off)) {
		resp_write_end(resp);
		return resp_access(rqp, h, done);
	}
	resp->off += h->payload_len;
	if (h->flags & BTH_F_END) {
		srn_count(rqp->dev, RX_WRITES);
		resp_write_end(resp);
	}
	return RESP_PASS;
}

static enum resp_verdict resp_read(struct roce_qp *rqp,
				   const struct roce_hdr *h,
				   struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;
	struct srn_mr *mr = NULL;
	struct roce_rsrc *r;

	if (h->dmalen) {
		mr = srn_mr_get(rqp->dev, rqp->qp->ibqp.pd, h->rkey,
				IB_ACCESS_REMOTE_READ, h->va, h->dmalen);
		if (!mr)
			return resp_access(rqp, h, done);
	}
	srn_count(rqp->dev, RX_READS);
	r = resp_rsrc_new(resp);
	r->kind = ROCE_RSRC_READ;
	r->psn = h->psn;
	r->npkts = seg_packets(h->dmalen, rqp->pmtu);
	r->rkey = h->rkey;
	r->len = h->dmalen;
	r->va = h->va;
	r->mr = mr;
	return RESP_PASS;
}

static enum resp_verdict resp_atomic(struct roce_qp *rqp,
				     const struct roce_hdr *h,
				     struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;
	struct roce_rsrc *r;
	struct srn_mr *mr;
	u64 orig;
	int ret;

	if (h->va & 7)
		return resp_invalid(rqp, h, done);
	mr = srn_mr_get(rqp->dev, rqp->qp->ibqp.pd, h->rkey,
			IB_ACCESS_REMOTE_ATOMIC, h->va, sizeof(u64));
	if (!mr)
		return resp_access(rqp, h, done);
	ret = srn_mr_atomic(mr, h->rkey, h->va,
			    h->opcode == ROCE_OP_COMPARE_SWAP, h->compare,
			    h->swap_add, &orig);
	srn_mr_put(mr);
	if (ret)
		return resp_access(rqp, h, done);
	srn_count(rqp->dev, RX_ATOMICS);
	r = resp_rsrc_new(resp);
	r->kind = ROCE_RSRC_ATOMIC;
	r->psn = h->psn;
	r->npkts = 1;
	r->orig = orig;
	return RESP_PASS;
}

/* The receive completion of a finished SEND or WRITE with immediate. */
static void resp_receive_done(struct roce_qp *rqp, const struct roce_hdr *h,
			      struct roce_done *done)
{
	struct srn_cqe cqe = {
		.status = IB_WC_SUCCESS,
		.opcode = h->flags & BTH_F_WRITE ?
			  IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV,
		.byte_len = h->flags & BTH_F_WRITE ?
			    rqp->resp.dmalen : rqp->resp.off,
	};

	if (h->flags & BTH_F_IMM) {
		cqe.wc_flags = SRN_WC_WITH_IMM;
		cqe.imm = h->imm;
	} else if (h->flags & BTH_F_IETH) {
		cqe.wc_flags = SRN_WC_WITH_INV;
		cqe.inv_rkey = h->inv_rkey;
	}
	resp_complete(rqp, &cqe, h->se, done);
}

static enum resp_verdict resp_execute(struct roce_qp *rqp, struct roce_rx *rx,
				      struct roce_done *done)
{
	const struct roce_hdr *h = &rx->h;

	if (h->flags & BTH_F_SEND)
		return resp_send(rqp, rx, done);
	if (h->flags & BTH_F_WRITE)
		return resp_write(rqp, rx, done);
	if (h->flags & BTH_F_READ_REQ)
		return resp_read(rqp, h, done);
	return resp_atomic(rqp, h, done);
}

static bool resp_in_order(struct roce_qp *rqp, struct roce_rx *rx,
			  struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;
	const struct roce_hdr *h = &rx->h;
	enum roce_seq next = resp->seq;
	enum resp_verdict v;
	bool rd;

	v = resp_check(rqp, h, &next, done);
	if (v == RESP_PASS)
		v = resp_execute(rqp, rx, done);
	if (v != RESP_PASS)
		return v == RESP_ANSWER;

	rd = h->flags & (BTH_F_READ_REQ | BTH_F_ATOMIC);
	resp->seq = next;
	resp->nak_sent = resp_gap_pending(resp);
	if (rd || (h->flags & BTH_F_END))
		resp->msn = psn_add(resp->msn, 1);
	if (rd) {
		struct roce_rsrc *r = resp_rsrc(resp, resp->rsrc_head - 1);

		r->msn = resp->msn;
		resp->psn = psn_add(resp->psn, r->npkts);
		/* Its answer acknowledges everything before it. */
		if (!resp_gap_pending(resp))
			resp->ack_pending = false;
	} else {
		if (resp->rwqe.valid && (h->flags & BTH_F_END))
			resp_receive_done(rqp, h, done);
		resp->psn = psn_add(resp->psn, 1);
		if (h->ackreq)
			resp_ack(resp, h->psn);
	}
	/* What was missing came late: the NAK asks for what is missing now. */
	if (resp_gap_pending(resp))
		resp->ack_psn = resp->psn;
	return rd || h->ackreq;
}

/* ---- duplicates (IBA 9.7.5.1.4, R029..R031) ------------------------------ */

/* Has packet @packet of slot @index been sent? If not, it is on its way already. */
static bool resp_was_sent(struct roce_resp *resp, u32 index, u32 packet)
{
	if (index == resp->rsrc_send)
		return resp_rsrc(resp, index)->next > packet;
	return (s32)(index - resp->rsrc_send) < 0;
}

/* The peer asks again: answer from packet @packet of slot @index, then all after it. */
static void resp_replay(struct roce_resp *resp, u32 index, u32 packet)
{
	struct roce_rsrc *r = resp_rsrc(resp, index);
	u32 i;

	if (!resp_was_sent(resp, index, packet))
		return;
	for (i = index + 1; i != resp->rsrc_head; i++) {
		resp_rsrc(resp, i)->next = 0;
		resp_rsrc(resp, i)->start = 0;
	}
	/* To the peer a new answer begins here, with FIRST or ONLY (R030). */
	r->next = packet;
	r->start = packet;
	resp->rsrc_send = index;
}

/* The network refused: go on from the same place of the same answer. */
static void resp_rewind(struct roce_resp *resp, u32 index, u32 packet)
{
	u32 i;

	if (!resp_was_sent(resp, index, packet))
		return;
	for (i = index + 1; i != resp->rsrc_head; i++)
		resp_rsrc(resp, i)->next = resp_rsrc(resp, i)->start;
	resp_rsrc(resp, index)->next = packet;
	resp->rsrc_send = index;
}

static bool resp_duplicate_rd(struct roce_qp *rqp, const struct roce_hdr *h)
{
	struct roce_resp *resp = &rqp->resp;
	u32 i;

	for (i = resp->rsrc_head - resp->rsrc_used; i != resp->rsrc_head; i++) {
		struct roce_rsrc *r = resp_rsrc(resp, i);
		u32 k = (h->psn - r->psn) & PSN_MASK;
		u32 off = k * rqp->pmtu;

		if (k >= r->npkts)
			continue;
		if (r->kind == ROCE_RSRC_ATOMIC) {
			if (!(h->flags & BTH_F_ATOMIC))
				break;
		} else if (!(h->flags & BTH_F_READ_REQ) ||
			   h->rkey != r->rkey || h->va != r->va + off ||
			   h->dmalen != r->len - off) {
			break;
		}
		resp_replay(resp, i, k);
		return true;
	}
	srn_count(rqp->dev, DROP_DUPLICATE);
	return false;
}

static bool resp_duplicate(struct roce_qp *rqp, const struct roce_hdr *h)
{
	srn_count(rqp->dev, DUPLICATE);
	if (!(h->flags & BTH_F_REQUEST))
		return false;
	if (h->flags & (BTH_F_READ_REQ | BTH_F_ATOMIC))
		return resp_duplicate_rd(rqp, h);
	if (h->ackreq)
		resp_ack(&rqp->resp, h->psn);
	return h->ackreq;
}

/* A gap: one NAK, then silence until something in order comes (R028, R034). */
static bool resp_out_of_order(struct roce_qp *rqp)
{
	struct roce_resp *resp = &rqp->resp;

	srn_count(rqp->dev, OUT_OF_SEQ);
	if (resp->nak_sent)
		return false;
	resp->nak_sent = true;
	resp_answer(resp, resp->psn, AETH_NAK_PSN_SEQ);
	return true;
}

static bool resp_dispatch(struct roce_qp *rqp, struct roce_rx *rx,
			  struct roce_done *done)
{
	struct roce_resp *resp = &rqp->resp;
	enum ib_qp_state state = READ_ONCE(rqp->qp->state);
	s32 diff;

	if (state < IB_QPS_RTR || state == IB_QPS_ERR) {
		srn_count(rqp->dev, DROP_STATE);
		return false;
	}
	if (state == IB_QPS_RTR && !resp->comm_est) {
		resp->comm_est = true;
		srn_qp_event(rqp->qp, IB_EVENT_COMM_EST);
	}
	diff = psn_diff(rx->h.psn, resp->psn);
	if (!diff)
		return resp_in_order(rqp, rx, done);
	if (diff < 0)
		return resp_duplicate(rqp, &rx->h);
	return resp_out_of_order(rqp);
}

bool roce_resp_rx(struct roce_qp *rqp, struct roce_rx *rx)
{
	struct roce_resp *resp = &rqp->resp;
	struct roce_done done = {};
	bool run = false;

	spin_lock(&resp->lock);
	if (!rqp->dead)
		run = resp_dispatch(rqp, rx, &done);
	spin_unlock(&resp->lock);
	roce_done_notify(&done);
	return run;
}

/* ---- sending ------------------------------------------------------------ */

/* Where the answer stood before each packet of a batch. */
struct resp_sent {
	u32 index[ROCE_BATCH_PKTS];
	u32 packet[ROCE_BATCH_PKTS];
	bool ack;	/* the last packet is the ACK or NAK */
};

static void resp_note(const struct roce_resp *resp, const struct roce_batch *b,
		      struct resp_sent *sent, u32 packet)
{
	sent->index[b->count - 1] = resp->rsrc_send;
	sent->packet[b->count - 1] = packet;
}

static void resp_header(const struct roce_qp *rqp, u8 opcode, u32 psn,
			u8 syndrome, u32 msn, struct roce_hdr *h)
{
	*h = (struct roce_hdr){
		.opcode = opcode,
		.migreq = true,
		.pkey = ROCE_PKEY_DEFAULT,
		.dqpn = rqp->dqpn,
		.psn = psn,
		.syndrome = syndrome,
		.msn = msn,
	};
}

/* Return: false when there is no memory now. */
static bool resp_emit_ack(struct roce_qp *rqp, struct roce_batch *b,
			  struct resp_sent *sent)
{
	struct roce_resp *resp = &rqp->resp;
	struct roce_hdr h;

	resp_header(rqp, ROCE_OP_ACK, resp->ack_psn, resp->ack_syndrome,
		    resp->msn, &h);
	if (!roce_batch_add(b, &rqp->path, &h, 0))
		return false;
	resp_note(resp, b, sent, 0);
	sent->ack = true;
	resp->ack_pending = false;
	switch (aeth_type(h.syndrome)) {
	case AETH_ACK:
		srn_count(rqp->dev, TX_ACKS);
		break;
	case AETH_RNR:
		srn_count(rqp->dev, TX_RNR);
		break;
	default:
		srn_count(rqp->dev, TX_NAKS);
		break;
	}
	return true;
}

static bool resp_emit_atomic(struct roce_qp *rqp, struct roce_batch *b,
			     struct resp_sent *sent, struct roce_rsrc *r)
{
	struct roce_resp *resp = &rqp->resp;
	struct roce_hdr h;

	resp_header(rqp, ROCE_OP_ATOMIC_ACK, r->psn,
		    aeth_ack(AETH_CREDIT_NONE), r->msn, &h);
	h.orig = r->orig;
	if (!roce_batch_add(b, &rqp->path, &h, 0))
		return false;
	resp_note(resp, b, sent, 0);
	r->next = 1;
	return true;
}

/*
 * The MR went away between the READ request and its answer. A READ that was
 * answered before is asked for again by a late duplicate: the peer has its
 * data, so the owner of the memory was free to take the key back, and nobody
 * waits for this answer.
 */
static void resp_read_gone(struct roce_qp *rqp, struct roce_rsrc *r)
{
	struct roce_resp *resp = &rqp->resp;

	if ((s32)(resp->rsrc_send - resp->rsrc_done) < 0) {
		srn_count(rqp->dev, DROP_DUPLICATE);
		r->next = r->npkts;
		return;
	}
	resp->rsrc_send = resp->rsrc_head;
	resp->ack_pending = false;
	resp_answer(resp, psn_add(r->psn, r->next), AETH_NAK_REM_ACCESS);
	srn_qp_fatal(rqp->qp, IB_EVENT_QP_ACCESS_ERR);
}

static bool resp_emit_read(struct roce_qp *rqp, struct roce_batch *b,
			   struct resp_sent *sent, struct roce_rsrc *r)
{
	struct roce_resp *resp = &rqp->resp;
	u32 len = seg_len(r->len, rqp->pmtu, r->next);
	struct roce_hdr h;
	u8 *dst;

	resp_header(rqp, seg_opcode(SEG_READ_RESP, r->next - r->start,
				    r->npkts - r->start),
		    psn_add(r->psn, r->next), aeth_ack(AETH_CREDIT_NONE),
		    r->msn, &h);
	dst = roce_batch_add(b, &rqp->path, &h, len);
	if (!dst)
		return false;
	if (len && srn_mr_read(r->mr, r->rkey, IB_ACCESS_REMOTE_READ,
			       r->va + seg_offset(r->next, rqp->pmtu), dst,
			       len)) {
		roce_batch_undo(b);
		resp_read_gone(rqp, r);
		return true;
	}
	resp_note(resp, b, sent, r->next);
	r->next++;
	return true;
}

static void resp_pause(struct roce_qp *rqp)
{
	srn_count(rqp->dev, TX_PAUSE);
	mod_timer(&rqp->resp.pause_timer, jiffies + 1);
}

static void resp_fill(struct roce_qp *rqp, struct roce_batch *b,
		      struct resp_sent *sent)
{
	struct roce_resp *resp = &rqp->resp;

	while (!roce_batch_full(b)) {
		struct roce_rsrc *r;
		bool ok;

		if (resp->rsrc_send == resp->rsrc_head) {
			if (resp->ack_pending && !resp_emit_ack(rqp, b, sent))
				resp_pause(rqp);
			return;
		}
		/* The budget's destructor runs us again when there is room. */
		if (!b->count && roce_budget_full(rqp->budget))
			return;
		r = resp_rsrc(resp, resp->rsrc_send);
		ok = r->kind == ROCE_RSRC_ATOMIC ?
		     resp_emit_atomic(rqp, b, sent, r) :
		     resp_emit_read(rqp, b, sent, r);
		if (!ok) {
			resp_pause(rqp);
			return;
		}
		if (resp->rsrc_send != resp->rsrc_head && r->next == r->npkts) {
			resp->rsrc_send++;
			if ((s32)(resp->rsrc_send - resp->rsrc_done) > 0)
				resp->rsrc_done = resp->rsrc_send;
		}
	}
}

/*
 * The network took only the first @taken packets. Answers go back to where they
 * stood, unless a duplicate has moved them already; an ACK is due again.
 */
static void resp_unsent(struct roce_qp *rqp, const struct resp_sent *sent,
			int taken, u32 count)
{
	struct roce_resp *resp = &rqp->resp;
	u32 index = sent->index[taken];

	spin_lock(&resp->lock);
	if (!rqp->dead && READ_ONCE(rqp->qp->state) >= IB_QPS_RTR) {
		if (!(sent->ack && taken == count - 1) &&
		    resp->rsrc_head - index - 1 < resp->rsrc_used)
			resp_rewind(resp, index, sent->packet[taken]);
		if (sent->ack && !resp->ack_pending)
			resp_answer(resp, resp->ack_psn, resp->ack_syndrome);
		resp_pause(rqp);
	}
	spin_unlock(&resp->lock);
}

/* One batch of answers. Return: there may be more. */
static bool resp_round(struct roce_qp *rqp)
{
	struct roce_resp *resp = &rqp->resp;
	struct resp_sent sent;
	struct roce_batch b;
	u32 count;
	int taken;

	sent.ack = false;
	roce_batch_init(&b);
	spin_lock(&resp->lock);
	if (!rqp->dead && rqp->has_path)
		resp_fill(rqp, &b, &sent);
	spin_unlock(&resp->lock);

	count = b.count;
	if (!count)
		return false;
	taken = roce_batch_send(&b, rqp->dev, &rqp->path, rqp->budget);
	if (taken >= 0 && taken < count)
		resp_unsent(rqp, &sent, taken, count);
	return !sent.ack;
}

static void resp_requeue(struct roce_qp *rqp)
{
	spin_lock(&rqp->resp.lock);
	if (!rqp->dead)
		queue_work(srn_wq, &rqp->resp_work);
	spin_unlock(&rqp->resp.lock);
}

void roce_resp_run(struct roce_qp *rqp)
{
	int round = 0;

	set_bit(ROCE_RESP_PENDING, &rqp->resp_flags);
	while (test_bit(ROCE_RESP_PENDING, &rqp->resp_flags) &&
	       !test_and_set_bit_lock(ROCE_RESP_OWNER, &rqp->resp_flags)) {
		clear_bit(ROCE_RESP_PENDING, &rqp->resp_flags);
		/* The lock in resp_round() orders this against new answers. */
		while (resp_round(rqp) && ++round < RESP_ROUNDS)
			;
		clear_bit_unlock(ROCE_RESP_OWNER, &rqp->resp_flags);
		/* Pairs with the wait of roce_resp_close() and with
		 * set_bit(PENDING) above in others.
		 */
		smp_mb__after_atomic();
		if (test_bit(ROCE_RESP_CLOSED, &rqp->resp_flags)) {
			wake_up_bit(&rqp->resp_flags, ROCE_RESP_OWNER);
			return;
		}
		if (round >= RESP_ROUNDS) {
			resp_requeue(rqp);
			return;
		}
	}
}

static void resp_work(struct work_struct *work)
{
	struct roce_qp *rqp = container_of(work, struct roce_qp, resp_work);

	local_bh_disable();
	roce_resp_run(rqp);
	local_bh_enable();
}

static void resp_pause_timer(struct timer_list *t)
{
	struct roce_qp *rqp = timer_container_of(rqp, t, resp.pause_timer);

	roce_resp_run(rqp);
}

void roce_resp_init(struct roce_qp *rqp)
{
	struct roce_resp *resp = &rqp->resp;

	spin_lock_init(&resp->lock);
	timer_setup(&resp->pause_timer, resp_pause_timer, 0);
	INIT_WORK(&rqp->resp_work, resp_work);
}

void roce_resp_close(struct roce_qp *rqp)
{
	set_bit(ROCE_RESP_CLOSED, &rqp->resp_flags);
	wait_on_bit_lock(&rqp->resp_flags, ROCE_RESP_OWNER,
			 TASK_UNINTERRUPTIBLE);
}

void roce_resp_reopen(struct roce_qp *rqp)
{
	clear_bit(ROCE_RESP_CLOSED, &rqp->resp_flags);
	clear_bit_unlock(ROCE_RESP_OWNER, &rqp->resp_flags);
	local_bh_disable();
	roce_resp_run(rqp);
	local_bh_enable();
}

void roce_resp_stop(struct roce_qp *rqp)
{
	roce_resp_close(rqp);
	timer_shutdown_sync(&rqp->resp.pause_timer);
	/* Only then can no skb destructor queue the work any more. */
	roce_budget_detach(rqp->budget);
	cancel_work_sync(&rqp->resp_work);
}

u32 roce_resp_unanswered(struct roce_qp *rqp)
{
	return rqp->resp.rsrc_head - rqp->resp.rsrc_send;
}

/* Forget the oldest of what is remembered until @keep are left. */
static void resp_forget(struct roce_resp *resp, u32 keep)
{
	for (; resp->rsrc_used > keep; resp->rsrc_used--)
		resp_rsrc_drop(resp_rsrc(resp, resp->rsrc_head -
					 resp->rsrc_used));
}

void roce_resp_set_slots(struct roce_qp *rqp, struct roce_rsrc **slots,
			 u32 count, u32 max)
{
	struct roce_resp *resp = &rqp->resp;
	u32 i;

	resp_forget(resp, count);
	for (i = resp->rsrc_head - resp->rsrc_used; i != resp->rsrc_head; i++)
		(*slots)[i & (count - 1)] = *resp_rsrc(resp, i);
	swap(resp->rsrc, *slots);
	resp->rsrc_slots = count;
	resp->rsrc_max = max;
}

void roce_resp_reset(struct roce_qp *rqp)
{
	struct roce_resp *resp = &rqp->resp;

	resp_forget(resp, 0);
	resp->rsrc_head = 0;
	resp->rsrc_send = 0;
	resp->rsrc_done = 0;
	resp_write_end(resp);
	srn_rwqe_put(&resp->rwqe);
	resp->seq = ROCE_SEQ_IDLE;
	resp->msn = 0;
	resp->off = 0;
	resp->nak_sent = false;
	resp->ack_pending = false;
	resp->comm_est = false;
	resp->last_wqe = false;
}
