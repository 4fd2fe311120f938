// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams: UD and GSI QPs, both directions.
 *
 * A send completes when the network has taken the packet; whatever happens to
 * it afterwards is a lost datagram. Sending runs with the SQ owner bit and BH
 * off, receiving in softirq.
 */
#include <linux/if_vlan.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "roce.h"

/* Batches of one run before the work item goes on. */
#define UD_ROUNDS 16

/* The part of a receive buffer that holds the network header (R053). */
#define UD_GRH_BYTES 40

/*
 * struct ud_batch - packets to one AH
 * @av: their address vector; stays while RCU is held
 * @first: number of the WQE of the oldest packet
 */
struct ud_batch {
	struct roce_batch b;
	struct roce_av *av;
	u32 first;
};

enum ud_step {
	UD_ADDED,
	UD_FAULT,	/* the WQE has a status now */
	UD_LATER,	/* another AH, or no memory */
};

static enum ud_step ud_fault(struct srn_wqe *wqe, u8 status, u8 verr)
{
	wqe->status = status;
	wqe->vendor_err = verr;
	return UD_FAULT;
}

/* ---- sending ------------------------------------------------------------- */

static struct roce_av *ud_av(struct roce_qp *rqp, const struct srn_wqe *wqe)
{
	struct roce_av *av = xa_load(&rqp->rdev->ahs, wqe->sqe.ud.ah);

	return av && av->pd == rqp->qp->ibqp.pd ? av : NULL;
}

static void ud_header(struct roce_qp *rqp, const struct srn_wqe *wqe,
		      struct roce_hdr *h)
{
	u32 qkey = wqe->sqe.ud.remote_qkey;

	*h = (struct roce_hdr){
		.opcode = ROCE_UD_SEND_ONLY,
		.se = wqe->sqe.flags & SRN_SQE_SOLICITED,
		.migreq = true,
		.pkey = ROCE_PKEY_DEFAULT,
		.dqpn = wqe->sqe.ud.remote_qpn & 0xffffff,
		.psn = rqp->req.psn_next,
		/* Privileged keys cannot be chosen by the one who posts (6). */
		.qkey = qkey & BIT(31) ? rqp->qkey : qkey,
		.sqpn = rqp->qpn,
	};
	if (wqe->sqe.opcode == SRN_WR_SEND_IMM) {
		h->opcode = ROCE_UD_SEND_ONLY_IMM;
		h->imm = wqe->sqe.imm;
	}
}

static int ud_gather(struct srn_wqe *wqe, u8 *dst)
{
	struct srn_cursor cur = {};

	if (wqe->sqe.flags & SRN_SQE_INLINE) {
		memcpy(dst, srn_wqe_inline(wqe), wqe->len);
		return 0;
	}
	return srn_sge_gather(wqe->sge, wqe->sqe.num_sge, &cur, dst, wqe->len);
}

static enum ud_step ud_add(struct roce_qp *rqp, struct ud_batch *ub,
			   struct srn_wqe *wqe)
{
	struct roce_av *av = ud_av(rqp, wqe);
	struct roce_hdr h;
	u8 *dst;

	if (!av)
		return ud_fault(wqe, IB_WC_LOC_QP_OP_ERR, SRN_VERR_AH);
	if (wqe->len > ib_mtu_enum_to_int(roce_active_mtu(rqp->dev)))
		return ud_fault(wqe, IB_WC_LOC_LEN_ERR, SRN_VERR_LENGTH);
	if (ub->av && ub->av != av)
		return UD_LATER;

	ud_header(rqp, wqe, &h);
	dst = roce_batch_add(&ub->b, &av->path, &h, wqe->len);
	if (!dst) {
		roce_req_pause(rqp);
		return UD_LATER;
	}
	if (ud_gather(wqe, dst)) {
		roce_batch_undo(&ub->b);
		return ud_fault(wqe, IB_WC_LOC_PROT_ERR, SRN_VERR_MR_GONE);
	}
	ub->av = av;
	rqp->req.psn_next = psn_add(rqp->req.psn_next, 1);
	return UD_ADDED;
}

/* WQE number @n, fetched if need be; NULL when there is none. */
static struct srn_wqe *ud_wqe(struct roce_qp *rqp, u32 n)
{
	struct srn_wqe *wqe;

	if (n != rqp->qp->sq.next)
		return srn_sq_wqe(rqp->qp, n);
	wqe = srn_sq_fetch(rqp->qp);
	if (IS_ERR(wqe)) {
		srn_qp_fatal(rqp->qp, IB_EVENT_QP_FATAL);
		return NULL;
	}
	if (wqe)
		memset(wqe->priv, 0, sizeof(wqe->priv));
	return wqe;
}

/* The oldest WQE failed: the send queue stops, the receive queue goes on (12.2). */
static void ud_fail(struct roce_qp *rqp, struct roce_done *done)
{
	struct srn_qp *qp = rqp->qp;

	/* The receiver may have put the QP in error meanwhile; that stays. */
	cmpxchg(&qp->state, IB_QPS_RTS, IB_QPS_SQE);
	roce_done_add(rqp, done, qp->send_cq, srn_sq_retire(qp, 0));
	roce_req_flush(rqp, done);
}

static void ud_fill(struct roce_qp *rqp, struct ud_batch *ub,
		    struct roce_done *done)
{
	u32 n = rqp->qp->sq.ring.idx;
	struct srn_wqe *wqe;

	ub->first = n;
	while (!rqp->req.paused && !roce_batch_full(&ub->b)) {
		wqe = ud_wqe(rqp, n);
		if (!wqe)
			return;
		if (wqe->status == IB_WC_SUCCESS) {
			switch (ud_add(rqp, ub, wqe)) {
			case UD_ADDED:
				n++;
				continue;
			case UD_LATER:
				return;
			case UD_FAULT:
				break;
			}
		}
		/* It fails in its turn: those before it are sent first. */
		if (!ub->b.count)
			ud_fail(rqp, done);
		return;
	}
}

/*
 * Complete what was sent. A flush or a reset may have come in between and have
 * completed or dropped these WQEs already.
 */
static void ud_sent(struct roce_qp *rqp, const struct ud_batch *ub, u32 count,
		    int taken)
{
	struct roce_done done = {};
	struct srn_sq *sq;
	int i;

	spin_lock(&rqp->req.lock);
	if (!rqp->dead) {
		sq = &rqp->qp->sq;
		if (sq->ring.idx == ub->first && sq->next - ub->first >= count) {
			for (i = 0; i < taken; i++)
				roce_done_add(rqp, &done, rqp->qp->send_cq,
					      srn_sq_retire(rqp->qp, 0));
			if (taken < count)
				roce_req_pause(rqp);
		}
	}
	spin_unlock(&rqp->req.lock);
	roce_done_notify(&done);
}

/* One batch. Return: there may be more. */
static bool ud_round(struct roce_qp *rqp)
{
	struct roce_done done = {};
	struct ud_batch ub = {};
	enum ib_qp_state state;
	u32 count;
	int taken;

	spin_lock(&rqp->req.lock);
	if (!rqp->dead) {
		if (READ_ONCE(rqp->qp->state) == IB_QPS_RTS)
			ud_fill(rqp, &ub, &done);
		state = READ_ONCE(rqp->qp->state);
		if (state == IB_QPS_SQE || state == IB_QPS_ERR)
			roce_req_flush(rqp, &done);
	}
	spin_unlock(&rqp->req.lock);
	roce_done_notify(&done);

	count = ub.b.count;
	if (!count)
		return false;
	taken = roce_batch_send(&ub.b, rqp->dev, &ub.av->path, NULL);
	if (taken < 0)
		return false;
	ud_sent(rqp, &ub, count, taken);
	return true;
}

void roce_ud_run(struct roce_qp *rqp)
{
	bool more;
	int round;

	for (round = 0; round < UD_ROUNDS; round++) {
		rcu_read_lock();
		more = ud_round(rqp);
		rcu_read_unlock();
		if (!more)
			return;
	}
	queue_work(srn_wq, &rqp->qp->sq_work);
}

/* ---- receiving ------------------------------------------------------------ */

/* R053; the checksum is made anew, since that of a chain's head is the chain's. */
static void ud_grh(const struct roce_rx *rx, u8 *grh)
{
	struct iphdr *ip = (struct iphdr *)(grh + UD_GRH_BYTES - sizeof(*ip));

	if (rx->l3 != ROCE_L3_IPV4) {
		memcpy(grh, rx->l3hdr, UD_GRH_BYTES);
		return;
	}
	memset(grh, 0, UD_GRH_BYTES);
	memcpy(ip, rx->l3hdr, sizeof(*ip));
	ip_send_check(ip);
}

static u16 ud_vlan(const struct roce_qp *rqp, const struct roce_rx *rx,
		   const struct in6_addr *daddr)
{
	if (rx->h.dqpn != ROCE_QPN_MCAST)
		return roce_gid_vlan(rqp->rdev, daddr, rx->dev);
	return is_vlan_dev(rx->dev) ? vlan_dev_vlan_id(rx->dev) : 0xffff;
}

static void ud_cqe(const struct roce_qp *rqp, const struct roce_rx *rx,
		   const struct in6_addr *daddr, struct srn_cqe *cqe)
{
	*cqe = (struct srn_cqe){
		.wr_id = rqp->resp.rwqe.wr_id,
		.status = IB_WC_SUCCESS,
		.opcode = IB_WC_RECV,
		.wc_flags = SRN_WC_GRH,
		.net_type = rx->l3 == ROCE_L3_IPV4 ? RDMA_NETWORK_IPV4 :
						     RDMA_NETWORK_IPV6,
		.byte_len = UD_GRH_BYTES + rx->h.payload_len,
		.qp_num = rqp->qpn,
		.src_qp = rx->h.sqpn,
		.vlan_id = ud_vlan(rqp, rx, daddr),
		.port_num = 1,
	};
	if (rx->h.flags & BTH_F_IMM) {
		cqe->wc_flags |= SRN_WC_WITH_IMM;
		cqe->imm = rx->h.imm;
	}
}

/* May the packet be delivered? Silent drops but for a counter (R016, R017). */
static bool ud_rx_ok(struct roce_qp *rqp, const struct roce_rx *rx,
		     const struct in6_addr *daddr)
{
	enum ib_qp_state state = READ_ONCE(rqp->qp->state);

	if (state < IB_QPS_RTR || state == IB_QPS_ERR) {
		srn_count(rqp->dev, DROP_STATE);
		return false;
	}
	if (!roce_rx_pkey_ok(rx)) {
		srn_count(rqp->dev, DROP_PKEY);
		return false;
	}
	if (rx->h.qkey != (rqp->type == IB_QPT_GSI ? ROCE_GSI_QKEY :
						     rqp->qkey)) {
		srn_count(rqp->dev, DROP_QKEY);
		return false;
	}
	if (rx->h.dqpn != ROCE_QPN_MCAST &&
	    !roce_gid_is_own(rqp->rdev, daddr)) {
		srn_count(rqp->dev, DROP_ADDR);
		return false;
	}
	return true;
}

/* The receive WQE is bad or its memory went: it fails and the QP with it. */
static void ud_rx_fail(struct roce_qp *rqp, u8 status, u8 verr,
		       struct roce_done *done)
{
	struct srn_cqe cqe = {
		.wr_id = rqp->resp.rwqe.wr_id,
		.status = status,
		.opcode = IB_WC_RECV,
		.qp_num = rqp->qpn,
		.vendor_err = verr,
		.vlan_id = 0xffff,
		.port_num = 1,
	};

	srn_rwqe_put(&rqp->resp.rwqe);
	roce_done_add(rqp, done, rqp->qp->recv_cq,
		      srn_cq_push(rqp->qp->recv_cq, &rqp->qp->ibqp, &cqe,
				  true));
	srn_qp_fatal(rqp->qp, -1);
}

/*
 * Have a receive WQE that the packet fits into. One that is too small is kept
 * for a shorter packet, so that a peer cannot break the QP (R054, 14.2).
 */
static bool ud_rx_wqe(struct roce_qp *rqp, const struct roce_rx *rx,
		      struct roce_done *done)
{
	struct srn_rwqe *rwqe = &rqp->resp.rwqe;

	if (!rwqe->valid) {
		switch (srn_rq_take(rqp->qp, rwqe)) {
		case 0:
			break;
		case -ENOENT:
			srn_count(rqp->dev, DROP_NO_WQE);
			return false;
		default:
			srn_qp_fatal(rqp->qp, IB_EVENT_QP_FATAL);
			return false;
		}
	}
	if (rwqe->status != IB_WC_SUCCESS) {
		ud_rx_fail(rqp, rwqe->status, rwqe->vendor_err, done);
		return false;
	}
	if (UD_GRH_BYTES + rx->h.payload_len > rwqe->capacity) {
		srn_count(rqp->dev, DROP_UD_LENGTH);
		return false;
	}
	return true;
}

static void ud_deliver(struct roce_qp *rqp, struct roce_rx *rx,
		       const struct in6_addr *daddr, struct roce_done *done)
{
	struct srn_rwqe *rwqe = &rqp->resp.rwqe;
	u8 grh[UD_GRH_BYTES] __aligned(4);
	struct srn_cursor cur = {};
	struct srn_cqe cqe;

	if (!ud_rx_wqe(rqp, rx, done))
		return;
	ud_grh(rx, grh);
	if (srn_sge_scatter(rwqe->sge, rwqe->num_sge, &cur, grh, sizeof(grh)) ||
	    roce_rx_to_sges(rx, rwqe->sge, rwqe->num_sge, &cur)) {
		ud_rx_fail(rqp, IB_WC_LOC_PROT_ERR, SRN_VERR_MR_GONE, done);
		return;
	}
	ud_cqe(rqp, rx, daddr, &cqe);
	srn_rwqe_put(rwqe);
	roce_done_add(rqp, done, rqp->qp->recv_cq,
		      srn_cq_push(rqp->qp->recv_cq, &rqp->qp->ibqp, &cqe,
				  rx->h.se));
}

void roce_ud_rx(struct roce_qp *rqp, struct roce_rx *rx)
{
	struct in6_addr saddr, daddr;
	struct roce_done done = {};

	roce_rx_addrs(rx, &saddr, &daddr);
	spin_lock(&rqp->resp.lock);
	if (!rqp->dead && ud_rx_ok(rqp, rx, &daddr))
		ud_deliver(rqp, rx, &daddr, &done);
	spin_unlock(&rqp->resp.lock);
	roce_done_notify(&done);
}
