// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * softrnic provider: doorbells. One is a post command without work requests:
 * the work is in the ring already.
 */
#include <unistd.h>

#include "softrnic.h"

/* Both commands have one layout, so that one buffer serves. */
static_assert(sizeof(struct ibv_post_send) == sizeof(struct ibv_post_recv),
	      "post commands differ");
static_assert(offsetof(struct ibv_post_send, wqe_size) ==
		      offsetof(struct ibv_post_recv, wqe_size),
	      "post commands differ");

/* The kernel allocates wqe_size bytes and insists on the size of its struct. */
static int kick_by_write(struct ibv_qp *ibqp, unsigned int command,
			 size_t wqe_size)
{
	struct ib_uverbs_post_send_resp resp;
	struct ibv_post_send cmd = {
		.hdr = {
			.command = command,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(resp) / 4,
		},
		.core_payload = {
			.response = (uintptr_t)&resp,
			.qp_handle = ibqp->handle,
			.wqe_size = wqe_size,
		},
	};

	if (write(ibqp->context->cmd_fd, &cmd, sizeof(cmd)) != sizeof(cmd))
		return errno;
	return 0;
}

/*
 * write() is the shorter way through the kernel, but is refused with EACCES
 * once the process has changed its credentials. The ioctl is not.
 */
static bool may_write(struct srn_context *ctx)
{
	return !atomic_load_explicit(&ctx->no_write, memory_order_relaxed);
}

static void dont_write(struct srn_context *ctx)
{
	atomic_store_explicit(&ctx->no_write, true, memory_order_relaxed);
}

int srn_kick_sq(struct srn_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct srn_context *ctx = to_srn_ctx(ibqp->context);
	struct ibv_send_wr *bad;
	int ret;

	if (may_write(ctx)) {
		ret = kick_by_write(ibqp, IB_USER_VERBS_CMD_POST_SEND,
				    sizeof(struct ib_uverbs_send_wr));
		if (ret != EACCES)
			return ret;
		dont_write(ctx);
	}
	return ibv_cmd_post_send(ibqp, NULL, &bad);
}

int srn_kick_rq(struct srn_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct srn_context *ctx = to_srn_ctx(ibqp->context);
	struct ibv_recv_wr *bad;
	int ret;

	if (may_write(ctx)) {
		ret = kick_by_write(ibqp, IB_USER_VERBS_CMD_POST_RECV,
				    sizeof(struct ib_uverbs_recv_wr));
		if (ret != EACCES)
			return ret;
		dont_write(ctx);
	}
	return ibv_cmd_post_recv(ibqp, NULL, &bad);
}
