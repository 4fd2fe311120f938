#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# probe.sh SRCTREE HAVE_H
#
# Asks the headers of the kernel in SRCTREE which interfaces they have and
# writes the answers to HAVE_H, which is left alone when nothing changed.
# One row of the table is one question: a name, a header below include/ and an
# extended regular expression that is matched against the header with every run
# of white space made one space.  Nothing is compiled and no version is looked
# at, since distributions carry interfaces back and forth.

set -eu
[ $# -eq 2 ] || { echo "usage: probe.sh SRCTREE HAVE_H" >&2; exit 1; }
include=$1/include
[ -d "$include" ] || { echo "probe.sh: $include: no kernel headers" >&2; exit 1; }

table()
{
	cat <<'END'
CREATE_CQ_BUNDLE	rdma/ib_verbs.h	\(\*create_cq\)\(struct ib_cq \*cq, const struct ib_cq_init_attr \*attr, struct uverbs_attr_bundle
RESIZE_USER_CQ	rdma/ib_verbs.h	\(\*resize_user_cq\)
IB_DMAH	rdma/ib_verbs.h	\(\*reg_user_mr\)\([^)]*struct ib_dmah
IB_VIRT_DMA	rdma/ib_verbs.h	ib_virt_dma_to_page\(
IB_ALLOC_WITH_NET	rdma/ib_verbs.h	define ib_alloc_device_with_net\(
IB_NAME_BY_USER	rdma/ib_verbs.h	ib_mark_name_assigned_by_user\(
IB_PORT_STATE_EVENT	rdma/ib_verbs.h	ib_dispatch_port_state_event\(
ROBUST_UDATA	rdma/ib_verbs.h	uverbs_robust_udata:
UDATA_HELPERS	rdma/uverbs_ioctl.h	define ib_respond_udata\(
UMEM_GET_VA	rdma/ib_umem.h	ib_umem_get_va\(
UDP_TUNNEL_SK	net/udp_tunnel.h	setup_udp_tunnel_sock\(struct net \*net, struct sock \*
FLOWI4_DSCP	net/flow.h	define flowi4_dscp
SOCKADDR_UNSIZED	linux/net.h	kernel_bind\(struct socket \*sock, struct sockaddr_unsized
TIMER_CONTAINER_OF	linux/timer.h	define timer_container_of\(
HRTIMER_SETUP	linux/hrtimer.h	hrtimer_setup\(struct hrtimer
WQ_PERCPU	linux/workqueue.h	WQ_PERCPU =
VM_FLAGS_SET	linux/mm.h	vm_flags_set\(
END
}

tab=$(printf '\t')
tmp=$2.$$
trap 'rm -f "$tmp"' EXIT
mkdir -p "$(dirname "$2")"
{
	echo "/* Made by probe.sh. */"
	table | while IFS=$tab read -r name header pattern; do
		if [ -f "$include/$header" ] &&
		   tr -s '\n\t ' ' ' <"$include/$header" | grep -Eq "$pattern"; then
			echo "#define HAVE_$name 1"
		else
			echo "#define HAVE_$name 0"
		fi
	done
} >"$tmp"
cmp -s "$tmp" "$2" || mv -f "$tmp" "$2"
