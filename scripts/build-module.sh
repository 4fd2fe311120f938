#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-module.sh KERNEL [DIR]
#
# Builds the kernel module in kernel/ (or another module directory of the
# checkout, DIR) against KERNEL: 6.1, 6.12, 7.2, 7.2-kasan or "host", the
# running one.  It is built in build/KERNEL/ among links to the sources, so one
# checkout serves every kernel; the result is build/KERNEL/*.ko.  Warnings are
# errors on every kernel but the host's (SRN_WERROR=0 turns that off).

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage="usage: build-module.sh 6.1|6.12|7.2|7.2-kasan|host [DIR]"
[ $# -ge 1 ] && [ $# -le 2 ] || die "$usage"
kernel=$1
from=$SRN_TOP/${2:-kernel}
[ -f "$from/Kbuild" ] || die "${2:-kernel}/Kbuild is missing: is this a complete checkout?"

arch=()
case $kernel in
6.1 | 6.12)
	"$SRN_TOP/scripts/fetch-debian-kernel.sh" "$kernel" >/dev/null ;;
7.2)
	"$SRN_TOP/scripts/build-uml.sh" plain >/dev/null
	arch=(ARCH=um) ;;
7.2-kasan)
	"$SRN_TOP/scripts/build-uml.sh" kasan >/dev/null
	arch=(ARCH=um) ;;
host)
	[ -d "/lib/modules/$(uname -r)/build" ] ||
		die "no headers for the running kernel $(uname -r): apt-get install linux-headers-$(uname -r), or build for a guest: build-module.sh 6.1"
	need_packages "build a kernel module" make gcc kmod ;;
*)	die "$usage" ;;
esac
kdir=$(kernel_dir "$kernel")

out=$SRN_BUILD/$kernel
work=$out/$(basename "$from")
log=$SRN_BUILD/log/module-$kernel-$(basename "$from").log

# link_sources: links to the sources, without what a build left beside them.
link_sources()
{
	local f
	mkdir -p "$work"
	while IFS= read -r -d '' f; do
		mkdir -p "$work/$(dirname "$f")"
		[ "$(readlink "$work/$f" || :)" = "$from/$f" ] ||
			ln -sfn "$from/$f" "$work/$f"
	done < <(cd "$from" && find . -type f ! -name '.*' ! -name '*.o' \
		! -name '*.ko' ! -name '*.mod' ! -name '*.mod.c' ! -name '*.a' \
		! -name modules.order ! -name Module.symvers -printf '%P\0')
	find "$work" -xtype l -delete
}

flags=()
if [ "$kernel" != host ] && [ "${SRN_WERROR:-1}" = 1 ]; then
	flags=(KCFLAGS=-Werror)
fi
symbols=
[ "$from" = "$SRN_TOP/kernel" ] || symbols=$out/kernel/Module.symvers

mkdir -p "$out"
exec 8>"$out/.lock-$(basename "$from")"
flock 8
link_sources
with_progress "building $(basename "$from")/ for $kernel" "$log" \
	make -C "$kdir" "${arch[@]}" "${flags[@]}" M="$work" \
	KBUILD_EXTRA_SYMBOLS="$symbols" -j"$(nproc)" modules || exit 1
if grep -E '(warning|WARNING):' "$log" >&2 && [ "${#flags[@]}" -gt 0 ]; then
	find "$work" -name '*.ko' -delete
	die "building for $kernel gave the warnings above"
fi
for ko in "$work"/*.ko; do
	[ -f "$ko" ] || die "building for $kernel made no module; see $log"
	cmp -s "$ko" "$out/${ko##*/}" || cp "$ko" "$out/"
	say "module: build/$kernel/${ko##*/}"
done
