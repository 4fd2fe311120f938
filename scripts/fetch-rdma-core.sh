#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# fetch-rdma-core.sh
#
# Puts the rdma-core source that the provider is built in into the cache and
# prints its directory.  It is release 56.1, which Debian's trixie suite has:
# providers built in it (private ABI 34) are loaded by the libibverbs of
# Debian 12.  RDMA_CORE_SRC=DIR takes that source tree instead.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -eq 0 ] || die "usage: [RDMA_CORE_SRC=DIR] fetch-rdma-core.sh"

if [ -n "${RDMA_CORE_SRC:-}" ]; then
	[ -f "$RDMA_CORE_SRC/buildlib/rdma_functions.cmake" ] ||
		die "RDMA_CORE_SRC=$RDMA_CORE_SRC is not an rdma-core source tree"
	(cd "$RDMA_CORE_SRC" && pwd)
	exit 0
fi

version=56.1
dir=$SRN_CACHE/rdma-core-$version

fetch()
{
	local work=$dir.new uri file size sum
	suite_apt trixie deb-src
	# 'URI' FILE SIZE HASH:SUM, one line for each file of the source package
	read -r uri file size sum < <(apt-get "${SUITE_APT[@]}" --print-uris \
		source "rdma-core=$version-1" 2>/dev/null | grep "_$version.orig.tar" ||
		apt-get "${SUITE_APT[@]}" --print-uris source rdma-core 2>/dev/null |
		grep "_$version.orig.tar") ||
		die "Debian's trixie suite no longer has the source of rdma-core $version: give a tree as RDMA_CORE_SRC=DIR"
	uri=${uri#\'}
	uri=${uri%\'}
	say "downloading the rdma-core source, $file ($((size / 1024)) KiB; not installed)"
	rm -rf "$work"
	mkdir -p "$work"
	/usr/lib/apt/apt-helper "${SUITE_APT[@]}" download-file "$uri" "$work/$file" "$sum" \
		>/dev/null 2>&1 </dev/null ||
		die "the rdma-core source could not be downloaded (network? then run it again)"
	tar -C "$work" --strip-components=1 -xf "$work/$file"
	rm "$work/$file"
	rm -rf "$dir"
	mv "$work" "$dir"
}

mkdir -p "$SRN_CACHE"
exec 8>"$SRN_CACHE/rdma-core.lock"
flock 8
[ -f "$dir/CMakeLists.txt" ] || fetch
printf '%s\n' "$dir"
