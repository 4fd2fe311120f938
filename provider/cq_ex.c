// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * softrnic provider: the extended poll. The lock is held from start_poll to
 * end_poll, and the fields are read where the kernel wrote them.
 */
#include "cq.h"

/* Go to the completion at idx, if there is one. */
static int ex_enter(struct srn_cq *cq)
{
	const struct srn_cqe *cqe;

	if (cq->ring.idx == cq->ring.seen && !srn_ring_avail(&cq->ring))
		return ENOENT;

	cqe = srn_ring_entry(&cq->ring, cq->ring.idx);
	cq->vcq.cq_ex.wr_id = cqe->wr_id;
	cq->vcq.cq_ex.status = cqe->status;
	cq->cur = cqe;
	return 0;
}

/* Done with the current one: its place is free from here on. */
static void ex_leave(struct srn_cq *cq)
{
	if (!cq->cur)
		return;
	cq->cur = NULL;
	cq->ring.idx++;
	srn_ring_publish_cons(&cq->ring);
}

static int ex_start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct srn_cq *cq = to_srn_cq_ex(ibcq);
	int ret;

	if (attr->comp_mask)
		return EINVAL;

	srn_cq_lock(cq);
	ret = ex_enter(cq);
	if (ret)
		srn_cq_unlock(cq);
	return ret;
}

static int ex_next_poll(struct ibv_cq_ex *ibcq)
{
	struct srn_cq *cq = to_srn_cq_ex(ibcq);

	ex_leave(cq);
	return ex_enter(cq);
}

static void ex_end_poll(struct ibv_cq_ex *ibcq)
{
	struct srn_cq *cq = to_srn_cq_ex(ibcq);

	ex_leave(cq);
	srn_cq_unlock(cq);
}

static enum ibv_wc_opcode ex_read_opcode(struct ibv_cq_ex *ibcq)
{
	return to_srn_cq_ex(ibcq)->cur->opcode;
}

static uint32_t ex_read_vendor_err(struct ibv_cq_ex *ibcq)
{
	return to_srn_cq_ex(ibcq)->cur->vendor_err;
}

static uint32_t ex_read_byte_len(struct ibv_cq_ex *ibcq)
{
	return to_srn_cq_ex(ibcq)->cur->byte_len;
}

static __be32 ex_read_imm_data(struct ibv_cq_ex *ibcq)
{
	return to_srn_cq_ex(ibcq)->cur->imm;
}

static uint32_t ex_read_qp_num(struct ibv_cq_ex *ibcq)
{
	return to_srn_cq_ex(ibcq)->cur->qp_num;
}

static uint32_t ex_read_src_qp(struct ibv_cq_ex *ibcq)
{
	return to_srn_cq_ex(ibcq)->cur->src_qp;
}

static unsigned int ex_read_wc_flags(struct ibv_cq_ex *ibcq)
{
	return srn_wc_flags(to_srn_cq_ex(ibcq)->cur);
}

/* There are no LIDs on Ethernet. */
static uint32_t ex_read_slid(struct ibv_cq_ex *ibcq)
{
	return 0;
}

static uint8_t ex_read_sl(struct ibv_cq_ex *ibcq)
{
	return to_srn_cq_ex(ibcq)->cur->sl;
}

static uint8_t ex_read_dlid_path_bits(struct ibv_cq_ex *ibcq)
{
	return 0;
}

void srn_cq_set_ex_ops(struct srn_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = ex_start_poll;
	ex->next_poll = ex_next_poll;
	ex->end_poll = ex_end_poll;
	ex->read_opcode = ex_read_opcode;
	ex->read_vendor_err = ex_read_vendor_err;
	ex->read_byte_len = ex_read_byte_len;
	ex->read_imm_data = ex_read_imm_data;
	ex->read_qp_num = ex_read_qp_num;
	ex->read_src_qp = ex_read_src_qp;
	ex->read_wc_flags = ex_read_wc_flags;
	ex->read_slid = ex_read_slid;
	ex->read_sl = ex_read_sl;
	ex->read_dlid_path_bits = ex_read_dlid_path_bits;
}
