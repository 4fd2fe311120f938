// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups of a device.
 *
 * A group is joined at the IP level on the device's netdev while a QP is
 * attached to it. Attach and detach run in task context and take RTNL under
 * rdev->mcast_lock; delivery runs in softirq under RCU.
 */
#include <linux/hash.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/ipv6.h>

#include "roce.h"

/*
 * struct roce_mcg - one group
 * @node: in rdev->mcgs
 * @qps: struct roce_mcg_qp of the attached QPs, @count of them
 *
 * All written under rdev->mcast_lock; freed after a grace period.
 */
struct roce_mcg {
	struct hlist_node node;
	struct in6_addr gid;
	struct hlist_head qps;
	unsigned int count;
	struct rcu_head rcu;
};

struct roce_mcg_qp {
	struct hlist_node node;
	struct roce_qp *rqp;
	struct rcu_head rcu;
};

static struct hlist_head *mcg_bucket(struct roce_dev *rdev,
				     const struct in6_addr *gid)
{
	return &rdev->mcgs[hash_32(ipv6_addr_hash(gid),
				   ilog2(ARRAY_SIZE(rdev->mcgs)))];
}

static struct roce_mcg *mcg_find(struct roce_dev *rdev,
				 const struct in6_addr *gid)
{
	struct roce_mcg *mcg;

	hlist_for_each_entry_rcu(mcg, mcg_bucket(rdev, gid), node,
				 lockdep_is_held(&rdev->mcast_lock))
		if (ipv6_addr_equal(&mcg->gid, gid))
			return mcg;
	return NULL;
}

static struct roce_mcg_qp *mcg_find_qp(struct roce_dev *rdev,
				       struct roce_mcg *mcg,
				       const struct roce_qp *rqp)
{
	struct roce_mcg_qp *m;

	hlist_for_each_entry_rcu(m, &mcg->qps, node,
				 lockdep_is_held(&rdev->mcast_lock))
		if (m->rqp == rqp)
			return m;
	return NULL;
}

/* ---- IP level --------------------------------------------------------------- */

static int mcg_join(struct net_device *ndev, const struct in6_addr *gid)
{
	struct in_device *in_dev;
	int ret = 0;

	rtnl_lock();
	if (ipv6_addr_v4mapped(gid)) {
		in_dev = __in_dev_get_rtnl(ndev);
		if (in_dev)
			ip_mc_inc_group(in_dev, gid->s6_addr32[3]);
		else
			ret = -ENODEV;
	} else {
		ret = ipv6_dev_mc_inc(ndev, gid);
	}
	rtnl_unlock();
	return ret;
}

/* The netdev forgets its groups itself when it goes. */
static void mcg_leave(struct net_device *ndev, const struct in6_addr *gid)
{
	struct in_device *in_dev;

	rtnl_lock();
	if (ipv6_addr_v4mapped(gid)) {
		in_dev = __in_dev_get_rtnl(ndev);
		if (in_dev)
			ip_mc_dec_group(in_dev, gid->s6_addr32[3]);
	} else {
		ipv6_dev_mc_dec(ndev, gid);
	}
	rtnl_unlock();
}

/* ---- attach, detach ----------------------------------------------------------- */

static struct roce_mcg *mcg_make(struct roce_dev *rdev,
				 const struct in6_addr *gid)
{
	struct roce_mcg *mcg;
	int ret;

	if (rdev->nmcgs >= SRN_MAX_MCAST_GRP)
		return ERR_PTR(-ENOMEM);
	mcg = kzalloc(sizeof(*mcg), GFP_KERNEL);
	if (!mcg)
		return ERR_PTR(-ENOMEM);
	mcg->gid = *gid;
	ret = mcg_join(rdev->sdev->ndev, gid);
	if (ret) {
		kfree(mcg);
		return ERR_PTR(ret);
	}
	rdev->nmcgs++;
	hlist_add_head_rcu(&mcg->node, mcg_bucket(rdev, gid));
	return mcg;
}

static void mcg_release(struct roce_dev *rdev, struct roce_mcg *mcg)
{
	if (mcg->count)
		return;
	hlist_del_rcu(&mcg->node);
	rdev->nmcgs--;
	mcg_leave(rdev->sdev->ndev, &mcg->gid);
	kfree_rcu(mcg, rcu);
}

static int mcg_attach(struct roce_dev *rdev, struct roce_mcg *mcg,
		      struct roce_qp *rqp)
{
	struct roce_mcg_qp *m;

	if (mcg_find_qp(rdev, mcg, rqp))
		return 0;
	if (mcg->count >= SRN_MAX_MCAST_QP)
		return -ENOMEM;
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	m->rqp = rqp;
	hlist_add_head_rcu(&m->node, &mcg->qps);
	mcg->count++;
	rqp->mcasts++;
	return 0;
}

static void mcg_detach(struct roce_mcg *mcg, struct roce_mcg_qp *m)
{
	hlist_del_rcu(&m->node);
	mcg->count--;
	m->rqp->mcasts--;
	kfree_rcu(m, rcu);
}

static bool mcast_is_group(const struct in6_addr *gid)
{
	return ipv6_addr_v4mapped(gid) ?
		ipv4_is_multicast(gid->s6_addr32[3]) :
		ipv6_addr_is_multicast(gid);
}

int roce_attach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 mlid)
{
	struct roce_qp *rqp = to_rqp(to_sqp(ibqp));
	struct roce_dev *rdev = rqp->rdev;
	struct roce_mcg *mcg;
	struct in6_addr gid;
	int ret;

	memcpy(&gid, mgid->raw, sizeof(gid));
	if (rqp->type != IB_QPT_UD || !mcast_is_group(&gid))
		return -EINVAL;

	mutex_lock(&rdev->mcast_lock);
	mcg = mcg_find(rdev, &gid) ?: mcg_make(rdev, &gid);
	if (IS_ERR(mcg)) {
		ret = PTR_ERR(mcg);
	} else {
		ret = mcg_attach(rdev, mcg, rqp);
		mcg_release(rdev, mcg);
	}
	mutex_unlock(&rdev->mcast_lock);
	return ret;
}

int roce_detach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 mlid)
{
	struct roce_qp *rqp = to_rqp(to_sqp(ibqp));
	struct roce_dev *rdev = rqp->rdev;
	struct roce_mcg_qp *m = NULL;
	struct roce_mcg *mcg;
	struct in6_addr gid;

	memcpy(&gid, mgid->raw, sizeof(gid));
	mutex_lock(&rdev->mcast_lock);
	mcg = mcg_find(rdev, &gid);
	if (mcg)
		m = mcg_find_qp(rdev, mcg, rqp);
	if (m) {
		mcg_detach(mcg, m);
		mcg_release(rdev, mcg);
	}
	mutex_unlock(&rdev->mcast_lock);
	return m ? 0 : -EINVAL;
}

void roce_mcast_forget(struct roce_qp *rqp)
{
	struct roce_dev *rdev = rqp->rdev;
	struct roce_mcg_qp *m;
	struct roce_mcg *mcg;
	struct hlist_node *tmp;
	int i;

	mutex_lock(&rdev->mcast_lock);
	for (i = 0; rqp->mcasts && i < ARRAY_SIZE(rdev->mcgs); i++) {
		hlist_for_each_entry_safe(mcg, tmp, &rdev->mcgs[i], node) {
			m = mcg_find_qp(rdev, mcg, rqp);
			if (!m)
				continue;
			mcg_detach(mcg, m);
			mcg_release(rdev, mcg);
		}
	}
	mutex_unlock(&rdev->mcast_lock);
}

/* ---- delivery ------------------------------------------------------------------- */

/*
 * Did the frame arrive for this device? A copy that loops back carries the
 * netdev it was sent on. VLANs, and a bond, are netdevs above that of the device.
 */
static bool mcast_arrived(const struct roce_dev *rdev,
			  const struct roce_rx *rx)
{
	struct net_device *ndev = rdev->sdev->ndev;

	return rx->dev == ndev ||
	       netdev_has_upper_dev_all_rcu(ndev, (struct net_device *)rx->dev);
}

void roce_mcast_rx(struct roce_net *rn, struct roce_rx *rx)
{
	struct in6_addr saddr, daddr;
	struct roce_mcg_qp *m;
	struct roce_dev *rdev;
	struct roce_mcg *mcg;

	roce_rx_addrs(rx, &saddr, &daddr);
	if (!mcast_is_group(&daddr))
		return;
	hlist_for_each_entry_rcu(rdev, &rn->devs, node) {
		if (!mcast_arrived(rdev, rx))
			continue;
		mcg = mcg_find(rdev, &daddr);
		if (!mcg) {
			srn_count(rdev->sdev, DROP_MCAST);
			continue;
		}
		srn_count(rdev->sdev, RX_PACKETS);
		srn_count_add(rdev->sdev, RX_BYTES,
			      roce_l3_len(rx->l3) + rx->h.hdr_len +
			      rx->h.payload_len + rx->h.pad + ICRC_BYTES);
		hlist_for_each_entry_rcu(m, &mcg->qps, node)
			roce_ud_rx(m->rqp, rx);
	}
}

void roce_mcast_exit(struct roce_dev *rdev)
{
	WARN_ON_ONCE(rdev->nmcgs);
}
