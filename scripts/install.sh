#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# install.sh [--remove]
#
# Installs on this machine: the module for the running kernel, the provider
# beside libibverbs' others, udev rules that keep the name given to
# "rdma link add", and the tools with their man pages.  Everything is built and
# looked at first; when a step fails after that, what was put in place is taken
# away again.  Nothing is loaded.
# --remove takes away what an installation put there.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
'') remove= ;;
--remove) remove=1 ;;
*) die "usage: install.sh [--remove]" ;;
esac
[ $# -le 1 ] || die "usage: install.sh [--remove]"
[ "$(id -u)" -eq 0 ] || die "installing needs root: run 'sudo make ${remove:+un}install'"

release=$(uname -r)
module=/lib/modules/$release/extra/softrnic.ko
driver=/etc/libibverbs.d/softrnic.driver
rules=/etc/udev/rules.d/60-softrnic.rules
naming=/etc/udev/rules.d/60-rdma-persistent-naming.rules
mark='# softrnic: made by "make install"'
providers=$(find /usr/lib -maxdepth 3 -type d -path '*/libibverbs' 2>/dev/null | head -n 1)

# is_ours FILE: a naming rule that an earlier installation made.
is_ours()
{
	[ -f "$1" ] && head -n 1 "$1" | grep -qxF "$mark"
}

reload()
{
	depmod "$release" 2>/dev/null || :
	if command -v udevadm >/dev/null; then
		udevadm control --reload 2>/dev/null || :
	fi
}

take_away()
{
	rm -f "$module" "$driver" "$rules"
	[ -z "$providers" ] || rm -f "$providers"/libsoftrnic-rdmav*.so
	! is_ours "$naming" || rm -f "$naming"
	make -s -C "$SRN_TOP/tools" uninstall 2>/dev/null || :
	reload
}

if [ -n "$remove" ]; then
	take_away
	say "softrnic is removed from this machine"
	exit 0
fi

[ -d "/lib/modules/$release/build" ] ||
	die "no headers for the running kernel $release: apt-get install linux-headers-$release"
need_packages "the provider needs the libibverbs that programs use" libibverbs1 ibverbs-providers
providers=$(find /usr/lib -maxdepth 3 -type d -path '*/libibverbs' | head -n 1)
[ -n "$providers" ] || die "no directory of libibverbs providers below /usr/lib: apt-get install ibverbs-providers"

"$SRN_TOP/scripts/build-module.sh" host
"$SRN_TOP/scripts/build-provider.sh"
"$SRN_TOP/scripts/build-tools.sh"

lib=$(find "$SRN_BUILD/provider" -name 'libsoftrnic-rdmav*.so' | head -n 1)
abi=${lib##*-rdmav}
abi=${abi%.so}
compgen -G "$providers/*-rdmav$abi.so" >/dev/null ||
	die "the provider has rdma-core's private ABI $abi, which the libibverbs in $providers does not load: give the source of that rdma-core as RDMA_CORE_SRC=DIR"

# naming_rules: the distribution's rules behind a guard that leaves our
# devices out; a file of this name in /etc takes the place of theirs.
naming_rules()
{
	local theirs=$1
	cat <<-END
	$mark
	# from $theirs, with softrnic's devices left out so that they keep their name
	SUBSYSTEM=="infiniband", ATTR{node_desc}=="softrnic*", GOTO="softrnic_keeps_its_name"
	END
	cat "$theirs"
	printf '\nLABEL="softrnic_keeps_its_name"\n'
}

trap 'take_away; die "installation failed; what was installed is removed again"' ERR
install -D -m 644 "$SRN_BUILD/host/softrnic.ko" "$module"
install -m 644 "$lib" "$providers/"
install -D -m 644 "$SRN_BUILD/provider/softrnic.driver" "$driver"
install -D -m 644 "$SRN_TOP/scripts/udev/60-softrnic.rules" "$rules"
for theirs in /usr/lib/udev/rules.d /lib/udev/rules.d; do
	theirs=$theirs/60-rdma-persistent-naming.rules
	[ -f "$theirs" ] || continue
	if [ -f "$naming" ] && ! is_ours "$naming"; then
		say "$naming is yours and stays as it is: to keep the names of softrnic devices, let it skip ATTR{node_desc}==\"softrnic*\""
	else
		naming_rules "$theirs" >"$naming.new"
		mv "$naming.new" "$naming"
	fi
	break
done
make -s -C "$SRN_TOP/tools" install
trap - ERR
reload
say "installed: $module, $providers/${lib##*/}, $driver, $rules"
say "use it: rdma link add sr0 type roce netdev DEV"
