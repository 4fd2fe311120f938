/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The seam between the verbs core and a transport.
 */
#ifndef SRN_TRANSPORT_H
#define SRN_TRANSPORT_H

#include "softrnic.h"

/**
 * struct srn_transport_ops - what a transport gives the core
 * @type: link type of `rdma link add ... type`
 * @node_type: RDMA_NODE_IB_CA or RDMA_NODE_RNIC
 * @netdev_ok: may a device stand on @ndev? 0, or -errno with @extack-like
 *             message printed by the transport; under RTNL
 * @dev_init: sockets and tables of one device; task, may sleep. dev->ndev and
 *            dev->net are set, the ib_device is not registered yet. Sets
 *            dev->tdev when, and only when, it returns 0.
 * @dev_exit: undo @dev_init; from dealloc_driver when dev->tdev is set, no QP
 *            is left
 * @set_ops: add the transport's verbs (ib_set_device_ops())
 * @port_immutable: core caps of the port
 * @qp_check: is this QP type and are these attributes possible? 0 or -errno
 * @qp_init: make qp->engine (RCU-freed); qp->qpn is not known yet
 * @qp_ready: qpn is assigned and published by the core right after; task
 * @qp_modify: apply a validated transition; @qp->mutex held; core has checked
 *             ib_modify_qp_is_ok(). Sets nothing in qp->attr; may fail with nothing changed.
 *             Writes qp->state to @next under both half locks as its last act.
 * @qp_query: fill transport attributes (PSNs, draining) into @attr
 * @qp_flush: state is ERR: complete everything outstanding; task context
 * @qp_stop: destroy: mark the engine dead under both half locks, stop timers and
 *           work, wait for senders; the core has closed the SQ and erased
 *           the QPN. May sleep. After it nobody touches qp. Also undoes a
 *           @qp_init that no @qp_ready followed.
 * @qp_free: free the engine after a grace period (kfree_rcu)
 * @sq_run: the only way to send: called with the SQ owner bit, BH off, no lock
 * @mtu_changed: dev->ndev has a new MTU
 */
struct srn_transport_ops {
	const char *type;
	u8 node_type;
	int (*netdev_ok)(struct net_device *ndev);
	int (*dev_init)(struct srn_dev *dev);
	void (*dev_exit)(struct srn_dev *dev);
	void (*set_ops)(struct ib_device *ibdev);
	int (*port_immutable)(struct ib_device *ibdev, u32 port,
			      struct ib_port_immutable *imm);
	void (*query_device)(struct srn_dev *dev, struct ib_device_attr *attr);
	void (*query_port)(struct srn_dev *dev, struct ib_port_attr *attr);
	int (*qp_check)(struct srn_dev *dev, struct ib_qp_init_attr *init);
	int (*qp_init)(struct srn_qp *qp, struct ib_qp_init_attr *init);
	void (*qp_ready)(struct srn_qp *qp);
	int (*qp_modify)(struct srn_qp *qp, struct ib_qp_attr *attr, int mask,
			 enum ib_qp_state cur, enum ib_qp_state next);
	void (*qp_query)(struct srn_qp *qp, struct ib_qp_attr *attr);
	void (*qp_flush)(struct srn_qp *qp);
	void (*qp_stop)(struct srn_qp *qp);
	void (*qp_free)(struct srn_qp *qp);
	void (*sq_run)(struct srn_qp *qp);
	void (*mtu_changed)(struct srn_dev *dev);
};

extern const struct srn_transport_ops roce_transport;

/* Module-wide start and stop of a transport (pernet, notifiers). */
int roce_init(void);
void roce_exit(void);

#endif /* SRN_TRANSPORT_H */
