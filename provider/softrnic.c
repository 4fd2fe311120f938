// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * softrnic provider: matching a device and opening it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "softrnic.h"

static void srn_free_context(struct ibv_context *context)
{
	struct srn_context *ctx = to_srn_ctx(context);

	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

/* Sorted. What is not here is answered with EOPNOTSUPP by libibverbs. */
static const struct verbs_context_ops srn_context_ops = {
	.alloc_pd = srn_alloc_pd,
	.attach_mcast = ibv_cmd_attach_mcast,
	.create_ah = srn_create_ah,
	.create_cq = srn_create_cq,
	.create_cq_ex = srn_create_cq_ex,
	.create_qp = srn_create_qp,
	.create_qp_ex = srn_create_qp_ex,
	.create_srq = srn_create_srq,
	.dealloc_pd = srn_dealloc_pd,
	.dereg_mr = srn_dereg_mr,
	.destroy_ah = srn_destroy_ah,
	.destroy_cq = srn_destroy_cq,
	.destroy_qp = srn_destroy_qp,
	.destroy_srq = srn_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = srn_free_context,
	.modify_qp = srn_modify_qp,
	.modify_srq = srn_modify_srq,
	.poll_cq = srn_poll_cq,
	.post_recv = srn_post_recv,
	.post_send = srn_post_send,
	.post_srq_recv = srn_post_srq_recv,
	.query_device_ex = srn_query_device_ex,
	.query_port = srn_query_port,
	.query_qp = srn_query_qp,
	.query_srq = srn_query_srq,
	.reg_mr = srn_reg_mr,
	.req_notify_cq = srn_req_notify_cq,
	.rereg_mr = srn_rereg_mr,
	.resize_cq = srn_resize_cq,
};

static void abi_mismatch(const char *device, uint32_t abi)
{
	fprintf(stderr,
		"softrnic: %s needs a provider for ABI %u, this one is for %u: install module and provider of one release\n",
		device, abi, SRN_ABI_VERSION);
}

static struct verbs_context *srn_alloc_context(struct ibv_device *ibdev,
					       int cmd_fd, void *private_data)
{
	struct ibv_get_context cmd;
	struct srn_cmd_get_context_resp resp = {};
	struct srn_context *ctx;
	int ret;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, vctx,
					   SRN_DRIVER_ID);
	if (!ctx)
		return NULL;

	ret = ibv_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd), &resp.ibv_resp,
				  sizeof(resp));
	if (ret)
		goto err_context;

	if (resp.drv_payload.abi_version != SRN_ABI_VERSION) {
		abi_mismatch(ibdev->name, resp.drv_payload.abi_version);
		ret = EPROTONOSUPPORT;
		goto err_context;
	}

	atomic_init(&ctx->no_write, false);
	verbs_set_ops(&ctx->vctx, &srn_context_ops);
	return &ctx->vctx;

err_context:
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	errno = ret;
	return NULL;
}

static struct verbs_device *srn_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void srn_uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

/*
 * libibverbs checks the version range after this, but offers a device to a
 * provider that matches by driver id twice and would complain twice. It holds
 * its device list lock here.
 */
static bool srn_match_device(struct verbs_sysfs_dev *sysfs_dev)
{
	static char told[IBV_SYSFS_NAME_MAX];

	if (!sysfs_dev->match)
		return false;
	if (sysfs_dev->abi_ver == SRN_ABI_VERSION)
		return true;

	if (strcmp(told, sysfs_dev->ibdev_name)) {
		abi_mismatch(sysfs_dev->ibdev_name, sysfs_dev->abi_ver);
		strcpy(told, sysfs_dev->ibdev_name);
	}
	return false;
}

static const struct verbs_match_ent srn_match_table[] = {
	VERBS_DRIVER_ID(SRN_DRIVER_ID),
	{},
};

static const struct verbs_device_ops srn_device_ops = {
	.name = "softrnic",
	.match_min_abi_version = SRN_ABI_VERSION,
	.match_max_abi_version = SRN_ABI_VERSION,
	.match_table = srn_match_table,
	.match_device = srn_match_device,
	.alloc_context = srn_alloc_context,
	.alloc_device = srn_alloc_device,
	.uninit_device = srn_uninit_device,
};
PROVIDER_DRIVER(softrnic, srn_device_ops);
