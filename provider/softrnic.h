/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * softrnic provider: the objects behind the verbs handles.
 *
 * An object starts with what libibverbs knows it by, so that the conversions
 * below are all there is to find it again.
 */
#ifndef SOFTRNIC_H
#define SOFTRNIC_H

#include <pthread.h>
#include <stdatomic.h>

#include <infiniband/driver.h>

#include "ring.h"

/**
 * struct srn_context - one open device
 * @no_write: write() on the command fd was refused since the process changed
 *            its credentials; doorbells take the ioctl
 */
struct srn_context {
	struct verbs_context vctx;
	atomic_bool no_write;
};

/**
 * struct srn_cq - completion queue
 * @lock: @ring and @cur; held from start_poll to end_poll
 * @arm_lock: keeps @ring.ctl while it is armed; its own lock, since a CQ may
 *            be armed between start_poll and end_poll
 * @cur: completion that the extended poll is at, NULL for none
 * @single: the user promised to use it from one thread at a time; no @lock
 */
struct srn_cq {
	struct verbs_cq vcq;
	pthread_spinlock_t lock;
	pthread_spinlock_t arm_lock;
	struct srn_ring ring;
	const struct srn_cqe *cur;
	bool single;
};

/**
 * struct srn_rq - receive queue of a QP, or an SRQ
 * @lock: @ring
 * @max_sge: granted
 */
struct srn_rq {
	pthread_spinlock_t lock;
	struct srn_ring ring;
	uint32_t max_sge;
};

struct srn_srq {
	struct verbs_srq vsrq;
	struct srn_rq rq;
};

/**
 * struct srn_qp - queue pair
 * @ops: opcodes that may be posted, bit n for enum ibv_wr_opcode n; the bits
 *       of enum ibv_qp_create_send_ops_flags are the same
 * @sq_lock: everything below but @rq; held from wr_start to wr_complete
 * @max_send_sge: granted
 * @max_inline: granted
 * @sqe: extended API: the WR being built, NULL for none
 * @batch: extended API: sq.idx at wr_start
 * @err: extended API: first error of the batch
 * @addressed: extended API: a UD address was set
 */
struct srn_qp {
	struct verbs_qp vqp;
	uint32_t ops;
	pthread_spinlock_t sq_lock;
	struct srn_ring sq;
	uint32_t max_send_sge;
	uint32_t max_inline;
	struct srn_sqe *sqe;
	uint32_t batch;
	int err;
	bool addressed;
	struct srn_rq rq;
};

/**
 * struct srn_ah - address handle
 * @ah: the number a UD send names it by
 */
struct srn_ah {
	struct ibv_ah ibah;
	uint32_t ah;
};

static inline struct srn_context *to_srn_ctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct srn_context, vctx.context);
}

static inline struct srn_cq *to_srn_cq(struct ibv_cq *cq)
{
	return container_of(cq, struct srn_cq, vcq.cq);
}

static inline struct srn_cq *to_srn_cq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct srn_cq, vcq.cq_ex);
}

static inline struct srn_qp *to_srn_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct srn_qp, vqp.qp);
}

static inline struct srn_qp *to_srn_qp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct srn_qp, vqp.qp_ex);
}

static inline struct srn_srq *to_srn_srq(struct ibv_srq *srq)
{
	return container_of(srq, struct srn_srq, vsrq.srq);
}

static inline struct srn_ah *to_srn_ah(struct ibv_ah *ah)
{
	return container_of(ah, struct srn_ah, ibah);
}

/* verbs.c: device, PD, MR, AH, multicast */
int srn_query_device_ex(struct ibv_context *context,
			const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t attr_size);
int srn_query_port(struct ibv_context *context, uint8_t port,
		   struct ibv_port_attr *attr);
struct ibv_pd *srn_alloc_pd(struct ibv_context *context);
int srn_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *srn_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  uint64_t iova, int access);
int srn_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access);
int srn_dereg_mr(struct verbs_mr *vmr);
struct ibv_ah *srn_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int srn_destroy_ah(struct ibv_ah *ah);

/* cq.c */
struct ibv_cq *srn_create_cq(struct ibv_context *context, int cqe,
			     struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *srn_create_cq_ex(struct ibv_context *context,
				   struct ibv_cq_init_attr_ex *attr);
int srn_resize_cq(struct ibv_cq *ibcq, int cqe);
int srn_destroy_cq(struct ibv_cq *ibcq);
int srn_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);
int srn_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
/** srn_cq_forget_qp() - drop what a QP that was reset has completed before */
void srn_cq_forget_qp(struct ibv_cq *ibcq, uint32_t qp_num);
/* cq_ex.c */
void srn_cq_set_ex_ops(struct srn_cq *cq);

/* srq.c; libibverbs makes ibv_create_srq() of ibv_create_srq_ex() for a plain SRQ */
struct ibv_srq *srn_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr);
int srn_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask);
int srn_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int srn_destroy_srq(struct ibv_srq *ibsrq);

/* qp.c */
struct ibv_qp *srn_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *srn_create_qp_ex(struct ibv_context *context,
				struct ibv_qp_init_attr_ex *attr);
int srn_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init);
int srn_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask);
int srn_destroy_qp(struct ibv_qp *ibqp);

/* post.c */
int srn_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad);
int srn_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad);
int srn_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad);

/* wr.c */
void srn_qp_set_wr_ops(struct srn_qp *qp);

/* doorbell.c */
/** srn_kick_sq() - make the kernel look at the send queue. Return: 0 or an errno. */
int srn_kick_sq(struct srn_qp *qp);
/** srn_kick_rq() - the same for the receive queue of a QP in error. */
int srn_kick_rq(struct srn_qp *qp);

#endif /* SOFTRNIC_H */
