/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The transport-neutral core: devices, queues, memory.
 *
 * Nothing here knows RoCE or iWARP; transports use these services and are
 * reached through struct srn_transport_ops (transport.h) only. Lock order,
 * outer to inner: srn_dev list mutex, qp->mutex, a transport's half lock, srq->lock,
 * cq->lock. Object lifetime: Documentation/lifetime.md.
 */
#ifndef SOFTRNIC_H
#define SOFTRNIC_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "uapi/softrnic-abi.h"
#include "counters.h"

struct srn_transport_ops;

#define SRN_VERSION "0.1.0"

/* Limits, reported and enforced. Rings hold a power of two of entries. */
enum srn_limits {
	SRN_MAX_QP = 1 << 20,
	SRN_MAX_CQ = 1 << 20,
	SRN_MAX_SRQ = 1 << 20,
	SRN_MAX_PD = 1 << 20,
	SRN_MAX_MR = 1 << 20,
	SRN_MAX_AH = 1 << 20,
	SRN_MAX_CQE = 1 << 20,
	SRN_MAX_WR = 1 << 15,
	SRN_MAX_SRQ_WR = 1 << 15,
	SRN_MAX_RD_ATOMIC = 128,
	SRN_MAX_MCAST_GRP = 1 << 13,
	SRN_MAX_MCAST_QP = 56,
	SRN_MAX_FRWR_PAGES = 1024,
	SRN_GID_TABLE = 1024,
	SRN_SQ_INFLIGHT = 128,	/* WQE snapshots of one SQ */
};

/* vendor_err of error completions: where the fault was found. */
enum srn_vendor_err {
	SRN_VERR_NONE,
	SRN_VERR_WQE,		/* malformed WQE */
	SRN_VERR_LKEY,		/* L_Key, range or access of a local buffer */
	SRN_VERR_MR_GONE,	/* the MR was deregistered under the WQE */
	SRN_VERR_REMOTE,	/* the peer refused */
	SRN_VERR_TIMEOUT,	/* no answer */
	SRN_VERR_RNR,		/* no receive WQE at the peer */
	SRN_VERR_BAD_RESP,	/* the peer broke the protocol */
	SRN_VERR_LENGTH,	/* message longer than the buffer */
	SRN_VERR_AH,		/* unknown address handle */
};

/**
 * struct srn_dev - one RDMA device on one netdev
 * @ibdev: must stay first; freed by the core after a grace period
 * @ops: the transport
 * @tdev: the transport's part of the device
 * @ndev: underlying netdev, held until dealloc_driver
 * @ndev_tracker: reference tracker of @ndev
 * @net: namespace of @ndev; outlives the device (pernet exit waits for it)
 * @list: in the list of devices; under the list mutex in main.c
 * @dead: the netdev went away or the link was deleted; set once, data path
 *        reads it before it touches @net
 * @mrs: L_Key/R_Key index (upper 24 bits) -> struct srn_mr, looked up under RCU
 * @mr_next: cursor of the cyclic allocation in @mrs
 * @pdn_next: PD numbers
 * @num_qp: QPs that exist, at most SRN_MAX_QP
 * @num_pd: PDs that exist, at most SRN_MAX_PD
 * @counters: per-CPU counters
 * @port_state: last port state that was announced
 */
struct srn_dev {
	struct ib_device ibdev;
	const struct srn_transport_ops *ops;
	void *tdev;
	struct net_device *ndev;
	netdevice_tracker ndev_tracker;
	struct net *net;
	struct list_head list;
	bool dead;
	struct xarray mrs;
	u32 mr_next;
	atomic_t pdn_next;
	atomic_t num_qp;
	atomic_t num_pd;
	struct srn_counters __percpu *counters;
	enum ib_port_state port_state;
};

struct srn_ucontext {
	struct ib_ucontext ibuc;
};

struct srn_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

/**
 * struct srn_ring_mem - memory of one queue and its mmap entry
 * @entry: embedded mmap entry; the memory is freed when its last reference goes
 * @ctl: head of the mapping, shared with user space when the queue is
 * @bytes: length of the mapping
 *
 * Pages that are still mapped stay alive by their own references.
 */
struct srn_ring_mem {
	struct rdma_user_mmap_entry entry;
	struct srn_ring_ctl *ctl;
	size_t bytes;
};

/**
 * struct srn_ring - kernel view of one queue
 * @mem: memory, NULL before it is made
 * @count: entries, a power of two
 * @stride: bytes of an entry
 * @idx: the index the kernel owns (cons of SQ/RQ/SRQ, prod of CQ), or with a
 *       kernel consumer the kernel's copy of it
 * @user: entries are shared with user space
 */
struct srn_ring {
	struct srn_ring_mem *mem;
	u32 count;
	u32 stride;
	u32 idx;
	bool user;
};

/**
 * struct srn_cq - completion queue
 * @lock: protects everything below; irq-safe, innermost
 * @ring: @ring.idx is prod
 * @cons: consumer index of a kernel CQ
 * @arm: arming of a kernel CQ, as srn_ring_ctl.arm
 * @overflow: a CQE was lost; no more are written
 * @notifiers: base reference plus one for each event that is being delivered;
 *             destroy waits for zero, since events are raised outside all locks
 * @idle: completed when @notifiers is zero
 * @overflow_work: raises IB_EVENT_CQ_ERR
 */
struct srn_cq {
	struct ib_cq ibcq;
	spinlock_t lock;
	struct srn_ring ring;
	u32 cons;
	u32 arm;
	bool overflow;
	refcount_t notifiers;
	struct completion idle;
	struct work_struct overflow_work;
};

/**
 * struct srn_sge_ref - an SGE checked against its MR
 * @mr: reference on the MR's memory, NULL for a kernel address (local_dma_lkey)
 *
 * Holding it does not keep the pages: every access checks the MR's state.
 */
struct srn_sge_ref {
	u64 addr;
	u32 len;
	u32 lkey;
	struct srn_mr *mr;
};

/** struct srn_cursor - a place in an SGE list */
struct srn_cursor {
	u32 sge;
	u32 off;
};

/**
 * struct srn_wqe - kernel snapshot of one send WQE
 * @sqe: copy of the ring entry; validated; never read from the ring again
 * @len: message bytes (SGEs or inline)
 * @status: IB_WC_SUCCESS, or why the WQE failed; it completes in order
 * @vendor_err: enum srn_vendor_err
 * @priv: engine's (PSN range, progress)
 * @sge: @sqe.num_sge checked SGEs, or inline data
 */
struct srn_wqe {
	struct srn_sqe sqe;
	u32 len;
	u8 status;
	u8 vendor_err;
	u16 rsvd;
	u32 priv[6];
	struct srn_sge_ref sge[];
};

static inline void *srn_wqe_inline(struct srn_wqe *wqe)
{
	return wqe->sge;
}

/**
 * struct srn_sq - send queue
 * @ring: @ring.idx is cons: WQEs retired so far, published to the user
 * @post_lock: serialises kernel posters; irq-safe
 * @prod: producer index of a kernel QP
 * @next: WQEs fetched so far; cons <= next <= prod
 * @wqes: snapshots of [cons, next), @depth of them, @wqe_stride bytes each
 *
 * All but @post_lock and @prod belong to the transport's requester lock.
 */
struct srn_sq {
	struct srn_ring ring;
	spinlock_t post_lock;
	u32 prod;
	u32 next;
	u32 depth;
	u32 wqe_stride;
	void *wqes;
	u32 max_sge;
	u32 max_inline;
	bool sig_all;
};

/**
 * struct srn_rwqe - kernel snapshot of one receive WQE
 * @capacity: sum of the SGE lengths, capped at 2^31
 * @status: IB_WC_SUCCESS, or LOC_PROT_ERR / LOC_QP_OP_ERR when the WQE is bad
 */
struct srn_rwqe {
	u64 wr_id;
	u32 num_sge;
	u32 capacity;
	u8 status;
	u8 vendor_err;
	bool valid;
	struct srn_sge_ref sge[SRN_MAX_SGE];
};

/**
 * struct srn_rq - receive queue of a QP without SRQ
 * @lock: serialises kernel posters; irq-safe
 */
struct srn_rq {
	struct srn_ring ring;
	spinlock_t lock;
	u32 prod;
	u32 max_sge;
};

/**
 * struct srn_srq - shared receive queue
 * @lock: protects @ring.idx (cons), @limit, the ring during a resize; irq-safe
 * @limit: armed limit, 0 when not
 * @error: the user's index was impossible; the SRQ gives no more WQEs
 * @event_work: raises the events in @events
 */
struct srn_srq {
	struct ib_srq ibsrq;
	spinlock_t lock;
	struct srn_ring ring;
	u32 prod;
	u32 max_wr;
	u32 max_sge;
	u32 srqn;
	u32 limit;
	bool error;
	unsigned long events;
	struct work_struct event_work;
};

/* srn_qp.sq_flags: who runs the send queue. */
enum srn_sq_flag {
	SRN_SQ_OWNER,		/* somebody is in ops->sq_run() */
	SRN_SQ_PENDING,		/* the owner shall look once more */
	SRN_SQ_CLOSED,		/* modify or destroy has the OWNER bit, or waits for it */
};

/**
 * struct srn_qp - the verbs half of a QP; freed by ib_core without a grace period
 * @engine: the transport's part, found from the wire by QPN, freed after a
 *          grace period. The engine reaches back here only under one of its half
 *          locks and while it is not dead.
 * @mutex: serialises modify, query and destroy
 * @state: written under @mutex (or by srn_qp_fatal()), read with READ_ONCE
 * @attr: what query_qp returns; under @mutex
 * @sq_flags: enum srn_sq_flag bits
 * @sq_work: runs the send queue when the poster cannot
 * @events: bit per enum ib_event_type to raise
 * @event_work: raises @events and, whenever the state is ERR, calls
 *              ops->qp_flush(): after srn_qp_fatal() and for what a kernel
 *              consumer posts to the receive queue of a QP in error
 */
struct srn_qp {
	struct ib_qp ibqp;
	struct srn_dev *dev;
	void *engine;
	u32 qpn;
	bool user;
	enum ib_qp_state state;
	struct mutex mutex;
	struct ib_qp_attr attr;
	struct ib_qp_cap cap;

	struct srn_sq sq ____cacheline_aligned_in_smp;
	unsigned long sq_flags;
	struct work_struct sq_work;

	struct srn_rq rq ____cacheline_aligned_in_smp;
	struct srn_srq *srq;
	struct srn_cq *send_cq;
	struct srn_cq *recv_cq;

	unsigned long events;
	struct work_struct event_work;
};

/**
 * struct srn_ah - address handle
 * @number: what a UD WQE names it by; looked up by the transport
 * @av: the transport's address vector
 */
struct srn_ah {
	struct ib_ah ibah;
	u32 number;
	void *av;
};

enum srn_mr_state {
	SRN_MR_FREE,	/* FRWR before REG_MR or after an invalidate */
	SRN_MR_VALID,
	SRN_MR_DEAD,	/* being deregistered */
};

enum srn_mr_kind {
	SRN_MR_USER,
	SRN_MR_DMA,	/* all kernel memory; address is a kernel pointer */
	SRN_MR_FRWR,
};

/**
 * struct srn_mr - memory region; ours, freed by kfree_rcu
 * @ref: memory of this struct; held by WQEs, messages in progress, the verbs object
 * @lock: read side: one access to the pages (BH off, never sleeps); write side:
 *        every change of state, key, range or pages. So once a state change
 *        has returned no access of before is still running, and nothing that waits
 *        for a peer can hold up a deregistration.
 * @state: enum srn_mr_state
 * @key: L_Key = R_Key; upper 24 bits index in dev->mrs
 * @pd: compared, never followed, on the data path
 * @access: enum ib_access_flags
 * @iova: first valid address
 * @length: bytes
 * @page_shift: of the entries of @pages
 * @first_off: offset of @iova in the first page
 * @pages: kernel address of each page, 8 bytes a page
 * @npages: entries in use
 * @max_pages: entries allocated (FRWR)
 * @staged: FRWR: what map_mr_sg() gathered for the next REG_MR; consumers map
 *          while the registration of before is still in force
 * @nstaged: entries in use of @staged
 * @umem: pinned user memory
 */
struct srn_mr {
	struct ib_mr ibmr;
	struct srn_dev *dev;
	struct kref ref;
	rwlock_t lock;
	enum srn_mr_kind kind;
	enum srn_mr_state state;
	u32 index;
	u32 key;
	struct ib_pd *pd;
	int access;
	u64 iova;
	u64 length;
	u8 page_shift;
	u32 first_off;
	u32 npages;
	u32 max_pages;
	u64 *pages;
	u64 *staged;
	u32 nstaged;
	struct ib_umem *umem;
	struct rcu_head rcu;
};

static inline struct srn_dev *to_sdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct srn_dev, ibdev);
}

static inline struct srn_pd *to_spd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct srn_pd, ibpd);
}

static inline struct srn_cq *to_scq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct srn_cq, ibcq);
}

static inline struct srn_srq *to_ssrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct srn_srq, ibsrq);
}

static inline struct srn_qp *to_sqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct srn_qp, ibqp);
}

static inline struct srn_mr *to_smr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct srn_mr, ibmr);
}

static inline struct srn_ah *to_sah(struct ib_ah *ibah)
{
	return container_of(ibah, struct srn_ah, ibah);
}

static inline u32 srn_ah_number(struct ib_ah *ibah)
{
	return to_sah(ibah)->number;
}

extern struct workqueue_struct *srn_wq;	/* main.c; per CPU, mem-reclaim */

/* main.c */
/**
 * srn_dev_gone() - the netdev of @dev or the link goes: stop the data path
 *
 * May sleep. Sets dev->dead; unregistration follows.
 */
void srn_dev_gone(struct srn_dev *dev);
/** srn_dev_unlist() - take @dev off the list of devices; may sleep. From dealloc_driver. */
void srn_dev_unlist(struct srn_dev *dev);

/* dev.c */
struct srn_dev *srn_dev_alloc(struct net_device *ndev,
			      const struct srn_transport_ops *ops);
int srn_dev_register(struct srn_dev *dev, const char *name);
/** srn_port_event() - announce a change of port state once; any context that may sleep. */
void srn_port_event(struct srn_dev *dev);
enum ib_port_state srn_port_state(struct srn_dev *dev);

/* ctx.c: ucontext, PD, mmap */
int srn_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
void srn_dealloc_ucontext(struct ib_ucontext *ibuc);
void srn_disassociate_ucontext(struct ib_ucontext *ibuc);
int srn_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int srn_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int srn_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
void srn_mmap_free(struct rdma_user_mmap_entry *entry);

/* ring.c */
/**
 * srn_ring_init() - make a queue of at least @count entries of @stride bytes
 * @ibuc: the owner's context, or NULL for a kernel queue
 * @info: filled for the response when @ibuc is set
 *
 * Task, may sleep. Return: 0, -ENOMEM.
 */
int srn_ring_init(struct srn_ring *ring, struct ib_ucontext *ibuc, u32 count,
		  u32 stride, struct srn_ring_info *info);
/** srn_ring_fini() - give the queue's memory back; nobody uses the ring any more. */
void srn_ring_fini(struct srn_ring *ring);

static inline void *srn_ring_entry(const struct srn_ring *ring, u32 index)
{
	return (u8 *)ring->mem->ctl + SRN_RING_ENTRIES +
	       (size_t)(index & (ring->count - 1)) * ring->stride;
}

/** srn_ring_prod() - producer's index; pairs with its store-release. */
static inline u32 srn_ring_prod(const struct srn_ring *ring)
{
	return smp_load_acquire(&ring->mem->ctl->prod);
}

/** srn_ring_publish_cons() - tell the producer how far the consumer is. */
static inline void srn_ring_publish_cons(struct srn_ring *ring)
{
	smp_store_release(&ring->mem->ctl->cons, ring->idx);
}

/* cq.c */
int srn_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct ib_udata *udata);
int srn_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int srn_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata);
int srn_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc);
int srn_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
/**
 * srn_cq_push() - write one completion
 * @qp: wc->qp of a kernel CQ; a user CQ ignores it
 * @solicited: the completion may wake a CQ armed for solicited events; errors always do
 *
 * Any context. The caller holds what keeps the CQ: a half lock of a live QP.
 * Return: 1 when the caller must call srn_cq_notify() after it has dropped its locks
 * (a reference was taken for it), 0, or -EOVERFLOW when the CQ is full: the CQ is in
 * error, the caller moves its QP to error.
 */
int srn_cq_push(struct srn_cq *cq, struct ib_qp *qp, const struct srn_cqe *cqe,
		bool solicited);
/** srn_cq_notify() - run the completion handler and drop the reference of srn_cq_push(). */
void srn_cq_notify(struct srn_cq *cq);
/**
 * srn_cq_merge() - fold the result of one more push on @cq into @ret
 *
 * A consumer may arm again between two pushes of one batch; one notification
 * after the batch serves both, so the second reference is dropped.
 * Return: 1 when srn_cq_notify() is due, else -EOVERFLOW or 0. An overflow
 * that 1 hides is reported again by every later push.
 */
static inline int srn_cq_merge(struct srn_cq *cq, int ret, int pushed)
{
	if (ret != 1)
		return pushed ? pushed : ret;
	if (pushed == 1)
		refcount_dec(&cq->notifiers);
	return ret;
}

/* srq.c */
/** srn_srq_event() - raise @event from the SRQ's work item; any context. */
void srn_srq_event(struct srn_srq *srq, enum ib_event_type event);
int srn_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		   struct ib_udata *udata);
int srn_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata);
int srn_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int srn_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int srn_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);

/* rq.c: receive WQEs, of a QP or of its SRQ */
int srn_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr);
/**
 * srn_rqe_post() - copy kernel receive WRs into a ring and publish them
 * @prod: the poster's index
 *
 * The poster's lock is held. Return: 0, -EINVAL or -ENOMEM with @bad_wr set.
 */
int srn_rqe_post(struct srn_ring *ring, u32 *prod, u32 max_sge,
		 const struct ib_recv_wr *wr, const struct ib_recv_wr **bad_wr);
/**
 * srn_rq_take() - copy the next receive WQE into @rwqe
 *
 * Caller holds the responder lock. SGEs are checked against the PD of the RQ
 * or SRQ and need LOCAL_WRITE; a bad WQE is returned with a status.
 * Return: 0, -ENOENT when there is none, -EPROTO when the user's index is impossible.
 */
int srn_rq_take(struct srn_qp *qp, struct srn_rwqe *rwqe);
/** srn_rwqe_put() - drop the MR references of @rwqe and mark it invalid. */
void srn_rwqe_put(struct srn_rwqe *rwqe);
/**
 * srn_rq_flush() - complete every posted receive WQE with WR_FLUSH_ERR
 *
 * Caller holds the responder lock. Nothing with an SRQ. Return: as srn_cq_push().
 */
int srn_rq_flush(struct srn_qp *qp);

/* sq.c: send WQEs */
int srn_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr);
/**
 * srn_sq_kick() - run the send queue now, or make its owner run it again
 *
 * Task or softirq; with interrupts off the work item does it. At most one
 * caller runs ops->sq_run(); the others leave a mark and return. The caller
 * keeps @qp until this returns: ops->qp_stop() waits for an engine's kicks.
 */
void srn_sq_kick(struct srn_qp *qp);
/** srn_sq_work() - function of qp->sq_work. */
void srn_sq_work(struct work_struct *work);
/** srn_sq_close() - take the owner bit and let nobody else compete for it; may sleep, qp->mutex held. */
void srn_sq_close(struct srn_qp *qp);
/** srn_sq_reopen() - undo srn_sq_close() and run what was posted meanwhile; task. */
void srn_sq_reopen(struct srn_qp *qp);
/**
 * srn_sq_fetch() - snapshot the next posted WQE
 *
 * Caller holds the requester lock. The WQE's length, opcode and SGEs are
 * checked; a bad one is returned with a status and takes its place in order.
 * Return: the WQE; NULL when there is none or the snapshots are used up;
 * ERR_PTR(-EPROTO) when the user's index is impossible.
 */
struct srn_wqe *srn_sq_fetch(struct srn_qp *qp);
/** srn_sq_wqe() - the snapshot of WQE number @index, cons <= @index < next. */
static inline struct srn_wqe *srn_sq_wqe(struct srn_qp *qp, u32 index)
{
	return qp->sq.wqes + (size_t)(index % qp->sq.depth) * qp->sq.wqe_stride;
}
/**
 * srn_sq_retire() - complete the oldest WQE: CQE if signalled or failed, MRs, cons
 * @byte_len: for READ and atomics
 *
 * Caller holds the requester lock. Return: as srn_cq_push().
 */
int srn_sq_retire(struct srn_qp *qp, u32 byte_len);
/**
 * srn_sq_flush() - complete every fetched and posted WQE with WR_FLUSH_ERR, in order
 *
 * Caller holds the requester lock. Return: as srn_cq_push().
 */
int srn_sq_flush(struct srn_qp *qp);
/** srn_sq_reset() - drop every WQE without a completion (RESET, destroy); requester lock held. */
void srn_sq_reset(struct srn_qp *qp);
/** srn_rq_reset() - the same for the receive queue; responder lock held. */
void srn_rq_reset(struct srn_qp *qp);

/* qp.c */
int srn_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata);
int srn_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
int srn_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
int srn_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
/**
 * srn_qp_fatal() - move a QP to ERR from the data path
 * @event: enum ib_event_type to raise, or -1
 *
 * Any context, under a half lock of the live engine. The state changes at
 * once; flush and event follow from a work item.
 */
void srn_qp_fatal(struct srn_qp *qp, int event);
/** srn_qp_event() - raise an asynchronous event from a work item; under a half lock. */
void srn_qp_event(struct srn_qp *qp, enum ib_event_type event);
/** srn_qpn_find() - engine of a QPN, or NULL; caller holds rcu_read_lock(). */
void *srn_qpn_find(u32 qpn);
int srn_qpn_init(void);
void srn_qpn_exit(void);

/* mr.c */
struct ib_mr *srn_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *srn_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 iova, int access, struct ib_udata *udata);
struct ib_mr *srn_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				u64 length, u64 iova, int access,
				struct ib_pd *pd, struct ib_udata *udata);
int srn_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
struct ib_mr *srn_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			   u32 max_num_sg);
int srn_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		  unsigned int *offset);
/**
 * srn_mr_get() - find a key and take a reference on the MR's memory
 *
 * Any context. Key, PD, state, access bits and [va, va + len) without wrap are checked.
 * Return: the MR or NULL.
 */
struct srn_mr *srn_mr_get(struct srn_dev *dev, struct ib_pd *pd, u32 key,
			  int access, u64 va, u64 len);
void srn_mr_put(struct srn_mr *mr);
/**
 * srn_mr_read() - copy @len bytes at @va out of an MR
 * @key: the key the access was granted for
 * @access: bits that are still needed, 0 for a local read
 *
 * Softirq or BH off. State, key, rights and range are checked anew, since the
 * MR may have been invalidated or deregistered since srn_mr_get().
 * Return: 0 or -EFAULT with nothing copied.
 */
int srn_mr_read(struct srn_mr *mr, u32 key, int access, u64 va, void *dst,
		size_t len);
/** srn_mr_write() - copy into an MR; as srn_mr_read(). */
int srn_mr_write(struct srn_mr *mr, u32 key, int access, u64 va,
		 const void *src, size_t len);
/** srn_mr_atomic() - CAS or FADD on an aligned u64; @orig gets the original value, host order. Return: 0 or -EFAULT. */
int srn_mr_atomic(struct srn_mr *mr, u32 key, u64 va, bool cas, u64 compare,
		  u64 swap_add, u64 *orig);
/** srn_mr_reg() - execute REG_MR: FREE -> VALID. Any context. Return: 0 or -EINVAL. */
int srn_mr_reg(struct srn_dev *dev, struct ib_pd *pd, const struct srn_sqe *sqe);
/** srn_mr_invalidate() - LOCAL_INV or the R_Key of a SEND_INV: VALID -> FREE. Any context. Return: 0 or -EINVAL. */
int srn_mr_invalidate(struct srn_dev *dev, struct ib_pd *pd, u32 key);

/* sge.c */
/**
 * srn_sge_bind() - check @n SGEs and take MR references
 * @kernel: local_dma_lkey is allowed
 * @total: sum of lengths, capped check against 2^31 is the caller's
 *
 * Any context. Return: 0, or -EFAULT with nothing held.
 */
int srn_sge_bind(struct srn_dev *dev, struct ib_pd *pd, bool kernel,
		 const struct srn_sge *in, u32 n, int access,
		 struct srn_sge_ref *out, u64 *total);
void srn_sge_put(struct srn_sge_ref *sge, u32 n);
/** srn_cursor_at() - the place @off bytes into the list. */
struct srn_cursor srn_cursor_at(const struct srn_sge_ref *sge, u32 n, u32 off);
/** srn_sge_gather() - copy @len bytes out of the list at @cur and move it. Return: 0 or -EFAULT (MR gone, list too short). */
int srn_sge_gather(const struct srn_sge_ref *sge, u32 n, struct srn_cursor *cur,
		   void *dst, u32 len);
/** srn_sge_scatter() - copy @len bytes into the list at @cur and move it. Return: 0 or -EFAULT. */
int srn_sge_scatter(const struct srn_sge_ref *sge, u32 n,
		    struct srn_cursor *cur, const void *src, u32 len);

#endif /* SOFTRNIC_H */
