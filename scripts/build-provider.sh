#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-provider.sh
#
# Builds provider/ as rdma-core builds a provider of its own: in a copy of the
# rdma-core source whose providers/softrnic has links to the checkout's files,
# so that neither that source nor the checkout is written to.
# Result: build/provider/libsoftrnic-rdmavNN.so and build/provider/softrnic.driver

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -eq 0 ] || die "usage: [RDMA_CORE_SRC=DIR] build-provider.sh"
[ -f "$SRN_TOP/provider/CMakeLists.txt" ] ||
	die "provider/CMakeLists.txt is missing: is this a complete checkout?"
[ -f "$SRN_TOP/kernel/uapi/softrnic-abi.h" ] ||
	die "kernel/uapi/softrnic-abi.h is missing: is this a complete checkout?"

out=$SRN_BUILD/provider
log=$SRN_BUILD/log/provider.log

need_packages "build the rdma-core provider" cmake ninja-build gcc pkg-config \
	libnl-3-dev libnl-route-3-dev libudev-dev python3
core=$("$SRN_TOP/scripts/fetch-rdma-core.sh")

# One copy and one cmake directory for each checkout and rdma-core source.
id=$(printf '%s\n%s\n' "$SRN_TOP" "$core" | sha256sum | cut -c 1-12)
tree=$SRN_CACHE/provider-$id/tree
obj=$SRN_CACHE/provider-$id/obj

# make_tree: a copy of the source whose top CMakeLists.txt knows about one
# provider more.
make_tree()
{
	[ ! -f "$tree/.complete" ] || return 0
	rm -rf "$tree" "$obj"
	mkdir -p "$tree"
	tar -C "$core" --exclude=./.git --exclude='./build*/' -cf - . | tar -C "$tree" -xf -
	sed -i '/^add_subdirectory(providers\/siw)/a add_subdirectory(providers/softrnic)' \
		"$tree/CMakeLists.txt"
	grep -q '^add_subdirectory(providers/softrnic)' "$tree/CMakeLists.txt" ||
		die "$core/CMakeLists.txt has no add_subdirectory(providers/siw): which rdma-core is it?"
	mkdir "$tree/providers/softrnic"
	touch "$tree/.complete"
}

# sync_provider: the files of the checkout as links, and none that is gone.
sync_provider()
{
	local f
	for f in "$SRN_TOP"/provider/* "$SRN_TOP/kernel/uapi/softrnic-abi.h"; do
		ln -sfn "$f" "$tree/providers/softrnic/${f##*/}"
	done
	find "$tree/providers/softrnic" -xtype l -delete
}

build()
{
	if [ ! -f "$obj/build.ninja" ]; then
		cmake -S "$tree" -B "$obj" -GNinja -DNO_MAN_PAGES=1 -DNO_PYVERBS=1 \
			-DENABLE_STATIC=0 -DCMAKE_BUILD_TYPE=RelWithDebInfo \
			-DCMAKE_C_FLAGS="${SRN_PROVIDER_CFLAGS:-}" || return
	fi
	# the provider's target carries its ABI in its name
	ninja -C "$obj" "$(ninja -C "$obj" -t targets all |
		sed -n 's/^\(lib\/libsoftrnic-rdmav[0-9]*\.so\):.*/\1/p' | head -n 1)"
}

mkdir -p "$SRN_CACHE/provider-$id" "$out"
exec 8>"$SRN_CACHE/provider-$id/lock"
flock 8
make_tree
sync_provider
with_progress "building the provider" "$log" build || exit 1
grep -E 'warning:' "$log" >&2 || :

lib=$(find "$obj/lib" -name 'libsoftrnic-rdmav*.so' | head -n 1)
rm -f "$out"/libsoftrnic-rdmav*.so
cp "$lib" "$out/"
printf 'driver softrnic\n' >"$out/softrnic.driver"
say "provider: ${out#"$SRN_TOP"/}/${lib##*/}"
