// SPDX-License-Identifier: GPL-2.0
/*
 * Packets and their way to the network.
 *
 * A batch is built under a half lock and leaves after it was dropped, with BH
 * off. Runs of a batch travel as one skb with a fragment list, so that route,
 * filters, queue and the peer's receive path are paid for once a run.
 */
#include <linux/wait_bit.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/ip6_route.h>
#include <net/udp.h>

#include "roce.h"

/*
 * Room for the headers of the netdevs below. All packets have the same, since
 * those of a run get the link header of its head.
 */
#define XMIT_HEADROOM ALIGN(MAX_HEADER, 16)

/* IP total length, or IPv6 payload length, has 16 bits. */
#define XMIT_RUN_BYTES 0xffff

/* ---- budget -------------------------------------------------------------- */

/* Budgets that exist; each skb with our destructor holds one. */
static atomic_t xmit_budgets = ATOMIC_INIT(0);

struct roce_budget *roce_budget_alloc(struct roce_qp *rqp)
{
	struct roce_budget *budget = kzalloc(sizeof(*budget), GFP_KERNEL);

	if (!budget)
		return NULL;
	refcount_set(&budget->ref, 1);
	spin_lock_init(&budget->lock);
	budget->rqp = rqp;
	atomic_inc(&xmit_budgets);
	return budget;
}

static void budget_put(struct roce_budget *budget)
{
	if (!refcount_dec_and_test(&budget->ref))
		return;
	kfree(budget);
	if (atomic_dec_and_test(&xmit_budgets))
		wake_up_var(&xmit_budgets);
}

void roce_budget_detach(struct roce_budget *budget)
{
	unsigned long flags;

	spin_lock_irqsave(&budget->lock, flags);
	budget->rqp = NULL;
	spin_unlock_irqrestore(&budget->lock, flags);
	budget_put(budget);
}

/* Run the responder if it waits and half is free. */
static void budget_wake(struct roce_budget *budget)
{
	unsigned long flags;

	spin_lock_irqsave(&budget->lock, flags);
	if (budget->waiting &&
	    atomic_read(&budget->bytes) <= ROCE_BUDGET_BYTES / 2) {
		budget->waiting = false;
		if (budget->rqp)
			queue_work(srn_wq, &budget->rqp->resp_work);
	}
	spin_unlock_irqrestore(&budget->lock, flags);
}

/*
 * The mark is set before the bytes are read again, and a destructor takes its
 * bytes off before it reads the mark: one of the two sees the other.
 */
bool roce_budget_full(struct roce_budget *budget)
{
	unsigned long flags;

	if (likely(atomic_read(&budget->bytes) < ROCE_BUDGET_BYTES))
		return false;

	spin_lock_irqsave(&budget->lock, flags);
	budget->waiting = true;
	spin_unlock_irqrestore(&budget->lock, flags);
	smp_mb();	/* pairs with atomic_sub_return() in budget_consumed() */
	budget_wake(budget);
	return true;
}

/* skb destructor; any context. The charge was parked in tskey. */
static void budget_consumed(struct sk_buff *skb)
{
	struct roce_budget *budget = skb_shinfo(skb)->destructor_arg;
	int left;

	rcu_read_lock();	/* roce_xmit_exit() waits for the last of us */
	left = atomic_sub_return(skb_shinfo(skb)->tskey, &budget->bytes);
	if (left <= ROCE_BUDGET_BYTES / 2 && READ_ONCE(budget->waiting))
		budget_wake(budget);
	budget_put(budget);
	rcu_read_unlock();
}

/*
 * truesize is corrected on the way down, so the charge itself has to travel
 * with the skb: in tskey, which is idle in packets without a timestamp request.
 */
static void budget_charge(struct roce_budget *budget, struct sk_buff *skb)
{
	skb_shinfo(skb)->tskey = skb->truesize;
	skb_shinfo(skb)->destructor_arg = budget;
	skb->destructor = budget_consumed;
	atomic_add(skb->truesize, &budget->bytes);
	refcount_inc(&budget->ref);
}

/* ---- start, end ---------------------------------------------------------- */

/*
 * Packet memory is cut from pages of this CPU: a packet of path MTU 4096 would
 * take 8 KiB from the slab.
 */
static struct page_frag __percpu *xmit_pages;

int roce_xmit_init(void)
{
	xmit_pages = alloc_percpu(struct page_frag);
	return xmit_pages ? 0 : -ENOMEM;
}

void roce_xmit_exit(void)
{
	int cpu;

	wait_var_event(&xmit_budgets, !atomic_read(&xmit_budgets));
	synchronize_rcu();
	for_each_possible_cpu(cpu) {
		struct page *page = per_cpu_ptr(xmit_pages, cpu)->page;

		if (page)
			put_page(page);
	}
	free_percpu(xmit_pages);
}

/* ---- building ------------------------------------------------------------ */

/* A buffer with XMIT_HEADROOM reserved and room for @len bytes; BH off. */
static struct sk_buff *xmit_alloc(u32 len)
{
	struct page_frag *pages = this_cpu_ptr(xmit_pages);
	u32 size = SKB_DATA_ALIGN(XMIT_HEADROOM + len) +
		   SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;
	struct sk_buff *skb;

	if (!skb_page_frag_refill(size, pages, gfp))
		return NULL;
	/* Under pressure the refill gives a single page, which may be too small. */
	if (likely(pages->size - pages->offset >= size)) {
		skb = build_skb(page_address(pages->page) + pages->offset,
				size);
		if (skb) {
			get_page(pages->page);
			pages->offset += size;
		}
	} else {
		skb = alloc_skb(XMIT_HEADROOM + len, gfp);
	}
	if (skb)
		skb_reserve(skb, XMIT_HEADROOM);
	return skb;
}

static u8 *xmit_bth(const struct sk_buff *skb)
{
	return skb_transport_header(skb) + sizeof(struct udphdr);
}

/* Every length in the headers counts this packet alone, and so does the ICRC. */
static void xmit_headers(struct sk_buff *skb, const struct roce_path *path,
			 u32 transport)
{
	u8 l3_len = roce_l3_len(path->l3);
	u8 *p = skb_put(skb, l3_len);

	skb_reset_network_header(skb);
	skb_set_transport_header(skb, l3_len - sizeof(struct udphdr));
	memcpy(p, path->hdr, l3_len);
	if (path->l3 == ROCE_L3_IPV4)
		wire_put16(p + 2, l3_len + transport);
	else
		wire_put16(p + 4, sizeof(struct udphdr) + transport);
	wire_put16(p + l3_len - 4, sizeof(struct udphdr) + transport);
}

/* The packet is complete but for the ICRC in its last four bytes (R011). */
static void xmit_seal(struct sk_buff *skb)
{
	enum roce_l3 l3 = skb->data[0] >> 4 == 4 ? ROCE_L3_IPV4 : ROCE_L3_IPV6;
	u32 covered = skb->len - ICRC_BYTES;
	u32 head = roce_l3_len(l3) + BTH_BYTES;
	u32 crc;

	crc = icrc_begin(roce_crc32, l3, skb->data);
	crc = roce_crc32(crc, skb->data + head, covered - head);
	icrc_store(skb->data + covered, crc);
}

u8 *roce_batch_add(struct roce_batch *b, const struct roce_path *path,
		   const struct roce_hdr *h, u32 payload)
{
	u32 hdr_len = bth_op_hdr_len(h->opcode);
	u32 pad = seg_pad(payload);
	u32 transport = hdr_len + payload + pad + ICRC_BYTES;
	struct roce_hdr hdr = *h;
	struct sk_buff *skb;
	u8 *data;

	skb = xmit_alloc(roce_l3_len(path->l3) + transport);
	if (!skb)
		return NULL;
	skb->priority = path->prio;
	xmit_headers(skb, path, transport);

	hdr.pad = pad;
	bth_build(skb_put(skb, hdr_len), &hdr);
	data = skb_put(skb, payload + pad + ICRC_BYTES);
	memset(data + payload, 0, pad);

	if (b->tail) {
		xmit_seal(b->tail);
		b->tail->next = skb;
	} else {
		b->head = skb;
	}
	b->tail = skb;
	b->count++;
	b->bytes += payload;
	return data;
}

void roce_batch_ackreq(struct roce_batch *b)
{
	if (b->tail)
		bth_set_ackreq(xmit_bth(b->tail));
}

/* What roce_batch_add() added to @bytes for a packet. */
static u32 xmit_payload(const struct sk_buff *skb)
{
	const u8 *bth = xmit_bth(skb);
	u32 transport = skb->len - (bth - skb->data);

	return transport - bth_op_hdr_len(bth[0]) - (bth[1] >> 4 & 3) -
	       ICRC_BYTES;
}

void roce_batch_undo(struct roce_batch *b)
{
	struct sk_buff *last = b->tail, *prev = b->head;

	if (!last)
		return;
	b->count--;
	b->bytes -= xmit_payload(last);
	if (last == b->head) {
		b->head = NULL;
		b->tail = NULL;
	} else {
		while (prev->next != last)
			prev = prev->next;
		prev->next = NULL;
		b->tail = prev;
	}
	kfree_skb(last);
}

void roce_batch_drop(struct roce_batch *b)
{
	kfree_skb_list(b->head);
	roce_batch_init(b);
}

/* ---- runs ---------------------------------------------------------------- */

/*
 * May the packets of a batch share one skb? Multicast packets may not, since
 * they are cloned on the way. A netdev that asks for more room than the members
 * have would write its header in front of their buffers.
 */
static bool xmit_may_chain(const struct roce_path *path,
			   const struct net_device *ndev)
{
	return !roce_path_is_mcast(path) &&
	       LL_RESERVED_SPACE(ndev) <= XMIT_HEADROOM;
}

/*
 * The constant IPv4 ID must survive a split (RFC 6864 4.1, see struct
 * roce_path). The tunnel bit lets the chain reach a tunnel socket whole; a
 * netdev that cannot carry it would only split the chain earlier, as lo does.
 */
static u32 xmit_gso_type(enum roce_l3 l3, const struct net_device *ndev)
{
	u32 type = SKB_GSO_UDP_L4 | SKB_GSO_FRAGLIST;

	if (l3 == ROCE_L3_IPV4)
		type |= SKB_GSO_TCP_FIXEDID;
	if (ndev->features & NETIF_F_GSO_UDP_TUNNEL)
		type |= SKB_GSO_UDP_TUNNEL;
	return type;
}

/* Make @skb the head of a fragment list of the @n - 1 packets behind it. */
static void xmit_link(struct sk_buff *skb, u32 n, enum roce_l3 l3,
		      const struct net_device *ndev)
{
	u8 l3_len = roce_l3_len(l3);
	struct skb_shared_info *info = skb_shinfo(skb);
	struct sk_buff *m;

	info->gso_size = skb->len - l3_len;
	info->gso_segs = n;
	info->gso_type = xmit_gso_type(l3, ndev);
	info->frag_list = skb->next;
	skb->next = NULL;
	skb_walk_frags(skb, m) {
		__skb_pull(m, l3_len);
		skb->len += m->len;
		skb->data_len += m->len;
		skb->truesize += m->truesize;
	}
	/* The split gives the head its own length back. */
	udp_hdr(skb)->len = htons(skb->len - l3_len + sizeof(struct udphdr));
	skb->ip_summed = CHECKSUM_UNNECESSARY;
}

/*
 * xmit_run() - take the oldest packets off a list as one skb
 * @count: packets taken
 *
 * The head is the longest of a run: its length, as gso_size, is what the stack
 * compares with the MTU.
 */
static struct sk_buff *xmit_run(struct sk_buff **list, bool chain,
				enum roce_l3 l3, const struct net_device *ndev,
				u32 *count)
{
	struct sk_buff *head = *list, *last = head, *next;
	u32 bytes = head->len;
	u32 n = 1;

	while (chain) {
		next = last->next;
		if (!next || next->len > head->len ||
		    bytes + next->len - roce_l3_len(l3) > XMIT_RUN_BYTES)
			break;
		bytes += next->len - roce_l3_len(l3);
		last = next;
		n++;
	}
	*list = last->next;
	last->next = NULL;
	if (n > 1)
		xmit_link(head, n, l3, ndev);
	*count = n;
	return head;
}

/*
 * Hand one skb down. Return: false when there is no room now. Everything else
 * that may happen to it is a loss on the way, which the peer or a timer notes.
 */
static bool xmit_out(struct roce_path *path, struct sk_buff *skb)
{
	int ret;

	if (path->l3 == ROCE_L3_IPV4)
		ret = ip_local_out(path->net, NULL, skb);
	else
		ret = ip6_local_out(path->net, NULL, skb);
	ret = net_xmit_eval(ret);
	return ret != NET_XMIT_DROP && ret != -ENOBUFS && ret != -ENOMEM;
}

static bool xmit_no_room(const struct dst_entry *dst)
{
	return PTR_ERR(dst) == -ENOMEM || PTR_ERR(dst) == -ENOBUFS;
}

int roce_batch_send(struct roce_batch *b, struct srn_dev *dev,
		    struct roce_path *path, struct roce_budget *budget)
{
	struct sk_buff *list = b->head, *skb;
	u32 total = b->count, taken = 0, n, len;
	struct net_device *ndev;
	struct dst_entry *dst;
	bool chain;

	if (!list)
		return 0;
	xmit_seal(b->tail);
	roce_batch_init(b);
	if (READ_ONCE(dev->dead)) {
		kfree_skb_list(list);
		return -ENODEV;
	}

	rcu_read_lock();
	dst = roce_path_dst(path);
	if (IS_ERR(dst)) {
		taken = xmit_no_room(dst) ? 0 : total;
		goto out;
	}
	ndev = READ_ONCE(dst->dev);
	chain = total > 1 && xmit_may_chain(path, ndev);
	while (list) {
		skb = xmit_run(&list, chain, path->l3, ndev, &n);
		len = skb->len;
		if (budget)
			budget_charge(budget, skb);
		skb_dst_set(skb, dst_clone(dst));
		if (!xmit_out(path, skb))
			break;
		taken += n;
		srn_count_add(dev, TX_PACKETS, n);
		srn_count_add(dev, TX_BYTES,
			      len + (n - 1) * roce_l3_len(path->l3));
	}
	dst_release(dst);
out:
	rcu_read_unlock();
	kfree_skb_list(list);
	return taken;
}
