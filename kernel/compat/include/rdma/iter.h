/* SPDX-License-Identifier: GPL-2.0 */
/* 7.1: the block iterator moved here; found only where the kernel has none. */
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
