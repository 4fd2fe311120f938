#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-tools.sh
#
# Builds the user programs of tools/ into build/tools.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -eq 0 ] || die "usage: build-tools.sh"
need_packages "build the tools" make gcc g++ libpcap-dev
make -s --no-print-directory -C "$SRN_TOP/tools"
