/* SPDX-License-Identifier: GPL-2.0 */
/*
 * New kernel interfaces on old kernels; force-included into every file.
 *
 * The sources are written for 7.2. Each entry says what changed and when, and
 * can go once the last kernel without it is no longer supported. The HAVE_
 * answers come from probe.sh.
 */
#ifndef SRN_COMPAT_H
#define SRN_COMPAT_H

#include "have.h"

#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <net/flow.h>
#include <net/inet_dscp.h>
#include <net/udp_tunnel.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* 6.16: from_timer() became timer_container_of(). */
#if !HAVE_TIMER_CONTAINER_OF
#define timer_container_of from_timer
#endif

/* 6.13: hrtimer_setup() takes the function too. */
#if !HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = fn;
}
#endif

/* 6.17: a workqueue says whether it is per CPU, which was the default. */
#if !HAVE_WQ_PERCPU
#define WQ_PERCPU 0
#endif

/* 6.3: the flags of a VMA are changed by helpers only. */
#if !HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

/* 6.18: socket calls take struct sockaddr_unsized. */
#if !HAVE_SOCKADDR_UNSIZED
#define sockaddr_unsized sockaddr
#endif

/* 7.0: UDP tunnels are given the sock, not the socket. */
#if !HAVE_UDP_TUNNEL_SK
#define setup_udp_tunnel_sock(net, sk, cfg) \
	setup_udp_tunnel_sock(net, (sk)->sk_socket, cfg)
#define udp_tunnel_sock_release(sk) udp_tunnel_sock_release((sk)->sk_socket)
#endif

/* 6.18: flowi4_tos became flowi4_dscp, which has no ECN bits. */
static inline void srn_flowi4_set_tos(struct flowi4 *fl4, u8 tos)
{
#if HAVE_FLOWI4_DSCP
	fl4->flowi4_dscp = inet_dsfield_to_dscp(tos);
#else
	fl4->flowi4_tos = tos & INET_DSCP_MASK;
#endif
}

/* 6.5: helpers for the kernel addresses of devices without DMA. */
#if !HAVE_IB_VIRT_DMA
static inline void *ib_virt_dma_to_ptr(u64 dma_addr)
{
	return (void *)(uintptr_t)dma_addr;
}

static inline struct page *ib_virt_dma_to_page(u64 dma_addr)
{
	return virt_to_page(ib_virt_dma_to_ptr(dma_addr));
}
#endif

/* 7.1: ib_umem_get() of an address became ib_umem_get_va(). */
#if !HAVE_UMEM_GET_VA
#define ib_umem_get_va ib_umem_get
#endif

/* 6.19: a device can be made in a namespace; before, it starts in init_net. */
#if !HAVE_IB_ALLOC_WITH_NET
#define ib_alloc_device_with_net(drv_struct, member, net) \
	ib_alloc_device(drv_struct, member)
#endif

/* 6.8: udev leaves a name alone that a user has chosen. */
#if !HAVE_IB_NAME_BY_USER
static inline void ib_mark_name_assigned_by_user(struct ib_device *ibdev)
{
}
#endif

/*
 * 6.13: the core knows the last port state and announces changes of it, also
 * by itself for the first device of a netdev. *last is that state elsewhere.
 */
#if HAVE_IB_PORT_STATE_EVENT
static inline void srn_dispatch_port_state(struct ib_device *ibdev,
					   struct net_device *ndev,
					   enum ib_port_state now,
					   enum ib_port_state *last)
{
	*last = now;
	ib_dispatch_port_state_event(ibdev, ndev);
}
#else
static inline void srn_dispatch_port_state(struct ib_device *ibdev,
					   struct net_device *ndev,
					   enum ib_port_state now,
					   enum ib_port_state *last)
{
	struct ib_event event = {
		.device = ibdev,
		.element.port_num = 1,
		.event = now == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE :
						 IB_EVENT_PORT_ERR,
	};

	if (xchg(last, now) != now)
		ib_dispatch_event(&event);
}
#endif

/* 7.1: helpers that treat driver data of any length alike. */
#if !HAVE_UDATA_HELPERS
static inline int srn_udata_in(struct ib_udata *udata, void *req, size_t size,
			       size_t min)
{
	int ret;

	if (udata->inlen < min)
		return -EINVAL;
	ret = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);
	return ret == -E2BIG ? -EOPNOTSUPP : ret;
}

static inline int srn_udata_out(struct ib_udata *udata, const void *rep,
				size_t len)
{
	size_t n = min(len, udata->outlen);

	if (copy_to_user(udata->outbuf, rep, n) ||
	    clear_user(udata->outbuf + n, udata->outlen - n))
		return -EFAULT;
	return 0;
}

#define ib_copy_validate_udata_in(udata, req, end_member)	\
	srn_udata_in(udata, &(req), sizeof(req),		\
		     offsetofend(typeof(req), end_member))
#define ib_respond_udata(udata, rep) srn_udata_out(udata, &(rep), sizeof(rep))

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	if (!udata || !udata->inlen)
		return 0;
	return srn_udata_in(udata, NULL, 0, 0);
}

static inline int ib_respond_empty_udata(struct ib_udata *udata)
{
	if (udata && udata->outlen && clear_user(udata->outbuf, udata->outlen))
		return -EFAULT;
	return 0;
}

static inline int ib_no_udata_io(struct ib_udata *udata)
{
	int ret = ib_is_udata_in_empty(udata);

	return ret ? ret : ib_respond_empty_udata(udata);
}
#endif

#endif /* SRN_COMPAT_H */
