// SPDX-License-Identifier: GPL-2.0
/*
 * The way to a peer: route and header template.
 *
 * A template is made once for a QP or an AH; a packet copies it and adds its
 * lengths. Routes are looked up in the namespace of the device, with BH off.
 */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "roce.h"

/* TTL of an address vector that leaves the choice to us. */
#define PATH_TTL 64

static void path_udp(const struct roce_path *path, struct udphdr *udp)
{
	udp->source = htons(path->sport);
	udp->dest = htons(ROCE_UDP_PORT);
	udp->len = 0;
	udp->check = 0;
}

/* R003, R008: the traffic class goes into the ToS byte whole (2.2). */
static void path_template4(struct roce_path *path)
{
	struct iphdr *ip = (struct iphdr *)path->hdr;

	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tos = path->tos,
		.frag_off = htons(IP_DF),
		.ttl = path->ttl,
		.protocol = IPPROTO_UDP,
		.saddr = path->saddr.s6_addr32[3],
		.daddr = path->daddr.s6_addr32[3],
	};
	path_udp(path, (struct udphdr *)(ip + 1));
}

static void path_template6(struct roce_path *path)
{
	struct ipv6hdr *ip = (struct ipv6hdr *)path->hdr;

	memset(ip, 0, sizeof(*ip));
	ip6_flow_hdr(ip, path->tos, htonl(path->flow_label));
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = path->ttl;
	ip->saddr = path->saddr;
	ip->daddr = path->daddr;
	path_udp(path, (struct udphdr *)(ip + 1));
}

static int path_oif(const struct ib_gid_attr *sgid)
{
	const struct net_device *ndev;
	int oif;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(sgid);
	oif = IS_ERR(ndev) ? -ENODEV : ndev->ifindex;
	rcu_read_unlock();
	return oif;
}

int roce_path_init_gfp(struct roce_path *path, struct srn_dev *dev,
		       const struct rdma_ah_attr *attr, u32 lqpn, u32 rqpn,
		       gfp_t gfp)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	const struct ib_gid_attr *sgid = grh->sgid_attr;
	bool v4;

	BUILD_BUG_ON(sizeof(path->hdr) <
		     sizeof(struct ipv6hdr) + sizeof(struct udphdr));

	if (!sgid || sgid->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EINVAL;

	memset(path, 0, sizeof(*path));
	path->net = dev->net;
	memcpy(&path->saddr, sgid->gid.raw, sizeof(path->saddr));
	memcpy(&path->daddr, grh->dgid.raw, sizeof(path->daddr));
	v4 = ipv6_addr_v4mapped(&path->saddr);
	if (v4 != ipv6_addr_v4mapped(&path->daddr) ||
	    ipv6_addr_any(&path->daddr))
		return -EINVAL;

	path->oif = path_oif(sgid);
	if (path->oif < 0)
		return path->oif;

	path->l3 = v4 ? ROCE_L3_IPV4 : ROCE_L3_IPV6;
	path->tos = grh->traffic_class;
	path->ttl = grh->hop_limit ?: PATH_TTL;
	path->flow_label = grh->flow_label & 0xfffff;
	path->sport = seg_udp_sport(path->flow_label, lqpn, rqpn);
	path->sl = rdma_ah_get_sl(attr);
	path->prio = path->tos ? rt_tos2priority(path->tos) : path->sl;
	if (v4)
		path_template4(path);
	else
		path_template6(path);

	return dst_cache_init(&path->cache, gfp);
}

int roce_path_init(struct roce_path *path, struct srn_dev *dev,
		   const struct rdma_ah_attr *attr, u32 lqpn, u32 rqpn)
{
	might_sleep();
	return roce_path_init_gfp(path, dev, attr, lqpn, rqpn, GFP_KERNEL);
}

void roce_path_fini(struct roce_path *path)
{
	dst_cache_destroy(&path->cache);
}

bool roce_path_is_mcast(const struct roce_path *path)
{
	if (path->l3 == ROCE_L3_IPV4)
		return ipv4_is_multicast(path->daddr.s6_addr32[3]);
	return ipv6_addr_is_multicast(&path->daddr);
}

static struct dst_entry *path_route4(struct roce_path *path)
{
	__be32 daddr = path->daddr.s6_addr32[3];
	struct flowi4 fl4 = {
		.daddr = daddr,
		.saddr = path->saddr.s6_addr32[3],
		.flowi4_oif = path->oif,
		.flowi4_proto = IPPROTO_UDP,
		.fl4_sport = htons(path->sport),
		.fl4_dport = htons(ROCE_UDP_PORT),
	};
	struct rtable *rt;

	/* An address of another netdev of this host is reached over lo. */
	if (inet_addr_type(path->net, daddr) == RTN_LOCAL)
		fl4.flowi4_oif = 0;
	srn_flowi4_set_tos(&fl4, path->tos);

	rt = ip_route_output_key(path->net, &fl4);
	if (IS_ERR(rt))
		return ERR_CAST(rt);
	/*
	 * Whether a multicast packet loops back to this host is decided by
	 * the route, and joining a group does not invalidate routes.
	 */
	if (!ipv4_is_multicast(daddr))
		dst_cache_set_ip4(&path->cache, &rt->dst, fl4.saddr);
	return &rt->dst;
}

static struct dst_entry *path_route6(struct roce_path *path)
{
	struct flowi6 fl6 = {
		.daddr = path->daddr,
		.saddr = path->saddr,
		.flowi6_oif = path->oif,
		.flowi6_proto = IPPROTO_UDP,
		.flowlabel = ip6_make_flowinfo(path->tos,
					       htonl(path->flow_label)),
		.fl6_sport = htons(path->sport),
		.fl6_dport = htons(ROCE_UDP_PORT),
	};
	struct dst_entry *dst;

	/* A link-local address means something only together with its link. */
	if (!(ipv6_addr_type(&path->daddr) & IPV6_ADDR_LINKLOCAL) &&
	    ipv6_chk_addr(path->net, &path->daddr, NULL, 0))
		fl6.flowi6_oif = 0;

	dst = ip6_dst_lookup_flow(path->net, NULL, &fl6, NULL);
	if (!IS_ERR(dst))
		dst_cache_set_ip6(&path->cache, dst, &fl6.saddr);
	return dst;
}

struct dst_entry *roce_path_dst(struct roce_path *path)
{
	struct dst_entry *dst = dst_cache_get(&path->cache);

	if (likely(dst))
		return dst;
	return path->l3 == ROCE_L3_IPV4 ? path_route4(path) :
					  path_route6(path);
}
