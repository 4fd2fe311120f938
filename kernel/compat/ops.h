/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Verbs operations whose type differs between kernels, as thin wrappers of
 * ours. Included by dev.c only.
 */
#ifndef SRN_COMPAT_OPS_H
#define SRN_COMPAT_OPS_H

#include "../softrnic.h"

/* 6.11: create_cq gets the attributes of the call, none from the kernel. */
#if HAVE_CREATE_CQ_BUNDLE
static int srn_op_create_cq(struct ib_cq *ibcq,
			    const struct ib_cq_init_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	return srn_create_cq(ibcq, attr, attrs ? &attrs->driver_udata : NULL);
}
#else
#define srn_op_create_cq srn_create_cq
#endif

/* 7.1: resize_cq became resize_user_cq with an unsigned count. */
#if HAVE_RESIZE_USER_CQ
#define srn_op_resize_cq srn_resize_cq
#else
#define resize_user_cq resize_cq
static int srn_op_resize_cq(struct ib_cq *ibcq, int cqe,
			    struct ib_udata *udata)
{
	return cqe < 0 ? -EINVAL : srn_resize_cq(ibcq, cqe, udata);
}
#endif

/* 6.17: reg_user_mr may be given a DMA handle, which is of no use to us. */
#if HAVE_IB_DMAH
static struct ib_mr *srn_op_reg_user_mr(struct ib_pd *ibpd, u64 start,
					u64 length, u64 iova, int access,
					struct ib_dmah *dmah,
					struct ib_udata *udata)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return srn_reg_user_mr(ibpd, start, length, iova, access, udata);
}
#else
#define srn_op_reg_user_mr srn_reg_user_mr
#endif

/* 7.1: a driver may say that it treats driver data by the rules. */
#if HAVE_ROBUST_UDATA
#define SRN_OP_ROBUST_UDATA .uverbs_robust_udata = 1,
#else
#define SRN_OP_ROBUST_UDATA
#endif

#endif /* SRN_COMPAT_OPS_H */
