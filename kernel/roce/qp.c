// SPDX-License-Identifier: GPL-2.0
/*
 * Transport operations of a RoCE QP: make, modify, stop, free.
 *
 * Joins the two halves; protocol is in req.c, comp.c, resp.c and ud.c. Runs in
 * task context under the core's qp->mutex, except roce_sq_run().
 */
#include "roce.h"

int roce_qp_check(struct srn_dev *dev, struct ib_qp_init_attr *init)
{
	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UD:
		return 0;
	case IB_QPT_GSI:
		return rcu_access_pointer(to_rdev(dev)->gsi) ? -EBUSY : 0;
	default:
		return -EOPNOTSUPP;
	}
}

int roce_qp_init(struct srn_qp *qp, struct ib_qp_init_attr *init)
{
	struct roce_qp *rqp = kzalloc(sizeof(*rqp), GFP_KERNEL);

	if (!rqp)
		return -ENOMEM;
	rqp->budget = roce_budget_alloc(rqp);
	if (!rqp->budget) {
		kfree(rqp);
		return -ENOMEM;
	}
	rqp->qp = qp;
	rqp->dev = qp->dev;
	rqp->rdev = to_rdev(qp->dev);
	rqp->type = init->qp_type;
	rqp->pmtu = 4096;
	roce_req_init(rqp);
	roce_resp_init(rqp);
	qp->engine = rqp;
	return 0;
}

void roce_qp_ready(struct srn_qp *qp)
{
	struct roce_qp *rqp = to_rqp(qp);

	rqp->qpn = qp->qpn;
	if (rqp->type == IB_QPT_GSI)
		rcu_assign_pointer(rqp->rdev->gsi, rqp);
}

static void qp_lock_halves(struct roce_qp *rqp)
	__acquires(&rqp->req.lock) __acquires(&rqp->resp.lock)
{
	spin_lock_bh(&rqp->req.lock);
	spin_lock(&rqp->resp.lock);
}

static void qp_unlock_halves(struct roce_qp *rqp)
	__releases(&rqp->resp.lock) __releases(&rqp->req.lock)
{
	spin_unlock(&rqp->resp.lock);
	spin_unlock_bh(&rqp->req.lock);
}

/*
 * Keep everybody from sending for this QP: the path and the slots of the
 * responder are about to be replaced. CLOSED ends the competition for an owner
 * bit, so the wait is for one sender, which runs with BH off and for one budget
 * only. qp->mutex keeps destroy away.
 */
static void qp_hold_senders(struct roce_qp *rqp)
{
	srn_sq_close(rqp->qp);
	roce_resp_close(rqp);
}

/* Let them send again, and do what they were asked for meanwhile. */
static void qp_release_senders(struct roce_qp *rqp)
{
	roce_resp_reopen(rqp);
	srn_sq_reopen(rqp->qp);
}

/* ---- modify ------------------------------------------------------------- */

/* What a transition needs and may fail to get, made before anything changes. */
struct qp_change {
	struct roce_path path;
	bool new_path;
	struct roce_rsrc *rsrc;
	u32 rsrc_max;
	u32 rsrc_slots;
	bool new_rsrc;
};

static void qp_change_undo(struct qp_change *c)
{
	if (c->new_path)
		roce_path_fini(&c->path);
	kvfree(c->rsrc);
}

static int qp_change_prepare(struct roce_qp *rqp, struct ib_qp_attr *attr,
			     int mask, struct qp_change *c)
{
	u32 dqpn = mask & IB_QP_DEST_QPN ? attr->dest_qp_num : rqp->dqpn;
	int ret;

	if ((mask & IB_QP_AV) && rqp->type == IB_QPT_RC) {
		ret = roce_path_init(&c->path, rqp->dev, &attr->ah_attr,
				     rqp->qpn, dqpn);
		if (ret)
			return ret;
		c->new_path = true;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC) {
		c->new_rsrc = true;
		c->rsrc_max = attr->max_dest_rd_atomic;
		if (c->rsrc_max) {
			c->rsrc_slots = roundup_pow_of_two(c->rsrc_max);
			c->rsrc = kvcalloc(c->rsrc_slots, sizeof(*c->rsrc),
					   GFP_KERNEL_ACCOUNT);
			if (!c->rsrc) {
				qp_change_undo(c);
				return -ENOMEM;
			}
		}
	}
	return 0;
}

/* Both locks held, nobody uses the path: install what was prepared. */
static void qp_change_install(struct roce_qp *rqp, struct qp_change *c)
{
	if (c->new_path) {
		swap(rqp->path, c->path);
		c->new_path = rqp->has_path;	/* the old one is to be undone */
		rqp->has_path = true;
	}
	if (c->new_rsrc)
		roce_resp_set_slots(rqp, &c->rsrc, c->rsrc_slots, c->rsrc_max);
}

static unsigned long qp_timeout_jiffies(u8 timeout)
{
	/* Rounded up, and one more because the current jiffy has begun (R037). */
	return nsecs_to_jiffies(aeth_timeout_nsec(timeout)) + 2;
}

static void qp_set_requester(struct roce_qp *rqp, struct ib_qp_attr *attr,
			     int mask)
{
	struct roce_req *req = &rqp->req;

	if (mask & IB_QP_TIMEOUT) {
		req->timeout = attr->timeout;
		req->timeout_jiffies = qp_timeout_jiffies(attr->timeout);
	}
	if (mask & IB_QP_RETRY_CNT) {
		req->retry_cnt = attr->retry_cnt;
		req->retries = attr->retry_cnt;
	}
	if (mask & IB_QP_RNR_RETRY) {
		req->rnr_retry = attr->rnr_retry;
		req->rnr_retries = attr->rnr_retry;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		req->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_SQ_PSN)
		roce_req_reset(rqp, attr->sq_psn & PSN_MASK);
}

static void qp_set_common(struct roce_qp *rqp, struct ib_qp_attr *attr,
			  int mask)
{
	if (mask & IB_QP_ACCESS_FLAGS)
		WRITE_ONCE(rqp->access, attr->qp_access_flags);
	if (mask & IB_QP_QKEY)
		WRITE_ONCE(rqp->qkey, attr->qkey);
	if (rqp->type == IB_QPT_GSI)
		WRITE_ONCE(rqp->qkey, ROCE_GSI_QKEY);
	if (mask & IB_QP_DEST_QPN)
		rqp->dqpn = attr->dest_qp_num;
	if (mask & IB_QP_PATH_MTU)
		rqp->pmtu = ib_mtu_enum_to_int(attr->path_mtu);
	if (mask & IB_QP_RQ_PSN)
		rqp->resp.psn = attr->rq_psn & PSN_MASK;
	if (mask & IB_QP_MIN_RNR_TIMER)
		rqp->resp.min_rnr_timer = attr->min_rnr_timer;
}

static void qp_enter_state(struct roce_qp *rqp, struct ib_qp_attr *attr,
			   int mask, enum ib_qp_state next)
{
	struct roce_req *req = &rqp->req;

	switch (next) {
	case IB_QPS_RESET:
		srn_sq_reset(rqp->qp);
		srn_rq_reset(rqp->qp);
		roce_req_reset(rqp, 0);
		roce_resp_reset(rqp);
		break;
	case IB_QPS_ERR:
		roce_resp_cancel(rqp);
		break;
	case IB_QPS_SQD:
		if (READ_ONCE(rqp->qp->state) != IB_QPS_SQD) {
			req->draining = true;
			req->drain_event = (mask & IB_QP_EN_SQD_ASYNC_NOTIFY) &&
					   attr->en_sqd_async_notify;
		}
		break;
	default:
		break;
	}
	WRITE_ONCE(rqp->qp->state, next);
}

static int qp_refuse(struct roce_qp *rqp, int mask, enum ib_qp_state cur,
		     enum ib_qp_state next)
{
	bool draining;

	if (cur != IB_QPS_SQD)
		return 0;
	spin_lock_bh(&rqp->req.lock);
	draining = rqp->req.draining;
	spin_unlock_bh(&rqp->req.lock);
	/* Until it is drained only ERR and RESET are ways out of SQD. */
	if (draining && next != IB_QPS_ERR && next != IB_QPS_RESET)
		return -EBUSY;
	return 0;
}

static void qp_apply(struct roce_qp *rqp, struct ib_qp_attr *attr, int mask,
		     enum ib_qp_state next, struct qp_change *c,
		     struct roce_done *done)
{
	qp_set_common(rqp, attr, mask);
	qp_set_requester(rqp, attr, mask);
	qp_change_install(rqp, c);
	qp_enter_state(rqp, attr, mask, next);
	if (next == IB_QPS_SQD)
		roce_req_retire(rqp, done);
}

int roce_qp_modify(struct srn_qp *qp, struct ib_qp_attr *attr, int mask,
		   enum ib_qp_state cur, enum ib_qp_state next)
{
	struct roce_qp *rqp = to_rqp(qp);
	struct roce_done done = {};
	struct qp_change c = {};
	bool hold;
	int ret;

	ret = qp_refuse(rqp, mask, cur, next);
	if (ret)
		return ret;
	ret = qp_change_prepare(rqp, attr, mask, &c);
	if (ret)
		return ret;
	hold = c.new_path || c.new_rsrc || next == IB_QPS_RESET;
	if (hold)
		qp_hold_senders(rqp);

	qp_lock_halves(rqp);
	/* The data path may have found a fault since the core looked. */
	if (READ_ONCE(qp->state) != cur && next != IB_QPS_ERR &&
	    next != IB_QPS_RESET)
		ret = -EINVAL;
	else if (c.new_rsrc && roce_resp_unanswered(rqp) > c.rsrc_max)
		ret = -EBUSY;
	else
		qp_apply(rqp, attr, mask, next, &c, &done);
	qp_unlock_halves(rqp);
	roce_done_notify(&done);

	if (hold)
		qp_release_senders(rqp);
	else if (!ret && next == IB_QPS_RTS)
		srn_sq_kick(qp);
	qp_change_undo(&c);
	return ret;
}

void roce_qp_query(struct srn_qp *qp, struct ib_qp_attr *attr)
{
	struct roce_qp *rqp = to_rqp(qp);

	qp_lock_halves(rqp);
	attr->sq_psn = rqp->req.psn_next;
	attr->rq_psn = rqp->resp.psn;
	attr->sq_draining = rqp->req.draining;
	qp_unlock_halves(rqp);
}

/* ---- error, end --------------------------------------------------------- */

void roce_qp_flush(struct srn_qp *qp)
{
	struct roce_qp *rqp = to_rqp(qp);
	struct roce_done sent = {}, received = {};

	spin_lock_bh(&rqp->req.lock);
	if (!rqp->dead && READ_ONCE(qp->state) == IB_QPS_ERR)
		roce_req_flush(rqp, &sent);
	spin_unlock_bh(&rqp->req.lock);
	roce_done_notify(&sent);

	spin_lock_bh(&rqp->resp.lock);
	if (!rqp->dead && READ_ONCE(qp->state) == IB_QPS_ERR)
		roce_resp_flush(rqp, &received);
	spin_unlock_bh(&rqp->resp.lock);
	roce_done_notify(&received);
}

void roce_qp_stop(struct srn_qp *qp)
{
	struct roce_qp *rqp = to_rqp(qp);

	if (rqp->type == IB_QPT_GSI &&
	    rcu_access_pointer(rqp->rdev->gsi) == rqp)
		RCU_INIT_POINTER(rqp->rdev->gsi, NULL);
	if (rqp->type == IB_QPT_UD)
		roce_mcast_forget(rqp);
	qp_lock_halves(rqp);
	WRITE_ONCE(rqp->dead, true);
	srn_sq_reset(qp);
	srn_rq_reset(qp);
	roce_resp_reset(rqp);
	qp_unlock_halves(rqp);

	/* From here nobody begins to follow rqp->qp; wait for those who did. */
	wait_var_event(&rqp->visitors, !atomic_read(&rqp->visitors));
	roce_req_stop(rqp);
	roce_resp_stop(rqp);
	if (rqp->has_path)
		roce_path_fini(&rqp->path);
}

void roce_qp_free(struct srn_qp *qp)
{
	struct roce_qp *rqp = to_rqp(qp);

	kvfree(rqp->resp.rsrc);
	qp->engine = NULL;
	kfree_rcu(rqp, rcu);
}

void roce_sq_run(struct srn_qp *qp)
{
	struct roce_qp *rqp = to_rqp(qp);

	if (rqp->type == IB_QPT_RC)
		roce_req_run(rqp);
	else
		roce_ud_run(rqp);
}
