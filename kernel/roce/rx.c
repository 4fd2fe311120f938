// SPDX-License-Identifier: GPL-2.0
/*
 * From the UDP socket to the QP.
 *
 * Softirq, RCU held. A packet comes alone or in a chain that was sent as one
 * skb; either way each is checked for itself, and what a QP has to answer is
 * sent once at the end. skbs may be clones, so nothing is written into them.
 */
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "roce.h"

/*
 * struct rx_run - packets of one skb for one QP in a row
 * @rqp: the QP, NULL before the first
 * @resp: roce_resp_run() is due
 * @comp: roce_kick() is due
 */
struct rx_run {
	struct roce_net *rn;
	struct roce_qp *rqp;
	bool resp;
	bool comp;
};

static void rx_run_end(struct rx_run *run)
{
	if (run->resp)
		roce_resp_run(run->rqp);
	if (run->comp)
		roce_kick(run->rqp);
	run->rqp = NULL;
	run->resp = false;
	run->comp = false;
}

void roce_rx_addrs(const struct roce_rx *rx, struct in6_addr *saddr,
		   struct in6_addr *daddr)
{
	if (rx->l3 == ROCE_L3_IPV4) {
		const struct iphdr *ip = (const struct iphdr *)rx->l3hdr;

		ipv6_addr_set_v4mapped(ip->saddr, saddr);
		ipv6_addr_set_v4mapped(ip->daddr, daddr);
	} else {
		const struct ipv6hdr *ip = (const struct ipv6hdr *)rx->l3hdr;

		*saddr = ip->saddr;
		*daddr = ip->daddr;
	}
}

/* ---- payload ---------------------------------------------------------------- */

int roce_rx_to_sges(const struct roce_rx *rx, const struct srn_sge_ref *sge,
		    u32 n, struct srn_cursor *cur)
{
	u32 off = rx->h.hdr_len, end = off + rx->h.payload_len;
	struct skb_seq_state seq;
	const u8 *data;
	u32 done = 0, len;
	int ret = 0;

	if (likely(end <= skb_headlen(rx->skb)))
		return srn_sge_scatter(sge, n, cur, rx->skb->data + off,
				       rx->h.payload_len);

	skb_prepare_seq_read(rx->skb, off, end, &seq);
	while (!ret && (len = skb_seq_read(done, &data, &seq))) {
		ret = srn_sge_scatter(sge, n, cur, data, len);
		done += len;
	}
	skb_abort_seq_read(&seq);
	return ret;
}

int roce_rx_to_mr(const struct roce_rx *rx, struct srn_mr *mr, u32 key,
		  int access, u64 va)
{
	u32 off = rx->h.hdr_len, end = off + rx->h.payload_len;
	struct skb_seq_state seq;
	const u8 *data;
	u32 done = 0, len;
	int ret = 0;

	if (likely(end <= skb_headlen(rx->skb)))
		return srn_mr_write(mr, key, access, va, rx->skb->data + off,
				    rx->h.payload_len);

	skb_prepare_seq_read(rx->skb, off, end, &seq);
	while (!ret && (len = skb_seq_read(done, &data, &seq))) {
		ret = srn_mr_write(mr, key, access, va + done, data, len);
		done += len;
	}
	skb_abort_seq_read(&seq);
	return ret;
}

/*
 * @hdr: L3 header, UDP header and BTH; @len: BTH .. ICRC. The lengths come from
 * the headers, so trailing padding of the frame stays out (R005).
 */
static bool rx_icrc_ok(const struct roce_rx *rx, const u8 *hdr, u32 len)
{
	struct sk_buff *skb = rx->skb;
	u32 end = len - ICRC_BYTES;
	struct skb_seq_state seq;
	u8 stored[ICRC_BYTES];
	const u8 *data;
	u32 done = 0, n;
	u32 crc;

	crc = icrc_begin(roce_crc32, rx->l3, hdr);
	if (likely(len <= skb_headlen(skb))) {
		crc = roce_crc32(crc, skb->data + BTH_BYTES, end - BTH_BYTES);
		return icrc_match(skb->data + end, crc);
	}

	if (end > BTH_BYTES) {
		skb_prepare_seq_read(skb, BTH_BYTES, end, &seq);
		while ((n = skb_seq_read(done, &data, &seq))) {
			crc = roce_crc32(crc, data, n);
			done += n;
		}
		skb_abort_seq_read(&seq);
	}
	return !skb_copy_bits(skb, end, stored, ICRC_BYTES) &&
	       icrc_match(stored, crc);
}

/* ---- dispatch ---------------------------------------------------------------- */

/* Whose counters a packet without a QP belongs to; may be nobody's. */
static struct roce_dev *rx_dev(struct rx_run *run, const struct roce_rx *rx)
{
	struct in6_addr saddr, daddr;

	roce_rx_addrs(rx, &saddr, &daddr);
	return roce_gid_find(run->rn, &daddr, rx->dev);
}

#define rx_drop(run, rx, id)						\
do {									\
	struct roce_dev *_rdev = rx_dev(run, rx);			\
									\
	if (_rdev)							\
		srn_count(_rdev->sdev, id);				\
} while (0)

static struct roce_qp *rx_find_qp(struct rx_run *run, const struct roce_rx *rx)
{
	struct roce_dev *rdev;
	struct roce_qp *rqp;

	if (run->rqp && run->rqp->qpn == rx->h.dqpn)
		return run->rqp;
	if (rx->h.dqpn == ROCE_QPN_GSI) {
		rdev = rx_dev(run, rx);
		return rdev ? rcu_dereference(rdev->gsi) : NULL;
	}
	rqp = srn_qpn_find(rx->h.dqpn);
	return rqp && rqp->dev->net == rx->net ? rqp : NULL;
}

/* R016. Our only key is a full member, so any membership of the peer will do. */
bool roce_rx_pkey_ok(const struct roce_rx *rx)
{
	return !((rx->h.pkey ^ ROCE_PKEY_DEFAULT) & 0x7fff);
}

/* R018. */
static bool rx_addr_ok(const struct roce_qp *rqp, const struct roce_rx *rx)
{
	struct in6_addr saddr, daddr;

	if (!READ_ONCE(rqp->has_path))
		return false;
	roce_rx_addrs(rx, &saddr, &daddr);
	return ipv6_addr_equal(&saddr, &rqp->path.daddr) &&
	       ipv6_addr_equal(&daddr, &rqp->path.saddr);
}

/* R015. */
static bool rx_class_ok(const struct roce_qp *rqp, u8 opcode)
{
	enum roce_class class = opcode & ROCE_CLASS_MASK;

	return rqp->type == IB_QPT_RC ? class == ROCE_CLASS_RC :
					class == ROCE_CLASS_UD;
}

/* A packet that is whole and authentic, for its QP. */
static void rx_dispatch(struct rx_run *run, struct roce_qp *rqp,
			struct roce_rx *rx)
{
	if (!rx_class_ok(rqp, rx->h.opcode)) {
		srn_count(rqp->dev, DROP_TYPE);
		return;
	}
	if (rqp->type != IB_QPT_RC) {
		roce_ud_rx(rqp, rx);
		return;
	}
	if (!rx_addr_ok(rqp, rx)) {
		srn_count(rqp->dev, DROP_ADDR);
		return;
	}
	if (!roce_rx_pkey_ok(rx)) {
		srn_count(rqp->dev, DROP_PKEY);
		return;
	}
	if (rqp != run->rqp) {
		rx_run_end(run);
		run->rqp = rqp;
	}
	if (rx->h.flags & BTH_F_RESPONSE)
		run->comp |= roce_comp_rx(rqp, rx);
	else
		run->resp |= roce_resp_rx(rqp, rx);
}

static void rx_mcast(struct rx_run *run, struct roce_rx *rx, const u8 *hdr,
		     u32 len)
{
	if ((rx->h.opcode & ROCE_CLASS_MASK) == ROCE_CLASS_UD &&
	    rx_icrc_ok(rx, hdr, len))
		roce_mcast_rx(run->rn, rx);
}

/*
 * R019: the responder of an RC QP refuses a reserved operation with a NAK, so
 * such a packet goes on, without flags.
 */
static bool rx_parse(struct roce_rx *rx, const u8 *bth, u32 len)
{
	enum bth_err err = bth_parse(bth, len, &rx->h);

	return err == BTH_OK ||
	       (err == BTH_ERR_OPCODE &&
		(rx->h.opcode & ROCE_CLASS_MASK) == ROCE_CLASS_RC);
}

/*
 * rx_packet() - one packet
 * @skb: data at the BTH
 * @l3hdr: its L3 and UDP header
 * @len: BTH .. ICRC, within skb->len
 * @head: of a chain, whose headers hold the lengths of the chain
 */
static void rx_packet(struct rx_run *run, struct roce_rx *rx,
		      struct sk_buff *skb, const u8 *l3hdr, u32 len, bool head)
{
	u8 hdr[sizeof(struct ipv6hdr) + sizeof(struct udphdr) + ROCE_HDR_MAX]
		__aligned(4);
	u32 l3_len = roce_l3_len(rx->l3);
	struct roce_qp *rqp;

	memcpy(hdr, l3hdr, l3_len);
	if (skb_copy_bits(skb, 0, hdr + l3_len, min_t(u32, len, ROCE_HDR_MAX)))
		return;
	if (head) {
		wire_put16(hdr + l3_len - 4, sizeof(struct udphdr) + len);
		if (rx->l3 == ROCE_L3_IPV4)
			wire_put16(hdr + 2, l3_len + len);
		else
			wire_put16(hdr + 4, sizeof(struct udphdr) + len);
	}
	rx->skb = skb;
	rx->l3hdr = hdr;

	if (!rx_parse(rx, hdr + l3_len, len)) {
		rx_drop(run, rx, DROP_MALFORMED);
		return;
	}
	if (rx->h.opcode == ROCE_CNP)
		return;
	if (rx->h.dqpn == ROCE_QPN_MCAST) {
		rx_mcast(run, rx, hdr, len);
		return;
	}
	rqp = rx_find_qp(run, rx);
	if (!rqp) {
		rx_drop(run, rx, DROP_QPN);
		return;
	}
	if (unlikely(!rx_icrc_ok(rx, hdr, len))) {
		srn_count(rqp->dev, DROP_ICRC);
		return;
	}
	srn_count(rqp->dev, RX_PACKETS);
	srn_count_add(rqp->dev, RX_BYTES, l3_len + len);
	rx_dispatch(run, rqp, rx);
}

/* ---- skbs --------------------------------------------------------------------- */

/* Only a fragment list keeps the packets as they were sent. */
static bool rx_is_chain(const struct sk_buff *skb)
{
	return skb_is_gso(skb) && skb_has_frag_list(skb) &&
	       (skb_shinfo(skb)->gso_type & SKB_GSO_FRAGLIST);
}

/* A member: data at the BTH, its own headers in front of it. */
static void rx_member(struct rx_run *run, struct roce_rx *rx,
		      struct sk_buff *skb)
{
	int l3_len = roce_l3_len(rx->l3);
	const u8 *l3hdr = skb->data - l3_len;

	if (skb_headroom(skb) < l3_len || skb_network_offset(skb) != -l3_len ||
	    l3hdr[0] >> 4 != (rx->l3 == ROCE_L3_IPV4 ? 4 : 6) ||
	    wire_get16(skb->data - 4) != sizeof(struct udphdr) + skb->len)
		return;
	rx_packet(run, rx, skb, l3hdr, skb->len, false);
}

/*
 * Length from BTH to ICRC of the first packet. Negative when this is not a
 * RoCEv2 packet at all: IPv4 options or IPv6 extension headers (1.2, 1.3), or a
 * segmentation that does not keep packets.
 */
static int rx_head_len(struct sk_buff *skb, enum roce_l3 l3)
{
	int l3_len = roce_l3_len(l3), udp = sizeof(struct udphdr);
	int len;

	if (skb_network_offset(skb) != udp - l3_len ||
	    (skb_is_gso(skb) && !rx_is_chain(skb)) ||
	    !pskb_may_pull(skb, udp))
		return -EINVAL;
	if (rx_is_chain(skb))
		len = (int)skb_pagelen(skb) - udp;
	else
		len = ntohs(udp_hdr(skb)->len) - udp;
	return len + udp > (int)skb->len ? -EINVAL : len;
}

int roce_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct roce_rx rx = {
		.l3 = sk->sk_family == AF_INET6 ? ROCE_L3_IPV6 : ROCE_L3_IPV4,
		.net = sock_net(sk),
		.dev = skb->dev,
	};
	struct rx_run run = {};
	struct sk_buff *member;
	bool chain;
	int len;

	run.rn = roce_net_of(rx.net);
	len = rx_head_len(skb, rx.l3);
	if (len < 0) {
		kfree_skb(skb);
		return 0;
	}
	chain = rx_is_chain(skb);
	__skb_pull(skb, sizeof(struct udphdr));
	rx_packet(&run, &rx, skb, skb->data - roce_l3_len(rx.l3), len, chain);
	if (chain)
		skb_walk_frags(skb, member)
			rx_member(&run, &rx, member);
	rx_run_end(&run);
	consume_skb(skb);
	return 0;
}
