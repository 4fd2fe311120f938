// SPDX-License-Identifier: GPL-2.0
/*
 * The ib_device: its attributes, its one port and the table of verbs.
 *
 * A transport adds its own verbs and corrects the attributes it knows better.
 * Task context.
 */
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

#include "softrnic.h"
#include "transport.h"
#include "compat/ops.h"

/* An OUI of the locally administered kind: no vendor, yet not zero. */
#define SRN_VENDOR_ID 0x02534e
#define SRN_VENDOR_PART_ID 1
#define SRN_FW_VER 0x10000ULL	/* SRN_VERSION: major, then 16 and 16 bits */

#define SRN_MAX_MSG_SIZE (1U << 31)

/* 4.096 us * 2^15 = 134 ms: softirq and work items of a busy host. */
#define SRN_CA_ACK_DELAY 15

enum ib_port_state srn_port_state(struct srn_dev *dev)
{
	return netif_running(dev->ndev) && netif_carrier_ok(dev->ndev) ?
		IB_PORT_ACTIVE : IB_PORT_DOWN;
}

void srn_port_event(struct srn_dev *dev)
{
	if (!ib_device_try_get(&dev->ibdev))
		return;
	srn_dispatch_port_state(&dev->ibdev, dev->ndev, srn_port_state(dev),
				&dev->port_state);
	ib_device_put(&dev->ibdev);
}

static int srn_query_device(struct ib_device *ibdev,
			    struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	struct srn_dev *dev = to_sdev(ibdev);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;

	*attr = (struct ib_device_attr){
		.fw_ver = SRN_FW_VER,
		.sys_image_guid = ibdev->node_guid,
		.max_mr_size = U64_MAX,
		.page_size_cap = PAGE_SIZE,
		.vendor_id = SRN_VENDOR_ID,
		.vendor_part_id = SRN_VENDOR_PART_ID,
		.max_qp = SRN_MAX_QP,
		.max_qp_wr = SRN_MAX_WR,
		.device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR |
				    IB_DEVICE_BAD_QKEY_CNTR |
				    IB_DEVICE_CURR_QP_STATE_MOD |
				    IB_DEVICE_PORT_ACTIVE_EVENT |
				    IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_RC_RNR_NAK_GEN |
				    IB_DEVICE_SRQ_RESIZE |
				    IB_DEVICE_MEM_MGT_EXTENSIONS,
		.kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG,
		.max_send_sge = SRN_MAX_SGE,
		.max_recv_sge = SRN_MAX_SGE,
		.max_sge_rd = SRN_MAX_SGE,
		.max_cq = SRN_MAX_CQ,
		.max_cqe = SRN_MAX_CQE,
		.max_mr = SRN_MAX_MR,
		.max_pd = SRN_MAX_PD,
		.max_qp_rd_atom = SRN_MAX_RD_ATOMIC,
		.max_res_rd_atom = SRN_MAX_RD_ATOMIC * SRN_MAX_QP,
		.max_qp_init_rd_atom = SRN_MAX_RD_ATOMIC,
		.atomic_cap = IB_ATOMIC_GLOB,
		.max_mcast_grp = SRN_MAX_MCAST_GRP,
		.max_mcast_qp_attach = SRN_MAX_MCAST_QP,
		.max_total_mcast_qp_attach = SRN_MAX_MCAST_GRP *
					     SRN_MAX_MCAST_QP,
		.max_ah = SRN_MAX_AH,
		.max_srq = SRN_MAX_SRQ,
		.max_srq_wr = SRN_MAX_SRQ_WR,
		.max_srq_sge = SRN_MAX_SGE,
		.max_fast_reg_page_list_len = SRN_MAX_FRWR_PAGES,
		.max_pkeys = 1,
		.local_ca_ack_delay = SRN_CA_ACK_DELAY,
	};
	if (dev->ops->query_device)
		dev->ops->query_device(dev, attr);
	return 0;
}

static void srn_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	strscpy(str, SRN_VERSION, IB_FW_VERSION_NAME_MAX);
}

/*
 * ib_get_eth_speed() warns each time a netdev cannot tell its speed, and
 * query_port is called often. Such a netdev (lo, dummy) counts as 10 Gb/s.
 */
static void srn_query_speed(struct srn_dev *dev, struct ib_port_attr *attr)
{
	struct ethtool_link_ksettings ks = {};
	int ret;

	rtnl_lock();
	ret = dev->ndev->reg_state == NETREG_REGISTERED ?
		__ethtool_get_link_ksettings(dev->ndev, &ks) : -ENODEV;
	rtnl_unlock();

	if (!ret)
		ret = ib_get_eth_speed(&dev->ibdev, 1, &attr->active_speed,
				       &attr->active_width);
	if (ret) {
		attr->active_speed = IB_SPEED_SDR;
		attr->active_width = IB_WIDTH_4X;
	}
}

static int srn_query_port(struct ib_device *ibdev, u32 port,
			  struct ib_port_attr *attr)
{
	struct srn_dev *dev = to_sdev(ibdev);

	if (port != 1)
		return -EINVAL;

	attr->state = srn_port_state(dev);
	if (attr->state == IB_PORT_ACTIVE)
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	else if (netif_running(dev->ndev))
		attr->phys_state = IB_PORT_PHYS_STATE_POLLING;
	else
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_256;
	attr->gid_tbl_len = SRN_GID_TABLE;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = SRN_MAX_MSG_SIZE;
	attr->bad_pkey_cntr = srn_counter_read(dev, SRN_CNT_DROP_PKEY);
	attr->qkey_viol_cntr = srn_counter_read(dev, SRN_CNT_DROP_QKEY);
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	srn_query_speed(dev, attr);
	dev->ops->query_port(dev, attr);
	return 0;
}

static int srn_get_port_immutable(struct ib_device *ibdev, u32 port,
				  struct ib_port_immutable *imm)
{
	imm->gid_tbl_len = SRN_GID_TABLE;
	imm->pkey_tbl_len = 1;
	return to_sdev(ibdev)->ops->port_immutable(ibdev, port, imm);
}

static enum rdma_link_layer srn_get_link_layer(struct ib_device *ibdev,
					       u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int srn_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			  u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

/*
 * The last verb of a device: no QP, no consumer, no packet of ours is left but
 * for readers that found a QP before it was destroyed.
 */
static void srn_dealloc_driver(struct ib_device *ibdev)
{
	struct srn_dev *dev = to_sdev(ibdev);

	srn_dev_unlist(dev);
	if (dev->tdev)
		dev->ops->dev_exit(dev);
	synchronize_net();
	xa_destroy(&dev->mrs);
	free_percpu(dev->counters);
	netdev_put(dev->ndev, &dev->ndev_tracker);
	module_put(THIS_MODULE);
}

static const struct ib_device_ops srn_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = SRN_DRIVER_ID,
	.uverbs_abi_ver = SRN_ABI_VERSION,
	SRN_OP_ROBUST_UDATA

	.alloc_hw_port_stats = srn_alloc_hw_port_stats,
	.alloc_mr = srn_alloc_mr,
	.alloc_pd = srn_alloc_pd,
	.alloc_ucontext = srn_alloc_ucontext,
	.create_cq = srn_op_create_cq,
	.create_qp = srn_create_qp,
	.create_srq = srn_create_srq,
	.dealloc_driver = srn_dealloc_driver,
	.dealloc_pd = srn_dealloc_pd,
	.dealloc_ucontext = srn_dealloc_ucontext,
	.dereg_mr = srn_dereg_mr,
	.destroy_cq = srn_destroy_cq,
	.destroy_qp = srn_destroy_qp,
	.destroy_srq = srn_destroy_srq,
	.disassociate_ucontext = srn_disassociate_ucontext,
	.get_dev_fw_str = srn_get_dev_fw_str,
	.get_dma_mr = srn_get_dma_mr,
	.get_hw_stats = srn_get_hw_stats,
	.get_link_layer = srn_get_link_layer,
	.get_port_immutable = srn_get_port_immutable,
	.map_mr_sg = srn_map_mr_sg,
	.mmap = srn_mmap,
	.mmap_free = srn_mmap_free,
	.modify_qp = srn_modify_qp,
	.modify_srq = srn_modify_srq,
	.poll_cq = srn_poll_cq,
	.post_recv = srn_post_recv,
	.post_send = srn_post_send,
	.post_srq_recv = srn_post_srq_recv,
	.query_device = srn_query_device,
	.query_pkey = srn_query_pkey,
	.query_port = srn_query_port,
	.query_qp = srn_query_qp,
	.query_srq = srn_query_srq,
	.reg_user_mr = srn_op_reg_user_mr,
	.req_notify_cq = srn_req_notify_cq,
	.rereg_user_mr = srn_rereg_user_mr,
	.resize_user_cq = srn_op_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, srn_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, srn_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, srn_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, srn_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, srn_ucontext, ibuc),
};

/* EUI-64 of the MAC address; made up where there is none (lo, tun). */
static __be64 srn_node_guid(const struct net_device *ndev)
{
	__be64 guid = 0;

	if (ndev->addr_len == ETH_ALEN && is_valid_ether_addr(ndev->dev_addr)) {
		addrconf_addr_eui48((u8 *)&guid, ndev->dev_addr);
		return guid;
	}
	while (!guid)
		get_random_bytes(&guid, sizeof(guid));
	return guid;
}

struct srn_dev *srn_dev_alloc(struct net_device *ndev,
			      const struct srn_transport_ops *ops)
{
	struct net *net = dev_net(ndev);
	struct srn_dev *dev;
	int ret = -ENOMEM;

	if (!try_module_get(THIS_MODULE))
		return ERR_PTR(-ENODEV);

	dev = ib_alloc_device_with_net(srn_dev, ibdev, net);
	if (!dev)
		goto err_module;
	dev->counters = alloc_percpu(struct srn_counters);
	if (!dev->counters)
		goto err_dev;

	INIT_LIST_HEAD(&dev->list);
	dev->ops = ops;
	dev->net = net;
	dev->ndev = ndev;
	netdev_hold(ndev, &dev->ndev_tracker, GFP_KERNEL);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);

	dev->ibdev.node_type = ops->node_type;
	dev->ibdev.node_guid = srn_node_guid(ndev);
	dev->ibdev.phys_port_cnt = 1;
	dev->ibdev.num_comp_vectors = num_possible_cpus();
	dev->ibdev.local_dma_lkey = 0;
	strscpy(dev->ibdev.node_desc, "softrnic", sizeof(dev->ibdev.node_desc));
	/* write() with no WQE is the doorbell of a mapped queue. */
	dev->ibdev.uverbs_cmd_mask |=
		BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
		BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
		BIT_ULL(IB_USER_VERBS_CMD_POST_SRQ_RECV);
	ib_set_device_ops(&dev->ibdev, &srn_dev_ops);
	ops->set_ops(&dev->ibdev);
	return dev;

err_dev:
	ib_dealloc_device(&dev->ibdev);
err_module:
	module_put(THIS_MODULE);
	return ERR_PTR(ret);
}

/* On failure the caller deallocates the device, which undoes every step here. */
int srn_dev_register(struct srn_dev *dev, const char *name)
{
	int ret;

	ret = dev->ops->dev_init(dev);
	if (ret)
		return ret;
	ret = ib_device_set_netdev(&dev->ibdev, dev->ndev, 1);
	if (ret)
		return ret;

	dev->port_state = srn_port_state(dev);
	ib_mark_name_assigned_by_user(&dev->ibdev);
	ret = ib_register_device(&dev->ibdev, name, NULL);
	/* The core's word for a name that is taken. */
	return ret == -ENFILE ? -EEXIST : ret;
}
