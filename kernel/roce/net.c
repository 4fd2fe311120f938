// SPDX-License-Identifier: GPL-2.0
/*
 * What RoCE keeps per network namespace: the UDP sockets and the addresses.
 *
 * Sockets are open while a device needs them. Addresses are those of the GID
 * tables, hashed so that receive finds the device of a packet without them.
 * Task context but for the lookups.
 */
#include <linux/hash.h>
#include <linux/if_vlan.h>
#include <linux/rculist.h>
#include <linux/udp.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/udp_tunnel.h>

#include "roce.h"

/*
 * struct roce_gid - one entry of a GID table; freed after a grace period
 * @node: in rn->gids
 * @ifindex: netdev of the entry, perhaps a VLAN above that of the device
 * @vlan: its VLAN id, 0xffff without one
 *
 * An address that a table lists twice has two of these.
 */
struct roce_gid {
	struct hlist_node node;
	struct in6_addr addr;
	struct roce_dev *rdev;
	int ifindex;
	u16 vlan;
	struct rcu_head rcu;
};

static unsigned int roce_net_id __read_mostly;

struct roce_net *roce_net_of(const struct net *net)
{
	return net_generic(net, roce_net_id);
}

/* ---- sockets ------------------------------------------------------------- */

static struct socket *net_socket(struct net *net, u8 family)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.encap_type = 1,
		.encap_rcv = roce_rcv,
	};
	struct udp_port_cfg port = {
		.family = family,
		.local_udp_port = htons(ROCE_UDP_PORT),
		.ipv6_v6only = 1,
	};
	struct socket *sock = NULL;
	int ret;

	/* R007: no checksum is wanted of a peer, over IPv6 neither. */
	ret = udp_sock_create(net, &port, &sock);
	if (ret)
		return ERR_PTR(ret);
	if (!sock)
		return ERR_PTR(-EAFNOSUPPORT);
	setup_udp_tunnel_sock(net, sock->sk, &tunnel);
	udp_allow_gso(sock->sk);
	return sock;
}

static void net_close(struct roce_net *rn)
{
	if (rn->sk4)
		udp_tunnel_sock_release(rn->sk4->sk);
	if (rn->sk6)
		udp_tunnel_sock_release(rn->sk6->sk);
	rn->sk4 = NULL;
	rn->sk6 = NULL;
	/* A receive that found one of them may still be running. */
	synchronize_net();
}

static int net_open(struct roce_net *rn)
{
	struct socket *sock;

	sock = net_socket(rn->net, AF_INET);
	if (IS_ERR(sock))
		goto err;
	rn->sk4 = sock;

	sock = net_socket(rn->net, AF_INET6);
	if (PTR_ERR(sock) == -EAFNOSUPPORT)
		return 0;
	if (IS_ERR(sock))
		goto err;
	rn->sk6 = sock;
	return 0;

err:
	if (PTR_ERR(sock) == -EADDRINUSE)
		pr_err(KBUILD_MODNAME ": UDP port %d is taken in this network namespace, perhaps by rdma_rxe\n",
		       ROCE_UDP_PORT);
	net_close(rn);
	return PTR_ERR(sock);
}

struct roce_net *roce_net_get(struct net *net)
{
	struct roce_net *rn = roce_net_of(net);
	int ret = 0;

	mutex_lock(&rn->lock);
	if (!rn->users)
		ret = net_open(rn);
	if (!ret) {
		rn->users++;
		rn->was_used = true;
	}
	mutex_unlock(&rn->lock);
	return ret ? ERR_PTR(ret) : rn;
}

void roce_net_put(struct roce_net *rn)
{
	mutex_lock(&rn->lock);
	if (!--rn->users)
		net_close(rn);
	mutex_unlock(&rn->lock);
}

void roce_net_add_dev(struct roce_net *rn, struct roce_dev *rdev)
{
	mutex_lock(&rn->lock);
	hlist_add_head_rcu(&rdev->node, &rn->devs);
	mutex_unlock(&rn->lock);
	atomic_inc(&rn->ndevs);
}

/* The pernet exit may free @rn as soon as gid_lock is dropped. */
void roce_net_del_dev(struct roce_net *rn, struct roce_dev *rdev)
{
	mutex_lock(&rn->lock);
	hlist_del_rcu(&rdev->node);
	mutex_unlock(&rn->lock);
	roce_net_put(rn);

	spin_lock(&rn->gid_lock);
	if (atomic_dec_and_test(&rn->ndevs))
		wake_up(&rn->gone);
	spin_unlock(&rn->gid_lock);
}

/* ---- addresses ------------------------------------------------------------ */

static struct hlist_head *gid_bucket(struct roce_net *rn,
				     const struct in6_addr *addr)
{
	return &rn->gids[hash_32(ipv6_addr_hash(addr),
				 ilog2(ARRAY_SIZE(rn->gids)))];
}

int roce_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct roce_dev *rdev = to_rdev(to_sdev(attr->device));
	struct roce_net *rn = rdev->rn;
	const struct net_device *ndev;
	struct roce_gid *gid;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EOPNOTSUPP;

	gid = kzalloc(sizeof(*gid), GFP_KERNEL);
	if (!gid)
		return -ENOMEM;
	memcpy(&gid->addr, attr->gid.raw, sizeof(gid->addr));
	gid->rdev = rdev;
	gid->vlan = 0xffff;

	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	if (ndev) {
		gid->ifindex = ndev->ifindex;
		if (is_vlan_dev(ndev))
			gid->vlan = vlan_dev_vlan_id(ndev);
	}
	rcu_read_unlock();

	spin_lock(&rn->gid_lock);
	hlist_add_head_rcu(&gid->node, gid_bucket(rn, &gid->addr));
	spin_unlock(&rn->gid_lock);
	*context = gid;
	return 0;
}

int roce_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct roce_gid *gid = *context;
	struct roce_net *rn;

	if (!gid)
		return 0;
	rn = gid->rdev->rn;
	spin_lock(&rn->gid_lock);
	hlist_del_rcu(&gid->node);
	spin_unlock(&rn->gid_lock);
	kfree_rcu(gid, rcu);
	*context = NULL;
	return 0;
}

/* The entry of @addr, of @rdev only when it is given, best one on @ndev. */
static struct roce_gid *gid_lookup(struct roce_net *rn,
				   const struct roce_dev *rdev,
				   const struct in6_addr *addr,
				   const struct net_device *ndev)
{
	struct roce_gid *gid, *any = NULL;

	hlist_for_each_entry_rcu(gid, gid_bucket(rn, addr), node) {
		if (!ipv6_addr_equal(&gid->addr, addr) ||
		    (rdev && gid->rdev != rdev))
			continue;
		if (!ndev || gid->ifindex == ndev->ifindex)
			return gid;
		any = gid;
	}
	return any;
}

struct roce_dev *roce_gid_find(struct roce_net *rn, const struct in6_addr *gid,
			       const struct net_device *ndev)
{
	struct roce_gid *found = gid_lookup(rn, NULL, gid, ndev);

	return found ? found->rdev : NULL;
}

bool roce_gid_is_own(struct roce_dev *rdev, const struct in6_addr *gid)
{
	return gid_lookup(rdev->rn, rdev, gid, NULL);
}

u16 roce_gid_vlan(struct roce_dev *rdev, const struct in6_addr *gid,
		  const struct net_device *ndev)
{
	struct roce_gid *found = gid_lookup(rdev->rn, rdev, gid, ndev);

	return found ? found->vlan : 0xffff;
}

/* ---- namespaces ------------------------------------------------------------ */

static int __net_init roce_pernet_init(struct net *net)
{
	struct roce_net *rn = roce_net_of(net);

	rn->net = net;
	mutex_init(&rn->lock);
	spin_lock_init(&rn->gid_lock);
	init_waitqueue_head(&rn->gone);
	return 0;
}

/*
 * The netdevs of the namespace went first and set off the unregistration of
 * the devices on them, which goes on in a work item.
 */
static void __net_exit roce_pernet_exit(struct net *net)
{
	struct roce_net *rn = roce_net_of(net);

	wait_event(rn->gone, !atomic_read(&rn->ndevs));
	spin_lock(&rn->gid_lock);	/* roce_net_del_dev() has let go */
	spin_unlock(&rn->gid_lock);
	/* Routes of address handles that wait for their grace period. */
	if (rn->was_used)
		rcu_barrier();
}

static struct pernet_operations roce_pernet_ops = {
	.init = roce_pernet_init,
	.exit = roce_pernet_exit,
	.id = &roce_net_id,
	.size = sizeof(struct roce_net),
};

int roce_net_init(void)
{
	return register_pernet_subsys(&roce_pernet_ops);
}

void roce_net_exit(void)
{
	unregister_pernet_subsys(&roce_pernet_ops);
}
