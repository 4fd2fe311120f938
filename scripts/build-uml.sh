#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build-uml.sh plain|kasan [--prepare-only]
#
# Builds the guest kernel that runs as an ordinary process (User Mode Linux)
# from the newest kernel source of at least 7.2 that Debian's sid suite
# offers, keeps it in the cache and prints its directory:
#	linux		the kernel, to be run
#	release		what uname -r says in it
#	lib/modules/	its modules (rdma_rxe and siw, the peers)
#	obj/		what 'make -C obj ARCH=um M=...' builds modules with
# It is rebuilt only when its configuration changes or the cache is gone;
# about ten minutes on two CPUs.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
plain | kasan) variant=$1 ;;
*)	die "usage: build-uml.sh plain|kasan [--prepare-only]" ;;
esac
case ${2:-} in
'') prepare_only= ;;
--prepare-only) prepare_only=1 ;;
*)	die "unknown argument '$2': build-uml.sh plain|kasan [--prepare-only]" ;;
esac

oldest=7.2
dir=$SRN_CACHE/uml-$variant
src=$SRN_CACHE/uml-source
fragments=("$SRN_TOP/scripts/uml/common.config")
[ "$variant" = plain ] || fragments+=("$SRN_TOP/scripts/uml/$variant.config")

# fetch_source: unpacks the kernel source into $src; $src/.version says which.
fetch_source()
{
	local package version work=$src.new

	suite_apt sid deb
	APT_OPTIONS=("${SUITE_APT[@]}")
	package=$(apt-cache "${SUITE_APT[@]}" search --names-only \
		'^linux-source-[0-9]+\.[0-9]+$' | sed 's/ .*//' | sort -V | tail -n 1)
	version=${package#linux-source-}
	if [ -z "$package" ] || [ "$(printf '%s\n%s\n' "$oldest" "$version" |
		sort -V | head -n 1)" != "$oldest" ]; then
		die "Debian's sid suite offers no linux-source of at least $oldest (newest: ${package:-none})"
	fi
	say "downloading $package from Debian's sid suite (about 160 MB; not installed)"
	rm -rf "$work"
	mkdir -p "$work/debs"
	download_debs "$work/debs" "$package"
	dpkg -x "$work"/debs/*.deb "$work/root"
	with_progress "unpacking the $version kernel source" "$SRN_CACHE/log/uml-unpack.log" \
		tar -C "$work" --strip-components=1 --exclude='*/Documentation/*/*.rst' \
		-xf "$work/root/usr/src/$package.tar.xz"
	(cd "$work/debs" && echo *.deb) >"$work/.version"
	rm -r "$work/debs" "$work/root"
	rm -rf "$src"
	mv "$work" "$src"
}

# make_config OBJ: the configuration, and a check that nothing the tests rely
# on was dropped for an unmet dependency.
make_config()
{
	local obj=$1 want
	make -s -C "$src" ARCH=um O="$obj" defconfig
	grep -hv '^#' "${fragments[@]}" >>"$obj/.config"
	make -s -C "$src" ARCH=um O="$obj" olddefconfig
	while read -r want; do
		grep -qx "$want" "$obj/.config" ||
			printf 'not in the configuration: %s\n' "$want"
	done < <(grep -h '=[ym]$' "${fragments[@]}")
}

compile()
{
	local obj=$1
	make -C "$src" ARCH=um O="$obj" -j"$(nproc)" linux modules || return
	[ -f "$obj/Module.symvers" ] ||
		cp "$obj/vmlinux.symvers" "$obj/Module.symvers" || return
	make -C "$src" ARCH=um O="$obj" INSTALL_MOD_PATH="$dir" \
		modules_install || return
	ln -sf obj/linux "$dir/linux" || return
	make -s -C "$src" ARCH=um O="$obj" kernelrelease >"$dir/release"
}

key=$(cat "${fragments[@]}" | sha256sum | cut -c 1-16)

if_built_exit()
{
	if [ -f "$dir/release" ] && [ "$(cat "$dir/key" 2>/dev/null)" = "$key" ]; then
		printf '%s\n' "$dir"
		exit 0
	fi
}

if_built_exit
mkdir -p "$SRN_CACHE/log"
# One kernel build at a time: each uses every CPU.
exec 8>"$SRN_CACHE/uml.lock"
flock 8
if_built_exit

need_packages "build the UML guest kernel" make gcc flex bison bc kmod xz-utils
[ -f "$src/.version" ] || fetch_source
say "kernel source: $(cat "$src/.version")"
if [ "$(cat "$dir/key.config" 2>/dev/null)" != "$key" ]; then
	# a new configuration rebuilds what it touches, a new source everything
	cmp -s "$src/.version" "$dir/source" || rm -rf "$dir"
	rm -f "$dir/key" "$dir/key.config"
	mkdir -p "$dir/obj"
	cp "$src/.version" "$dir/source"
	with_progress "configuring the $variant UML kernel" \
		"$SRN_CACHE/log/uml-$variant-config.log" make_config "$dir/obj"
	grep -h '^not in' "$SRN_CACHE/log/uml-$variant-config.log" >&2 || :
	with_progress "preparing it for building modules" \
		"$SRN_CACHE/log/uml-$variant-prepare.log" \
		make -C "$src" ARCH=um O="$dir/obj" -j"$(nproc)" modules_prepare
	echo "$key" >"$dir/key.config"
fi
if [ -n "$prepare_only" ]; then
	printf '%s\n' "$dir"
	exit 0
fi
with_progress "building the $variant UML kernel (about ten minutes on two CPUs)" \
	"$SRN_CACHE/log/uml-$variant.log" compile "$dir/obj"
echo "$key" >"$dir/key"
printf '%s\n' "$dir"
