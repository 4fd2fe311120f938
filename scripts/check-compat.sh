#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-compat.sh KERNEL...
#
# Asks kernel/compat/probe.sh what each KERNEL (6.1, 6.12, 7.2) has and compares
# with the answers in tests/compat/: a question whose pattern matches nothing
# any more would otherwise only be seen where the old interface is missing.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -gt 0 ] || die "usage: check-compat.sh 6.1|6.12|7.2..."
passed=0 failed=0
for kernel; do
	expected=$SRN_TOP/tests/compat/expected-$kernel.txt
	[ -f "$expected" ] || die "no answers for kernel '$kernel' in tests/compat"
	case $kernel in
	6.1 | 6.12) tree=$("$SRN_TOP/scripts/fetch-debian-kernel.sh" "$kernel")/common ;;
	*) tree=$SRN_CACHE/uml-source ;;
	esac
	[ -d "$tree/include" ] || die "the source of $kernel is not here: scripts/build-uml.sh plain fetches it"
	have=$SRN_BUILD/$kernel/have.h
	mkdir -p "$SRN_BUILD/$kernel"
	if "$SRN_TOP/kernel/compat/probe.sh" "$tree" "$have" && diff -u "$expected" "$have"; then
		echo "ok   answers of the headers of $kernel"
		passed=$((passed + 1))
	else
		echo "FAIL answers of the headers of $kernel"
		failed=$((failed + 1))
	fi
done
printf '\n%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
