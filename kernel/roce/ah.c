// SPDX-License-Identifier: GPL-2.0
/*
 * Address handles.
 *
 * The verbs object is freed by ib_core at once, so what the data path needs is
 * an object of its own, found by number under RCU and freed after a grace
 * period. Create and destroy may be called where sleeping is forbidden.
 */
#include "roce.h"

static void av_free(struct rcu_head *rcu)
{
	struct roce_av *av = container_of(rcu, struct roce_av, rcu);

	roce_path_fini(&av->path);
	kfree(av);
}

/* Numbers are reused late, so a WQE with a stale one finds nothing. */
static int av_publish(struct roce_dev *rdev, struct roce_av *av, bool sleep)
{
	const struct xa_limit limit = XA_LIMIT(1, SRN_MAX_AH);
	unsigned long flags;
	int ret;

	if (sleep) {
		ret = xa_alloc_cyclic_irq(&rdev->ahs, &av->number, av, limit,
					  &rdev->ah_next, GFP_KERNEL);
	} else {
		xa_lock_irqsave(&rdev->ahs, flags);
		ret = __xa_alloc_cyclic(&rdev->ahs, &av->number, av, limit,
					&rdev->ah_next, GFP_ATOMIC);
		xa_unlock_irqrestore(&rdev->ahs, flags);
	}
	return ret < 0 ? ret : 0;
}

static void av_withdraw(struct roce_dev *rdev, struct roce_av *av)
{
	unsigned long flags;

	xa_lock_irqsave(&rdev->ahs, flags);
	__xa_erase(&rdev->ahs, av->number);
	xa_unlock_irqrestore(&rdev->ahs, flags);
	call_rcu(&av->rcu, av_free);
}

int roce_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		   struct ib_udata *udata)
{
	bool sleep = init->flags & RDMA_CREATE_AH_SLEEPABLE;
	gfp_t gfp = sleep ? GFP_KERNEL : GFP_ATOMIC;
	struct srn_dev *dev = to_sdev(ibah->device);
	struct srn_uresp_ah resp = {};
	struct roce_av *av;
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	if (!(rdma_ah_get_ah_flags(init->ah_attr) & IB_AH_GRH))
		return -EINVAL;

	av = kzalloc(sizeof(*av), gfp);
	if (!av)
		return -ENOMEM;
	av->pd = ibah->pd;
	ret = roce_path_init_gfp(&av->path, dev, init->ah_attr, 0, 0, gfp);
	if (ret)
		goto err_free;
	ret = av_publish(to_rdev(dev), av, sleep);
	if (ret)
		goto err_path;

	if (udata) {
		resp.ah = av->number;
		ret = ib_respond_udata(udata, resp);
		if (ret) {
			av_withdraw(to_rdev(dev), av);
			return ret;
		}
	}
	to_sah(ibah)->number = av->number;
	to_sah(ibah)->av = av;
	return 0;

err_path:
	roce_path_fini(&av->path);
err_free:
	kfree(av);
	return ret;
}

int roce_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	const struct roce_av *av = to_sah(ibah)->av;
	union ib_gid dgid;

	memset(attr, 0, sizeof(*attr));
	memcpy(dgid.raw, &av->path.daddr, sizeof(dgid.raw));
	attr->type = ibah->type;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_sl(attr, av->path.sl);
	rdma_ah_set_grh(attr, &dgid, av->path.flow_label,
			ibah->sgid_attr->index, av->path.ttl, av->path.tos);
	return 0;
}

int roce_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	av_withdraw(to_rdev(to_sdev(ibah->device)), to_sah(ibah)->av);
	return 0;
}
