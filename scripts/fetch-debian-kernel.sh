#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# fetch-debian-kernel.sh 6.1|6.12
#
# Downloads one of Debian 12's own kernels and the headers for it, unpacks
# them into the cache and prints the directory.  Nothing is installed.  The
# directory then has
#	boot/vmlinuz	the kernel
#	release		what uname -r says in it
#	lib/modules/	its modules
#	hdr/		what 'make -C hdr M=...' builds modules with

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
6.1)	image=linux-image-amd64 headers=linux-headers-amd64 ;;
6.12)	image=linux-image-6.12-amd64 headers=linux-headers-6.12-amd64 ;;
*)	die "usage: fetch-debian-kernel.sh 6.1|6.12" ;;
esac
name=$1
dir=$SRN_CACHE/debian-$name

# depends_on PACKAGE PATTERN: the package of that name pattern which PACKAGE
# (one of Debian's meta packages) stands for at the newest version.
depends_on()
{
	apt-cache show --no-all-versions "$1" 2>/dev/null |
		sed -n 's/^Depends: //p' | tr ',' '\n' | sed 's/^ *//; s/ .*//' |
		grep -E "$2" | head -n 1
}

fetch()
{
	local real_image real_headers common kbuild work=$dir.new deb makefile

	apt_update_once
	real_image=$(depends_on "$image" '^linux-image-[0-9]') || :
	if [ -z "$real_image" ]; then
		apt_update_once force
		real_image=$(depends_on "$image" '^linux-image-[0-9]') || :
	fi
	real_headers=$(depends_on "$headers" '^linux-headers-[0-9]') || :
	if [ -z "$real_image" ] || [ -z "$real_headers" ]; then
		die "apt knows no $image and $headers: this needs Debian 12's main and security archives in /etc/apt"
	fi
	common=$(depends_on "$real_headers" '^linux-headers-.*-common$')
	kbuild=$(depends_on "$real_headers" '^linux-kbuild-')

	say "downloading Debian's $real_image and its headers (about 80 MB; not installed)"
	rm -rf "$work"
	mkdir -p "$work/debs" "$work/root"
	download_debs "$work/debs" "$real_image" "$real_headers" "$common" "$kbuild"
	say "unpacking them into $dir"
	for deb in "$work"/debs/*.deb; do
		dpkg -x "$deb" "$work/root"
	done
	rm -r "$work/debs"

	printf '%s\n' "${real_image#linux-image-}" >"$work/release"
	mkdir "$work/boot" "$work/lib"
	mv "$work/root/boot/vmlinuz-${real_image#linux-image-}" "$work/boot/vmlinuz"
	mv "$work/root/boot"/* "$work/boot/"
	mv "$work/root/lib/modules" "$work/lib/modules"
	depmod -b "$work" "$(cat "$work/release")"

	# The headers are two trees and a tools directory that find each other
	# by relative links, and by one absolute path.
	makefile=$work/root/usr/src/$real_headers/Makefile
	[ -f "$makefile" ] || die "$real_headers has no Makefile where it is expected"
	sed -i "s|/usr/src/linux-headers-|$dir/root/usr/src/linux-headers-|" "$makefile"
	ln -s "root/usr/src/$real_headers" "$work/hdr"
	ln -s "root/usr/src/$common" "$work/common"

	rm -rf "$dir"
	mv "$work" "$dir"
}

mkdir -p "$SRN_CACHE"
need_packages "build kernel modules" kmod make gcc pahole
exec 8>"$SRN_CACHE/debian-$name.lock"
flock 8
[ -f "$dir/release" ] || fetch
printf '%s\n' "$dir"
