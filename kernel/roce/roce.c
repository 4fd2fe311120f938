// SPDX-License-Identifier: GPL-2.0
/*
 * RoCE as a transport of the core: a device's start and end, its port.
 *
 * Task context.
 */
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <rdma/ib_mad.h>

#include "roce.h"

/* The smallest path MTU plus what goes around it. */
#define ROCE_MIN_NETDEV_MTU (256 + ROCE_OVERHEAD)

static int roce_netdev_ok(struct net_device *ndev)
{
	switch (ndev->type) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
	case ARPHRD_NONE:	/* tun, wireguard */
		break;
	default:
		netdev_err(ndev, "%s: no RoCE on interfaces of type %u\n",
			   KBUILD_MODNAME, ndev->type);
		return -EOPNOTSUPP;
	}
	/* The GID table of the interface below has the VLAN's addresses. */
	if (is_vlan_dev(ndev)) {
		netdev_err(ndev, "%s: add the link on %s, it serves its VLANs\n",
			   KBUILD_MODNAME, vlan_dev_real_dev(ndev)->name);
		return -EOPNOTSUPP;
	}
	if (ndev->mtu < ROCE_MIN_NETDEV_MTU) {
		netdev_err(ndev, "%s: MTU %u is below %u\n", KBUILD_MODNAME,
			   ndev->mtu, ROCE_MIN_NETDEV_MTU);
		return -EINVAL;
	}
	return 0;
}

static int roce_dev_init(struct srn_dev *dev)
{
	struct roce_dev *rdev = kzalloc(sizeof(*rdev), GFP_KERNEL);

	if (!rdev)
		return -ENOMEM;
	rdev->rn = roce_net_get(dev->net);
	if (IS_ERR(rdev->rn)) {
		int ret = PTR_ERR(rdev->rn);

		kfree(rdev);
		return ret;
	}
	rdev->sdev = dev;
	xa_init_flags(&rdev->ahs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	mutex_init(&rdev->mcast_lock);
	roce_net_add_dev(rdev->rn, rdev);
	dev->tdev = rdev;
	return 0;
}

/* Receive may still see @rdev until a grace period has passed. */
static void roce_dev_exit(struct srn_dev *dev)
{
	struct roce_dev *rdev = to_rdev(dev);

	roce_mcast_exit(rdev);
	WARN_ON_ONCE(!xa_empty(&rdev->ahs));
	roce_net_del_dev(rdev->rn, rdev);
	dev->tdev = NULL;
	kfree_rcu(rdev, rcu);
}

static const struct ib_device_ops roce_dev_ops = {
	.add_gid = roce_add_gid,
	.attach_mcast = roce_attach_mcast,
	.create_ah = roce_create_ah,
	.create_user_ah = roce_create_ah,
	.del_gid = roce_del_gid,
	.destroy_ah = roce_destroy_ah,
	.detach_mcast = roce_detach_mcast,
	.query_ah = roce_query_ah,

	INIT_RDMA_OBJ_SIZE(ib_ah, srn_ah, ibah),
};

static void roce_set_ops(struct ib_device *ibdev)
{
	ib_set_device_ops(ibdev, &roce_dev_ops);
}

static int roce_port_immutable(struct ib_device *ibdev, u32 port,
			       struct ib_port_immutable *imm)
{
	imm->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	imm->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static void roce_query_device(struct srn_dev *dev, struct ib_device_attr *attr)
{
	attr->device_cap_flags |= IB_DEVICE_UD_AV_PORT_ENFORCE;
}

/* R070. */
enum ib_mtu roce_active_mtu(const struct srn_dev *dev)
{
	int mtu = (int)READ_ONCE(dev->ndev->mtu) - ROCE_OVERHEAD;
	enum ib_mtu best = IB_MTU_4096;

	while (best > IB_MTU_256 && ib_mtu_enum_to_int(best) > mtu)
		best--;
	return best;
}

static void roce_query_port(struct srn_dev *dev, struct ib_port_attr *attr)
{
	attr->active_mtu = roce_active_mtu(dev);
}

/* The port's MTU is asked for whenever it is needed; QPs keep theirs. */
static void roce_mtu_changed(struct srn_dev *dev)
{
	ibdev_dbg(&dev->ibdev, "active MTU %d\n",
		  ib_mtu_enum_to_int(roce_active_mtu(dev)));
}

const struct srn_transport_ops roce_transport = {
	.type = "roce",
	.node_type = RDMA_NODE_IB_CA,
	.netdev_ok = roce_netdev_ok,
	.dev_init = roce_dev_init,
	.dev_exit = roce_dev_exit,
	.set_ops = roce_set_ops,
	.port_immutable = roce_port_immutable,
	.query_device = roce_query_device,
	.query_port = roce_query_port,
	.qp_check = roce_qp_check,
	.qp_init = roce_qp_init,
	.qp_ready = roce_qp_ready,
	.qp_modify = roce_qp_modify,
	.qp_query = roce_qp_query,
	.qp_flush = roce_qp_flush,
	.qp_stop = roce_qp_stop,
	.qp_free = roce_qp_free,
	.sq_run = roce_sq_run,
	.mtu_changed = roce_mtu_changed,
};

int roce_init(void)
{
	int ret;

	ret = roce_crc_init();
	if (ret)
		return ret;
	ret = roce_xmit_init();
	if (ret)
		goto err_crc;
	ret = roce_net_init();
	if (ret)
		goto err_xmit;
	return 0;

err_xmit:
	roce_xmit_exit();
err_crc:
	roce_crc_exit();
	return ret;
}

/* Callbacks and destructors of ours may be pending when the last device is gone. */
void roce_exit(void)
{
	roce_net_exit();
	roce_xmit_exit();
	rcu_barrier();
	roce_crc_exit();
}
