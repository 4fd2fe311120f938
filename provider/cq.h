/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the two ways to poll a CQ share.
 */
#ifndef SOFTRNIC_CQ_H
#define SOFTRNIC_CQ_H

#include "softrnic.h"

static inline void srn_cq_lock(struct srn_cq *cq)
{
	if (!cq->single)
		pthread_spin_lock(&cq->lock);
}

static inline void srn_cq_unlock(struct srn_cq *cq)
{
	if (!cq->single)
		pthread_spin_unlock(&cq->lock);
}

/* GRH and WITH_IMM have the same bits in both, WITH_INV has not. */
static inline unsigned int srn_wc_flags(const struct srn_cqe *cqe)
{
	unsigned int flags = cqe->wc_flags & (SRN_WC_GRH | SRN_WC_WITH_IMM);

	static_assert(SRN_WC_GRH == IBV_WC_GRH, "same bit");
	static_assert(SRN_WC_WITH_IMM == IBV_WC_WITH_IMM, "same bit");

	if (cqe->wc_flags & SRN_WC_WITH_INV)
		flags |= IBV_WC_WITH_INV;
	return flags;
}

#endif /* SOFTRNIC_CQ_H */
