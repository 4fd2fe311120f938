#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-pyverbs.sh
#
# Builds what rdma-core's own tests need, its libraries and pyverbs, in the
# cache and in place, that is for use from there. Takes a few minutes, once for
# each rdma-core source, configuration and Python.
#
# Result: build/pyverbs, a link to
#	source		the rdma-core source (tests/ is the suite)
#	obj		what was built: lib/, etc/libibverbs.d/, python/
# tests/pyverbs/run.sh adds our provider to it in the guest.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -eq 0 ] || die "usage: [RDMA_CORE_SRC=DIR] build-pyverbs.sh"

need_packages "build and run rdma-core's tests" cmake ninja-build gcc pkg-config \
	cython3 python3-dev libnl-3-dev libnl-route-3-dev libudev-dev
core=$("$SRN_TOP/scripts/fetch-rdma-core.sh")

# Optimising what Cython writes would take most of the time.
options=(-DIN_PLACE=1 -DNO_MAN_PAGES=1 -DENABLE_STATIC=0 -DENABLE_RESOLVE_NEIGH=1
	-DPYTHON_EXECUTABLE=/usr/bin/python3 -DCMAKE_BUILD_TYPE=Release
	-DCMAKE_C_FLAGS_RELEASE=-O1)
# The suite imports parts of other devices' modules too, and nothing of the
# rest. rxe is for comparison.
targets='python/pyverbs/[^/]*\.so
python/pyverbs/providers/.*\.so
lib/librxe-rdmav[0-9]*\.so
lib/libsiw-rdmav[0-9]*\.so'

id=$({
	printf '%s\n' "$core" "${options[@]}" "$targets"
	# another release in the same place, another Python
	grep -i 'set(PACKAGE_VERSION' "$core/CMakeLists.txt"
	/usr/bin/python3 -c 'import sys; print(sys.implementation.cache_tag)'
	dpkg-query -W -f '${Version}\n' cython3
} | sha256sum | cut -c 1-12)
dir=$SRN_CACHE/pyverbs-$id

build()
{
	local files f name
	rm -rf "$dir/obj"
	cmake -S "$core" -B "$dir/obj" -GNinja "${options[@]}" || return
	mapfile -t files < <(ninja -C "$dir/obj" -t targets all | sed 's/: .*//' |
		grep -xE -f <(printf '%s\n' "$targets"))
	ninja -C "$dir/obj" "${files[@]}" || return
	# libibverbs would complain about those that were not built
	for f in "$dir"/obj/etc/libibverbs.d/*.driver; do
		name=$(basename "$f" .driver)
		[ -n "$(find -L "$dir/obj/lib" -type f -name "lib$name-rdmav*.so")" ] || rm "$f"
	done
	ln -sfn "$core" "$dir/source"
	touch "$dir/.complete"
}

mkdir -p "$dir" "$SRN_BUILD"
exec 8>"$dir/lock"
flock 8
[ -f "$dir/.complete" ] ||
	with_progress "building rdma-core's tests (a few minutes, once)" \
		"$SRN_BUILD/log/pyverbs.log" build || exit 1
ln -sfn "$dir" "$SRN_BUILD/pyverbs"
say "suite: build/pyverbs"
