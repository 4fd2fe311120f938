// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: creation, state changes, destruction, events, QP numbers.
 *
 * This is the verbs half and runs in task context. The data path knows a QP by
 * the transport's engine, which it finds by number, and comes back here
 * only to report a fault or an event.
 */
#include <linux/bitops.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "softrnic.h"
#include "transport.h"

#define SRN_PSN_MASK 0xffffffU
#define SRN_QPN_MASK 0xffffffU

/* 0 and 1 belong to management, 0xffffff means multicast (IBA 3.5.3). */
#define SRN_QPN_FIRST 2
#define SRN_QPN_LAST (SRN_QPN_MASK - 1)
#define SRN_QPN_GSI 1

/* QPN -> engine; NULL from the reservation of a number until it is published */
static DEFINE_XARRAY_ALLOC(srn_qpns);
static u32 srn_qpn_next;

void *srn_qpn_find(u32 qpn)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held() && !rcu_read_lock_bh_held(),
			 "QPN looked up outside an RCU section");
	return xa_load(&srn_qpns, qpn);
}

/*
 * Numbers come round late, and start elsewhere at each load of the module, so
 * that packets of an earlier connection seldom find a QP.
 */
int srn_qpn_init(void)
{
	get_random_bytes(&srn_qpn_next, sizeof(srn_qpn_next));
	srn_qpn_next = SRN_QPN_FIRST + (srn_qpn_next & (SRN_QPN_MASK >> 1));
	return 0;
}

void srn_qpn_exit(void)
{
	WARN_ON(!xa_empty(&srn_qpns));
	xa_destroy(&srn_qpns);
}

static int srn_qpn_reserve(struct srn_qp *qp)
{
	int ret;

	if (qp->ibqp.qp_type == IB_QPT_GSI) {
		qp->qpn = SRN_QPN_GSI;
	} else {
		ret = xa_alloc_cyclic(&srn_qpns, &qp->qpn, NULL,
				      XA_LIMIT(SRN_QPN_FIRST, SRN_QPN_LAST),
				      &srn_qpn_next, GFP_KERNEL);
		if (ret < 0)
			return ret == -EBUSY ? -ENOSPC : ret;
	}
	qp->ibqp.qp_num = qp->qpn;
	return 0;
}

/* The slot is there since the reservation, so storing cannot fail. */
static void srn_qpn_publish(struct srn_qp *qp)
{
	if (qp->qpn != SRN_QPN_GSI)
		xa_store(&srn_qpns, qp->qpn, qp->engine, GFP_KERNEL);
}

static void srn_qpn_release(struct srn_qp *qp)
{
	if (qp->qpn != SRN_QPN_GSI)
		xa_erase(&srn_qpns, qp->qpn);
}

static int srn_qp_check_init(struct srn_dev *dev, struct ib_qp_init_attr *init,
			     struct ib_udata *udata)
{
	const struct ib_qp_cap *cap = &init->cap;
	int ret;

	if (init->create_flags || init->rwq_ind_tbl || init->xrcd)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (cap->max_send_wr > SRN_MAX_WR || cap->max_send_sge > SRN_MAX_SGE ||
	    cap->max_inline_data > SRN_MAX_INLINE)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > SRN_MAX_WR ||
			   cap->max_recv_sge > SRN_MAX_SGE))
		return -EINVAL;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	if (udata && udata->outlen < sizeof(struct srn_uresp_qp))
		return -EINVAL;

	return dev->ops->qp_check(dev, init);
}

static int srn_qp_init_sq(struct srn_qp *qp, struct ib_qp_init_attr *init,
			  struct ib_ucontext *ibuc, struct srn_ring_info *info)
{
	struct srn_sq *sq = &qp->sq;
	u32 body, stride;
	int ret;

	spin_lock_init(&sq->post_lock);
	sq->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;

	/* What rounding leaves over is granted too. */
	body = max3(init->cap.max_send_sge, 1U,
		    DIV_ROUND_UP(init->cap.max_inline_data,
				 (u32)sizeof(struct srn_sge)));
	stride = ALIGN(SRN_SQE_BYTES + body * sizeof(struct srn_sge),
		       SRN_SQE_BYTES);
	sq->max_inline = stride - SRN_SQE_BYTES;
	sq->max_sge = min_t(u32, sq->max_inline / sizeof(struct srn_sge),
			    SRN_MAX_SGE);

	ret = srn_ring_init(&sq->ring, ibuc, init->cap.max_send_wr, stride,
			    info);
	if (ret)
		return ret;

	sq->depth = min_t(u32, sq->ring.count, SRN_SQ_INFLIGHT);
	sq->wqe_stride = sizeof(struct srn_wqe) +
			 ALIGN(max_t(u32, sq->max_inline, sq->max_sge *
				     sizeof(struct srn_sge_ref)), 8);
	sq->wqes = kvcalloc(sq->depth, sq->wqe_stride, GFP_KERNEL_ACCOUNT);
	if (!sq->wqes) {
		srn_ring_fini(&sq->ring);
		return -ENOMEM;
	}
	return 0;
}

static void srn_qp_fini_sq(struct srn_qp *qp)
{
	kvfree(qp->sq.wqes);
	qp->sq.wqes = NULL;
	srn_ring_fini(&qp->sq.ring);
}

static int srn_qp_init_rq(struct srn_qp *qp, struct ib_qp_init_attr *init,
			  struct ib_ucontext *ibuc, struct srn_ring_info *info)
{
	struct srn_rq *rq = &qp->rq;

	spin_lock_init(&rq->lock);
	if (qp->srq)
		return 0;

	rq->max_sge = max(init->cap.max_recv_sge, 1U);
	return srn_ring_init(&rq->ring, ibuc, init->cap.max_recv_wr,
			     SRN_RQE_BYTES + rq->max_sge *
			     sizeof(struct srn_sge), info);
}

static void srn_qp_event_work(struct work_struct *work)
{
	struct srn_qp *qp = container_of(work, struct srn_qp, event_work);
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
	};
	unsigned long events;
	unsigned int bit;

	if (READ_ONCE(qp->state) == IB_QPS_ERR) {
		mutex_lock(&qp->mutex);
		if (READ_ONCE(qp->state) == IB_QPS_ERR &&
		    !test_bit(SRN_SQ_CLOSED, &qp->sq_flags))
			qp->dev->ops->qp_flush(qp);
		mutex_unlock(&qp->mutex);
	}

	/* Unlocked: a kernel consumer may modify the QP from its handler. */
	events = xchg(&qp->events, 0);
	for_each_set_bit(bit, &events, BITS_PER_LONG) {
		event.event = bit;
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
	}
}

void srn_qp_event(struct srn_qp *qp, enum ib_event_type event)
{
	set_bit(event, &qp->events);
	queue_work(srn_wq, &qp->event_work);
}

void srn_qp_fatal(struct srn_qp *qp, int event)
{
	/* The way out of RESET is modify_qp alone. */
	if (READ_ONCE(qp->state) == IB_QPS_RESET)
		return;
	WRITE_ONCE(qp->state, IB_QPS_ERR);
	if (event >= 0)
		set_bit(event, &qp->events);
	queue_work(srn_wq, &qp->event_work);
}

static void srn_qp_grant(struct srn_qp *qp, struct ib_qp_init_attr *init,
			 struct srn_uresp_qp *resp)
{
	qp->cap = (struct ib_qp_cap){
		.max_send_wr = qp->sq.ring.count,
		.max_recv_wr = qp->rq.ring.count,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = qp->sq.max_inline,
		.max_rdma_ctxs = init->cap.max_rdma_ctxs,
	};
	init->cap = qp->cap;
	resp->max_inline = qp->sq.max_inline;
	resp->max_send_sge = qp->sq.max_sge;
	resp->max_recv_sge = qp->rq.max_sge;
}

static void srn_qp_reset_attr(struct srn_qp *qp)
{
	qp->attr = (struct ib_qp_attr){
		.path_mtu = IB_MTU_256,
		.path_mig_state = IB_MIG_MIGRATED,
		.port_num = 1,
	};
}

int srn_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata)
{
	struct srn_dev *dev = to_sdev(ibqp->device);
	const struct srn_transport_ops *ops = dev->ops;
	struct srn_ucontext *ctx = rdma_udata_to_drv_context(udata,
							     struct srn_ucontext,
							     ibuc);
	struct ib_ucontext *ibuc = ctx ? &ctx->ibuc : NULL;
	struct srn_qp *qp = to_sqp(ibqp);
	struct srn_uresp_qp resp = {};
	int ret;

	ret = srn_qp_check_init(dev, init, udata);
	if (ret)
		return ret;
	if (!atomic_add_unless(&dev->num_qp, 1, SRN_MAX_QP))
		return -ENOSPC;

	qp->dev = dev;
	qp->user = udata;
	qp->state = IB_QPS_RESET;
	qp->send_cq = to_scq(init->send_cq);
	qp->recv_cq = to_scq(init->recv_cq);
	qp->srq = init->srq ? to_ssrq(init->srq) : NULL;
	mutex_init(&qp->mutex);
	INIT_WORK(&qp->sq_work, srn_sq_work);
	INIT_WORK(&qp->event_work, srn_qp_event_work);
	srn_qp_reset_attr(qp);

	ret = srn_qp_init_sq(qp, init, ibuc, &resp.sq);
	if (ret)
		goto err_count;
	ret = srn_qp_init_rq(qp, init, ibuc, &resp.rq);
	if (ret)
		goto err_sq;
	ret = ops->qp_init(qp, init);
	if (ret)
		goto err_rq;
	ret = srn_qpn_reserve(qp);
	if (ret)
		goto err_engine;

	srn_qp_grant(qp, init, &resp);
	if (udata) {
		ret = ib_respond_udata(udata, resp);
		if (ret)
			goto err_qpn;
	}

	ops->qp_ready(qp);
	srn_qpn_publish(qp);
	return 0;

err_qpn:
	srn_qpn_release(qp);
err_engine:
	srn_sq_close(qp);
	ops->qp_stop(qp);
	ops->qp_free(qp);
err_rq:
	srn_ring_fini(&qp->rq.ring);
err_sq:
	srn_qp_fini_sq(qp);
err_count:
	atomic_dec(&dev->num_qp);
	return ret;
}

/* What the verbs object owns is freed after the engine can no longer reach it. */
int srn_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct srn_qp *qp = to_sqp(ibqp);
	struct srn_dev *dev = qp->dev;

	srn_qpn_release(qp);

	mutex_lock(&qp->mutex);
	srn_sq_close(qp);
	dev->ops->qp_stop(qp);
	mutex_unlock(&qp->mutex);

	cancel_work_sync(&qp->sq_work);
	cancel_work_sync(&qp->event_work);

	srn_ring_fini(&qp->rq.ring);
	srn_qp_fini_sq(qp);
	dev->ops->qp_free(qp);
	atomic_dec(&dev->num_qp);
	return 0;
}

/* A path MTU that the port cannot carry now would never get a packet out. */
static int srn_qp_check_mtu(struct srn_dev *dev, enum ib_mtu mtu)
{
	struct ib_port_attr port = {};

	if (mtu < IB_MTU_256 || mtu > IB_MTU_4096)
		return -EINVAL;
	dev->ops->query_port(dev, &port);
	return mtu > port.active_mtu ? -EINVAL : 0;
}

static int srn_qp_check_attr(struct srn_qp *qp, const struct ib_qp_attr *attr,
			     int mask)
{
	if (mask & IB_QP_ALT_PATH)
		return -EOPNOTSUPP;
	if ((mask & IB_QP_PATH_MIG_STATE) &&
	    attr->path_mig_state != IB_MIG_MIGRATED)
		return -EOPNOTSUPP;

	if ((mask & IB_QP_PORT) && attr->port_num != 1)
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index)
		return -EINVAL;
	if ((mask & IB_QP_ACCESS_FLAGS) &&
	    (attr->qp_access_flags & ~IB_ACCESS_SUPPORTED))
		return -EINVAL;
	if ((mask & IB_QP_DEST_QPN) && attr->dest_qp_num > SRN_QPN_MASK)
		return -EINVAL;
	if ((mask & IB_QP_RQ_PSN) && attr->rq_psn > SRN_PSN_MASK)
		return -EINVAL;
	if ((mask & IB_QP_SQ_PSN) && attr->sq_psn > SRN_PSN_MASK)
		return -EINVAL;
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) &&
	    attr->max_rd_atomic > SRN_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
	    attr->max_dest_rd_atomic > SRN_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31)
		return -EINVAL;
	if ((mask & IB_QP_TIMEOUT) && attr->timeout > 31)
		return -EINVAL;
	if ((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > 7)
		return -EINVAL;
	if ((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > 7)
		return -EINVAL;
	if ((mask & IB_QP_AV) &&
	    (rdma_ah_get_port_num(&attr->ah_attr) != 1 ||
	     !(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH)))
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU)
		return srn_qp_check_mtu(qp->dev, attr->path_mtu);
	return 0;
}

/* Remember what query_qp has to return. */
static void srn_qp_store_attr(struct ib_qp_attr *to,
			      const struct ib_qp_attr *from, int mask)
{
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = from->en_sqd_async_notify;
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = from->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		to->pkey_index = from->pkey_index;
	if (mask & IB_QP_PORT)
		to->port_num = from->port_num;
	if (mask & IB_QP_QKEY)
		to->qkey = from->qkey;
	if (mask & IB_QP_AV) {
		to->ah_attr = from->ah_attr;
		/* The reference is the core's (ibqp.av_sgid_attr). */
		to->ah_attr.grh.sgid_attr = NULL;
	}
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = from->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = from->sq_psn;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = from->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = from->dest_qp_num;
}

static int srn_qp_do_modify(struct srn_qp *qp, struct ib_qp_attr *attr,
			    int mask)
{
	const struct srn_transport_ops *ops = qp->dev->ops;
	enum ib_qp_state cur = READ_ONCE(qp->state);
	enum ib_qp_state next;
	int ret;

	lockdep_assert_held(&qp->mutex);

	if ((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != cur)
		return -EINVAL;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, qp->ibqp.qp_type, mask))
		return -EINVAL;
	ret = srn_qp_check_attr(qp, attr, mask);
	if (ret)
		return ret;

	ret = ops->qp_modify(qp, attr, mask, cur, next);
	if (ret)
		return ret;

	if (next == IB_QPS_RESET)
		srn_qp_reset_attr(qp);
	else
		srn_qp_store_attr(&qp->attr, attr, mask);
	if (next == IB_QPS_ERR)
		ops->qp_flush(qp);
	return 0;
}

int srn_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata)
{
	struct srn_qp *qp = to_sqp(ibqp);
	int ret;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;

	mutex_lock(&qp->mutex);
	ret = srn_qp_do_modify(qp, attr, mask);
	mutex_unlock(&qp->mutex);
	return ret;
}

int srn_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct srn_qp *qp = to_sqp(ibqp);

	mutex_lock(&qp->mutex);
	*attr = qp->attr;
	attr->cap = qp->cap;
	qp->dev->ops->qp_query(qp, attr);
	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	mutex_unlock(&qp->mutex);

	*init = (struct ib_qp_init_attr){
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = qp->cap,
		.sq_sig_type = qp->sq.sig_all ? IB_SIGNAL_ALL_WR :
						IB_SIGNAL_REQ_WR,
		.qp_type = ibqp->qp_type,
		.port_num = ibqp->port,
	};
	return 0;
}
