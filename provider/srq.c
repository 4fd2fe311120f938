// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * softrnic provider: shared receive queues.
 */
#include <stdlib.h>

#include "cmd.h"
#include "softrnic.h"

static size_t rqe_bytes(uint32_t max_sge)
{
	return SRN_RQE_BYTES + max_sge * sizeof(struct srn_sge);
}

struct ibv_srq *srn_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	struct ibv_create_srq cmd;
	struct srn_cmd_create_srq_resp resp = {};
	struct srn_srq *srq;
	int ret;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;

	ret = ibv_cmd_create_srq(pd, &srq->vsrq.srq, attr, &cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_free;

	ret = srn_ring_map_producer(&srq->rq.ring, pd->context->cmd_fd,
				    &resp.drv_payload.srq, attr->attr.max_wr,
				    rqe_bytes(attr->attr.max_sge));
	if (ret)
		goto err_destroy;

	srq->rq.max_sge = attr->attr.max_sge;
	pthread_spin_init(&srq->rq.lock, PTHREAD_PROCESS_PRIVATE);
	return &srq->vsrq.srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_free:
	free(srq);
	errno = ret;
	return NULL;
}

/*
 * A resize: under the lock, since the kernel copies what is posted and goes on
 * with the new ring. If that cannot be mapped, nothing can be posted any more.
 */
static int resize_srq(struct srn_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_srq *ibsrq = &srq->vsrq.srq;
	struct srn_uresp_srq resp = {};
	struct srn_cmd_modify_srq cmd = {
		.drv_payload.resp_addr = (uintptr_t)&resp,
	};
	struct srn_ring old, ring;
	int ret;

	pthread_spin_lock(&srq->rq.lock);
	old = srq->rq.ring;
	ret = ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd.ibv_cmd, sizeof(cmd));
	if (ret)
		goto out;

	ret = srn_ring_map_producer(&ring, ibsrq->context->cmd_fd, &resp.srq,
				    resp.srq.count,
				    rqe_bytes(srq->rq.max_sge));
	if (ret)
		srq->rq.ring.limit = 0;
	else
		srq->rq.ring = ring;
out:
	pthread_spin_unlock(&srq->rq.lock);

	if (!ret)
		srn_ring_unmap(&old);
	return ret;
}

int srn_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct srn_cmd_modify_srq cmd = {};

	if (mask & IBV_SRQ_MAX_WR)
		return resize_srq(to_srn_srq(ibsrq), attr, mask);

	return ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd.ibv_cmd, sizeof(cmd));
}

int srn_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int srn_destroy_srq(struct ibv_srq *ibsrq)
{
	struct srn_srq *srq = to_srn_srq(ibsrq);
	int ret;

	ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;

	srn_ring_unmap(&srq->rq.ring);
	pthread_spin_destroy(&srq->rq.lock);
	free(srq);
	return 0;
}
