/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Verbs commands with their driver part, from softrnic-abi.h.
 */
#ifndef SOFTRNIC_CMD_H
#define SOFTRNIC_CMD_H

#include <infiniband/driver.h>

#include "softrnic-abi.h"

/* Our structs have no tagless twin: the driver part is drv_payload only. */
#define _STRUCT_srn_uresp_ctx
#define _STRUCT_srn_uresp_pd
#define _STRUCT_srn_uresp_cq
#define _STRUCT_srn_uresp_qp
#define _STRUCT_srn_uresp_srq
#define _STRUCT_srn_ureq_modify_srq
#define _STRUCT_srn_uresp_ah

DECLARE_DRV_CMD(srn_cmd_get_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, srn_uresp_ctx);
DECLARE_DRV_CMD(srn_cmd_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, srn_uresp_pd);
DECLARE_DRV_CMD(srn_cmd_create_cq, IB_USER_VERBS_CMD_CREATE_CQ,
		empty, srn_uresp_cq);
DECLARE_DRV_CMD(srn_cmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		empty, srn_uresp_cq);
DECLARE_DRV_CMD(srn_cmd_create_qp, IB_USER_VERBS_CMD_CREATE_QP,
		empty, srn_uresp_qp);
DECLARE_DRV_CMD(srn_cmd_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ,
		empty, srn_uresp_srq);
DECLARE_DRV_CMD(srn_cmd_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		srn_ureq_modify_srq, empty);
DECLARE_DRV_CMD(srn_cmd_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, srn_uresp_ah);

#endif /* SOFTRNIC_CMD_H */
