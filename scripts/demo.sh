#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# demo.sh
#
# From a fresh checkout to RDMA traffic: packages, guest kernel, module,
# provider, then tests/guest/demo.sh in a guest with Debian's 6.1 kernel.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -eq 0 ] || die "usage: demo.sh"
start=$SECONDS
need_packages "build the module and the provider, and run the guest with its tools" \
	make gcc kmod pahole cmake ninja-build pkg-config python3 \
	libnl-3-dev libnl-route-3-dev libudev-dev \
	qemu-system-x86 busybox-static cpio libibverbs1 librdmacm1 ibverbs-providers \
	ibverbs-utils rdmacm-utils perftest iproute2 ethtool iputils-ping tcpdump iperf3 qperf
"$SRN_TOP/scripts/build-module.sh" 6.1
"$SRN_TOP/scripts/build-provider.sh"
say "booting Debian's 6.1 kernel in QEMU (5 to 15 seconds when the CPU is emulated)"
"$SRN_TOP/scripts/guest.sh" --kernel 6.1 --name demo --timeout 240 -- \
	"$SRN_TOP/tests/guest/demo.sh"
say "done in $((SECONDS - start)) s; nothing was installed but packages. Next: make check, make help"
