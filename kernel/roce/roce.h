/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RoCE transport: shared structures of net, path, xmit and the engines.
 *
 * A RoCE QP is two halves. The requester half (req.c, comp.c) owns the send
 * queue and everything its responses touch; the responder half (resp.c) owns the
 * receive queue and what it answers. A packet touches one half only. Neither
 * half's lock is held while packets leave: whoever sends holds the SQ owner bit
 * (core) or the responder's owner bit (ROCE_RESP_OWNER).
 *
 * Lifetime: struct roce_qp is found by QPN under RCU and freed after a grace
 * period. @qp (the verbs half), the CQs, PD and SRQ behind it may be followed
 * only under a half lock while @dead is false.
 */
#ifndef SRN_ROCE_H
#define SRN_ROCE_H

#include <linux/in6.h>
#include <linux/skbuff.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <net/dst_cache.h>
#include <rdma/ib_cache.h>

#include "proto/aeth.h"
#include "proto/bth.h"
#include "proto/icrc.h"
#include "proto/psn.h"
#include "proto/seg.h"
#include "softrnic.h"
#include "transport.h"

/* Netdev MTU minus path MTU: IPv6 40, UDP 8, BTH 12, AtomicETH 28, pad, ICRC 4. */
#define ROCE_OVERHEAD 96

/* Packets and payload bytes that one batch may hold (one GSO chain). */
#define ROCE_BATCH_PKTS 48
#define ROCE_BATCH_BYTES (60 * 1024)

/* Response bytes of one QP that may wait in qdiscs and backlogs. */
#define ROCE_BUDGET_BYTES (256 * 1024)

/**
 * struct roce_net - sockets and addresses of one network namespace
 * @net: the namespace; the pernet exit waits until @ndevs is zero
 * @lock: serialises sockets and @users (mutex, may sleep)
 * @users: devices that use the sockets
 * @was_used: there has been a device
 * @sk4: UDP 4791 over IPv4, NULL before the first device
 * @sk6: over IPv6, NULL when IPv6 is not there
 * @gid_lock: protects writes to @gids
 * @gids: every GID of every device of the namespace; read under RCU
 * @devs: the devices; written under @lock, read under RCU
 * @ndevs: devices between dev_init and dev_exit
 * @gone: woken when @ndevs falls
 */
struct roce_net {
	struct net *net;
	struct mutex lock;
	unsigned int users;
	bool was_used;
	struct socket *sk4;
	struct socket *sk6;
	spinlock_t gid_lock;
	struct hlist_head gids[64];
	struct hlist_head devs;
	atomic_t ndevs;
	wait_queue_head_t gone;
};

/**
 * struct roce_dev - the RoCE part of a device
 * @sdev: the device; freed after a grace period, like this struct
 * @node: in rn->devs
 * @gsi: the GSI QP's engine
 * @ahs: AH number -> struct roce_av, read under RCU
 * @mcast_lock: serialises attach and detach (mutex)
 * @mcgs: multicast groups, read under RCU
 */
struct roce_dev {
	struct srn_dev *sdev;
	struct roce_net *rn;
	struct hlist_node node;
	struct roce_qp __rcu *gsi;
	struct xarray ahs;
	u32 ah_next;
	struct mutex mcast_lock;
	struct hlist_head mcgs[16];
	unsigned int nmcgs;
	struct rcu_head rcu;
};

static inline struct roce_dev *to_rdev(struct srn_dev *dev)
{
	return dev->tdev;
}

/**
 * struct roce_path - the way to a peer: route and header template
 * @net: namespace of the device
 * @l3: frame kind
 * @hdr: L3 and L4 header with lengths and checksum left zero; roce_l3_len() bytes
 * @saddr: own GID, IPv4 as mapped address
 * @daddr: peer's GID
 * @oif: netdev of the source GID
 * @cache: per-CPU route cache; used under an owner bit with BH off
 *
 * IPv4 packets carry ID 0 with DF (RFC 6864 4.1), so the ICRC of a packet does
 * not depend on its place in a batch.
 */
struct roce_path {
	struct net *net;
	enum roce_l3 l3;
	u8 hdr[48];
	struct in6_addr saddr;
	struct in6_addr daddr;
	int oif;
	u8 tos;
	u8 ttl;
	u8 sl;
	u8 prio;
	u32 flow_label;
	u16 sport;
	struct dst_cache cache;
};

/** roce_active_mtu() - roce.c: largest IB MTU that fits the netdev (R070). */
enum ib_mtu roce_active_mtu(const struct srn_dev *dev);

/* path.c */
/**
 * roce_path_init() - fill a path from an address vector
 * @rqpn: peer QPN, or 0 for an AH, whose source port comes from the flow label alone
 *
 * Task, may sleep. The AV has been validated by ib_core (sgid_attr is set).
 * Return: 0 or -errno; on failure @path needs no fini.
 */
int roce_path_init(struct roce_path *path, struct srn_dev *dev,
		   const struct rdma_ah_attr *attr, u32 lqpn, u32 rqpn);
/** roce_path_init_gfp() - the same where sleeping may be forbidden. */
int roce_path_init_gfp(struct roce_path *path, struct srn_dev *dev,
		       const struct rdma_ah_attr *attr, u32 lqpn, u32 rqpn,
		       gfp_t gfp);
/** roce_path_is_mcast() - is the destination a group? */
bool roce_path_is_mcast(const struct roce_path *path);
/** roce_path_fini() - nobody uses the path any more; any context. */
void roce_path_fini(struct roce_path *path);
/** roce_path_dst() - a referenced route, cached; BH off. Return: ERR_PTR when there is none now. */
struct dst_entry *roce_path_dst(struct roce_path *path);

/**
 * struct roce_budget - bytes of one QP that wait to be consumed below us
 * @ref: one of the QP, one of each skb that is charged
 * @lock: protects @rqp and @waiting; irq-safe (skb destructors)
 * @rqp: the QP, NULL once it is being destroyed
 * @bytes: charged and not consumed yet
 * @waiting: the responder stopped at ROCE_BUDGET_BYTES; run it when half is free
 *
 * skbs point at this and never at the QP, so destroy never waits for an skb.
 */
struct roce_budget {
	refcount_t ref;
	spinlock_t lock;
	struct roce_qp *rqp;
	atomic_t bytes;
	bool waiting;
};

/* xmit.c */
struct roce_budget *roce_budget_alloc(struct roce_qp *rqp);
/** roce_budget_detach() - the QP goes: no more calls into it from destructors; drops the QP's reference. */
void roce_budget_detach(struct roce_budget *budget);
/** roce_budget_full() - is the QP over its share? Sets @waiting when it is. */
bool roce_budget_full(struct roce_budget *budget);
int roce_xmit_init(void);
/** roce_xmit_exit() - wait until no skb points into the module; no QP is left. */
void roce_xmit_exit(void);

/* crc.c */
/** roce_crc32() - CRC register over a buffer, see icrc_fn; BH off. */
u32 roce_crc32(u32 crc, const void *buf, size_t len);
int roce_crc_init(void);
void roce_crc_exit(void);

/**
 * struct roce_batch - packets of one QP that leave together
 * @head: oldest packet, linked by skb->next
 * @tail: youngest packet; its AckReq bit and ICRC are still open
 * @count: packets
 * @bytes: payload bytes
 *
 * Built under a half lock, sent after it was dropped.
 */
struct roce_batch {
	struct sk_buff *head;
	struct sk_buff *tail;
	u32 count;
	u32 bytes;
};

static inline void roce_batch_init(struct roce_batch *b)
{
	*b = (struct roce_batch){};
}

static inline bool roce_batch_full(const struct roce_batch *b)
{
	return b->count >= ROCE_BATCH_PKTS || b->bytes >= ROCE_BATCH_BYTES;
}

/**
 * roce_batch_add() - append one packet and return where its payload goes
 * @h: transport headers; pad is computed from @payload here
 * @payload: bytes the caller writes before the next call on the batch
 *
 * BH off; never sleeps. The packet before becomes final (its ICRC is computed).
 * Return: start of the payload area (valid also when @payload is 0), NULL when there is no memory.
 */
u8 *roce_batch_add(struct roce_batch *b, const struct roce_path *path,
		   const struct roce_hdr *h, u32 payload);
/** roce_batch_ackreq() - set AckReq in the youngest packet. */
void roce_batch_ackreq(struct roce_batch *b);
/** roce_batch_undo() - take the youngest packet back; the one before it is the youngest again. */
void roce_batch_undo(struct roce_batch *b);
/** roce_batch_drop() - free every packet unsent. */
void roce_batch_drop(struct roce_batch *b);
/**
 * roce_batch_send() - hand the batch to the network
 * @budget: charged until the packets are consumed, or NULL
 *
 * BH off, no lock held. The batch is empty afterwards. A full qdisc, a missing
 * route or neighbour never harm the QP.
 * Return: packets that were taken, in order from the oldest; fewer than the batch had
 * means the rest was dropped here and the caller pauses. -ENODEV when the device is gone.
 */
int roce_batch_send(struct roce_batch *b, struct srn_dev *dev,
		    struct roce_path *path, struct roce_budget *budget);

/**
 * struct roce_rx - one received packet, checked
 * @skb: skb->data at the BTH
 * @h: transport headers
 * @l3: frame kind
 * @l3hdr: IP header with the lengths of this packet, a copy
 * @net: namespace it arrived in
 * @dev: netdev it arrived on: a hint, since own addresses arrive on lo
 *
 * Payload is @h.payload_len bytes at offset @h.hdr_len of skb->data, perhaps
 * not linear: roce_rx_*() below walk it.
 */
struct roce_rx {
	struct sk_buff *skb;
	struct roce_hdr h;
	enum roce_l3 l3;
	const u8 *l3hdr;
	struct net *net;
	const struct net_device *dev;
};

/* net.c */
struct roce_net *roce_net_of(const struct net *net);
int roce_net_init(void);	/* pernet */
void roce_net_exit(void);
struct roce_net *roce_net_get(struct net *net);	/* opens the sockets; ERR_PTR(-EADDRINUSE) with one log line */
void roce_net_put(struct roce_net *rn);
void roce_net_add_dev(struct roce_net *rn, struct roce_dev *rdev);
void roce_net_del_dev(struct roce_net *rn, struct roce_dev *rdev);
int roce_add_gid(const struct ib_gid_attr *attr, void **context);
int roce_del_gid(const struct ib_gid_attr *attr, void **context);
/** roce_gid_find() - device that owns address @gid in @rn, preferring one on @ndev; RCU. */
struct roce_dev *roce_gid_find(struct roce_net *rn, const struct in6_addr *gid,
			       const struct net_device *ndev);
/** roce_gid_is_own() - does @gid belong to @rdev? RCU. */
bool roce_gid_is_own(struct roce_dev *rdev, const struct in6_addr *gid);
/** roce_gid_vlan() - VLAN id of an own address, preferring its entry on @ndev; 0xffff for none; RCU. */
u16 roce_gid_vlan(struct roce_dev *rdev, const struct in6_addr *gid,
		  const struct net_device *ndev);

/* rx.c */
int roce_rcv(struct sock *sk, struct sk_buff *skb);	/* encap_rcv of the sockets */
/** roce_rx_addrs() - addresses of a packet as GIDs. */
void roce_rx_addrs(const struct roce_rx *rx, struct in6_addr *saddr,
		   struct in6_addr *daddr);
/** roce_rx_pkey_ok() - does the packet's P_Key match ours? */
bool roce_rx_pkey_ok(const struct roce_rx *rx);
/** roce_rx_to_sges() - place the payload into an SGE list. Return: 0 or -EFAULT. */
int roce_rx_to_sges(const struct roce_rx *rx, const struct srn_sge_ref *sge,
		    u32 n, struct srn_cursor *cur);
/** roce_rx_to_mr() - place the payload at @va of an MR. Return: 0 or -EFAULT. */
int roce_rx_to_mr(const struct roce_rx *rx, struct srn_mr *mr, u32 key,
		  int access, u64 va);

/* ---- QP ---------------------------------------------------------------- */

/**
 * struct roce_wqe - requester's part of a WQE snapshot (srn_wqe.priv)
 * @psn: first PSN
 * @npkts: PSNs it takes
 * @rd_bytes: READ: bytes received so far
 * @flags: ROCE_WQE_*
 */
struct roce_wqe {
	u32 psn;
	u32 npkts;
	u32 rd_bytes;
	u32 flags;
};

#define ROCE_WQE_STARTED BIT(0)	/* has its PSNs */
#define ROCE_WQE_DONE BIT(1)	/* READ/ATOMIC answered, local op executed */
#define ROCE_WQE_RD_ATOMIC BIT(2)	/* counts against max_rd_atomic */

static inline struct roce_wqe *to_rwqe(struct srn_wqe *wqe)
{
	BUILD_BUG_ON(sizeof(struct roce_wqe) > sizeof(wqe->priv));
	return (struct roce_wqe *)wqe->priv;
}

/**
 * struct roce_req - requester half
 * @lock: BH; protects this struct and the core's send queue
 * @psn_next: PSN of the next new packet
 * @psn_una: oldest PSN that is not acknowledged
 * @psn_send: next PSN to put on the wire; before @psn_next after a go-back
 * @psn_max: highest PSN sent plus one; between it and @psn_send lie retransmissions
 * @wqe_send: number of the WQE @psn_send belongs to
 * @cur: gather cursor at byte @cur_off of WQE number @cur_wqe
 * @rd_outstanding: READs and atomics started and not finished
 * @window: payload bytes that may be unacknowledged; follows the path
 * @loss_window: window after the last loss; beyond it growth is slow
 * @retries: left of retry_cnt
 * @rnr_retries: left of rnr_retry
 * @rnr_wait: sending stops until @rnr_timer fires
 * @paused: the network refused; @pause_timer resumes
 * @retrans: the one retransmission timer, for @psn_una
 * @recovering: went back for a lost response; further signs of the same loss
 *              are ignored until something new is acknowledged
 * @draining: SQD was asked for and started messages are not finished
 * @drain_event: raise SQ_DRAINED when they are
 * @deadline: jiffies when @psn_una times out; the timer is lazily moved
 */
struct roce_req {
	spinlock_t lock;
	u32 psn_next;
	u32 psn_una;
	u32 psn_send;
	u32 psn_max;
	u32 wqe_send;
	struct srn_cursor cur;
	u32 cur_off;
	u32 cur_wqe;
	u32 rd_outstanding;
	u32 max_rd_atomic;
	u32 window;
	u32 loss_window;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 retries;
	u8 rnr_retries;
	u8 timeout;
	bool rnr_wait;
	bool paused;
	bool recovering;
	bool draining;
	bool drain_event;
	unsigned long deadline;
	unsigned long timeout_jiffies;
	struct timer_list retrans;
	struct timer_list rnr_timer;
	struct timer_list pause_timer;
};

enum roce_rsrc_kind {
	ROCE_RSRC_READ,
	ROCE_RSRC_ATOMIC,
};

/**
 * struct roce_rsrc - a READ or atomic that was accepted, kept for replay
 * @psn: first PSN
 * @npkts: PSNs of the answer
 * @next: packets of the answer already sent
 * @start: packet the current answer began with (a READ restarted in the middle)
 * @mr: reference on the MR of a READ while it is remembered, NULL for length 0
 * @orig: result of an atomic
 * @msn: MSN its answer carries
 */
struct roce_rsrc {
	enum roce_rsrc_kind kind;
	u32 psn;
	u32 npkts;
	u32 next;
	u32 start;
	u32 msn;
	u32 rkey;
	u32 len;
	u64 va;
	u64 orig;
	struct srn_mr *mr;
};

/**
 * struct roce_resp - responder half
 * @lock: BH; protects this struct and the core's receive queue
 * @psn: expected PSN (ePSN)
 * @msn: messages completed
 * @seq: place inside a message
 * @nak_sent: a sequence or RNR NAK was sent and nothing in order came since
 * @ack_pending: an ACK or NAK waits to be sent after every READ response before it
 * @ack_psn: its PSN
 * @ack_syndrome: its syndrome
 * @rwqe: receive WQE in use (rwqe.valid)
 * @off: bytes of the current message placed
 * @mr: reference for the WRITE in progress
 * @rsrc_max: max_dest_rd_atomic: how many may be unanswered
 * @rsrc_slots: size of @rsrc, a power of two, so that counters may wrap
 * @rsrc: ring of the last READs and atomics
 * @rsrc_head: next slot to fill (unmasked counter)
 * @rsrc_send: next slot to answer (unmasked counter); a duplicate moves it back
 * @rsrc_done: the farthest @rsrc_send has been: slots before it were answered once
 * @rsrc_used: slots that remember something; the oldest is rsrc_head - rsrc_used
 * @comm_est: COMM_EST was raised
 * @last_wqe: LAST_WQE_REACHED was raised
 * @pause_timer: the network refused a response; try again
 */
struct roce_resp {
	spinlock_t lock;
	u32 psn;
	u32 msn;
	enum roce_seq seq;
	bool nak_sent;
	u8 min_rnr_timer;
	bool ack_pending;
	u8 ack_syndrome;
	u32 ack_psn;
	struct srn_cursor cur;
	u32 off;
	u64 va;
	u32 rkey;
	u32 dmalen;
	struct srn_mr *mr;
	u32 rsrc_max;
	u32 rsrc_slots;
	u32 rsrc_head;
	u32 rsrc_send;
	u32 rsrc_done;
	u32 rsrc_used;
	struct roce_rsrc *rsrc;
	bool comm_est;
	bool last_wqe;
	struct timer_list pause_timer;
	struct srn_rwqe rwqe;
};

/* roce_qp.resp_flags */
enum roce_resp_flag {
	ROCE_RESP_OWNER,	/* somebody sends responses */
	ROCE_RESP_PENDING,	/* the owner shall look again */
	ROCE_RESP_CLOSED,	/* modify or destroy has the owner bit, or waits for it */
};

/**
 * struct roce_qp - engine of one QP
 * @qp: the verbs half; only under a half lock while not @dead
 * @dev: stays until the QP is destroyed
 * @dead: set under both half locks by destroy
 * @path: RC: way to the peer; valid from RTR; used under an owner bit, replaced with both owner bits held
 * @budget: see struct roce_budget
 * @mcasts: multicast groups it is attached to; under rdev->mcast_lock
 * @visitors: contexts that left a half lock and still use what is behind @qp:
 *            they kick the SQ or run a completion handler. Destroy waits for them.
 */
struct roce_qp {
	struct srn_qp *qp;
	struct srn_dev *dev;
	struct roce_dev *rdev;
	enum ib_qp_type type;
	u32 qpn;
	u32 dqpn;
	u32 qkey;
	u32 pmtu;
	int access;		/* qp_access_flags */
	bool dead;
	bool has_path;
	struct roce_path path;
	struct roce_budget *budget;
	unsigned int mcasts;
	atomic_t visitors;

	struct roce_req req ____cacheline_aligned_in_smp;
	struct roce_resp resp ____cacheline_aligned_in_smp;
	unsigned long resp_flags;
	struct work_struct resp_work;
	struct rcu_head rcu;
};

static inline struct roce_qp *to_rqp(struct srn_qp *qp)
{
	return qp->engine;
}

/* qp.c: transport operations of a QP */
int roce_qp_check(struct srn_dev *dev, struct ib_qp_init_attr *init);
int roce_qp_init(struct srn_qp *qp, struct ib_qp_init_attr *init);
void roce_qp_ready(struct srn_qp *qp);
int roce_qp_modify(struct srn_qp *qp, struct ib_qp_attr *attr, int mask,
		   enum ib_qp_state cur, enum ib_qp_state next);
void roce_qp_query(struct srn_qp *qp, struct ib_qp_attr *attr);
void roce_qp_flush(struct srn_qp *qp);
void roce_qp_stop(struct srn_qp *qp);
void roce_qp_free(struct srn_qp *qp);
void roce_sq_run(struct srn_qp *qp);
/** roce_visit() - keep what is behind rqp->qp beyond the half lock that is held. */
static inline void roce_visit(struct roce_qp *rqp)
{
	atomic_inc(&rqp->visitors);
}

/** roce_leave() - end of roce_visit(); @rqp is kept by RCU or by the caller. */
static inline void roce_leave(struct roce_qp *rqp)
{
	if (atomic_dec_and_test(&rqp->visitors) && READ_ONCE(rqp->dead))
		wake_up_var(&rqp->visitors);
}

/**
 * struct roce_done - completions of one critical section
 * @rqp: visited until the handlers have run, NULL when none is due
 * @cq: CQ to notify once the lock is dropped
 * @notify: references taken for it
 *
 * A kernel consumer stops its CQ between destroying the QP and destroying the
 * CQ, so no handler may run later than the first of the two.
 */
struct roce_done {
	struct roce_qp *rqp;
	struct srn_cq *cq;
	u32 notify;
};

/** roce_done_add() - account the result of srn_cq_push() and its kin; half lock held. */
static inline void roce_done_add(struct roce_qp *rqp, struct roce_done *done,
				 struct srn_cq *cq, int ret)
{
	if (ret > 0) {
		if (!done->rqp)
			roce_visit(rqp);
		done->rqp = rqp;
		done->cq = cq;
		done->notify += ret;
	} else if (ret < 0) {
		srn_qp_fatal(rqp->qp, IB_EVENT_QP_FATAL);
	}
}

/** roce_done_notify() - run the completion handlers; no lock held. */
static inline void roce_done_notify(struct roce_done *done)
{
	if (likely(!done->rqp))
		return;
	for (; done->notify; done->notify--)
		srn_cq_notify(done->cq);
	roce_leave(done->rqp);
}

/* req.c; "lock" is req->lock */
void roce_req_init(struct roce_qp *rqp);
void roce_req_stop(struct roce_qp *rqp);	/* timers; may sleep */
void roce_req_reset(struct roce_qp *rqp, u32 psn);	/* lock held */
void roce_req_run(struct roce_qp *rqp);	/* from sq_run */
/** roce_kick() - run the SQ from softirq; RCU held, no lock. */
void roce_kick(struct roce_qp *rqp);
/** roce_req_pause() - the network is full: stop sending for a moment; lock held. */
void roce_req_pause(struct roce_qp *rqp);
/** roce_req_seek() - continue sending at @psn, which was sent before or is next; lock held. */
void roce_req_seek(struct roce_qp *rqp, u32 psn);
/** roce_req_progress() - something new was acknowledged: counters, timer, window; lock held. */
void roce_req_progress(struct roce_qp *rqp, u32 packets);
/** roce_req_go_back() - resend from psn_una at the price of one retry; lock held. Return: false when none is left and the QP failed. */
bool roce_req_go_back(struct roce_qp *rqp, struct roce_done *done);
/** roce_req_rnr() - wait @usec, then resend from psn_una; lock held. Return: as roce_req_go_back(). */
bool roce_req_rnr(struct roce_qp *rqp, u32 usec, struct roce_done *done);
/** roce_req_retire() - complete what is finished, in order; lock held. */
void roce_req_retire(struct roce_qp *rqp, struct roce_done *done);
/**
 * roce_req_fail() - complete WQE number @index with @status, unfinished ones before it flushed; QP to ERR
 *
 * Lock held.
 */
void roce_req_fail(struct roce_qp *rqp, u32 index, u8 status, u8 verr,
		   struct roce_done *done);
/** roce_req_flush() - complete everything with WR_FLUSH_ERR; lock held. */
void roce_req_flush(struct roce_qp *rqp, struct roce_done *done);

/* comp.c: responses to the requester */
/** roce_comp_rx() - one response packet; RCU, softirq. Takes req->lock. Return: roce_kick() is due. */
bool roce_comp_rx(struct roce_qp *rqp, struct roce_rx *rx);

/* resp.c; "lock" is resp->lock */
void roce_resp_init(struct roce_qp *rqp);
void roce_resp_stop(struct roce_qp *rqp);	/* owner bit for good, timer, work; may sleep */
void roce_resp_reset(struct roce_qp *rqp);	/* forget everything; lock held */
void roce_resp_cancel(struct roce_qp *rqp);	/* drop answers not sent yet; lock held */
/** roce_resp_unanswered() - READs and atomics that wait for their answer; lock held. */
u32 roce_resp_unanswered(struct roce_qp *rqp);
/**
 * roce_resp_set_slots() - replace the slots that remember READs and atomics
 * @slots: the new ones, at least as many as are unanswered; gets the old ones
 *
 * Owner bit and lock held. What is remembered moves along as far as it fits.
 */
void roce_resp_set_slots(struct roce_qp *rqp, struct roce_rsrc **slots,
			 u32 count, u32 max);
/** roce_resp_close() - take the responder's owner bit and let nobody else compete for it; may sleep. */
void roce_resp_close(struct roce_qp *rqp);
/** roce_resp_reopen() - undo roce_resp_close() and send what is due; task. */
void roce_resp_reopen(struct roce_qp *rqp);
void roce_resp_flush(struct roce_qp *rqp, struct roce_done *done);	/* lock held */
/** roce_resp_rx() - one RC request packet; RCU, softirq. Takes the lock. Return: roce_resp_run() is due. */
bool roce_resp_rx(struct roce_qp *rqp, struct roce_rx *rx);
/** roce_resp_run() - send what is due: READ responses, atomic results, the ACK. BH off, RCU, no lock. */
void roce_resp_run(struct roce_qp *rqp);

/* ud.c: UD and GSI */
void roce_ud_run(struct roce_qp *rqp);	/* from sq_run */
/** roce_ud_rx() - one UD packet for one QP; RCU, softirq. Takes resp->lock. */
void roce_ud_rx(struct roce_qp *rqp, struct roce_rx *rx);

/**
 * struct roce_av - what a UD send needs of an AH; freed after a grace period
 * @pd: compared with the QP's
 */
struct roce_av {
	struct ib_pd *pd;
	struct roce_path path;
	u32 number;
	struct rcu_head rcu;
};

/* ah.c */
int roce_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		   struct ib_udata *udata);
int roce_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int roce_destroy_ah(struct ib_ah *ibah, u32 flags);

/* mcast.c */
int roce_attach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 mlid);
int roce_detach_mcast(struct ib_qp *ibqp, union ib_gid *mgid, u16 mlid);
/** roce_mcast_rx() - deliver to every attached QP; RCU, softirq. */
void roce_mcast_rx(struct roce_net *rn, struct roce_rx *rx);
/** roce_mcast_forget() - a UD QP goes while it may still be attached; may sleep. */
void roce_mcast_forget(struct roce_qp *rqp);
/** roce_mcast_exit() - no QP is attached any more: free the groups. */
void roce_mcast_exit(struct roce_dev *rdev);

#endif /* SRN_ROCE_H */
