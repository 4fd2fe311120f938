#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# guest.sh --kernel 6.1|6.12|7.2|7.2-kasan [OPTION...] -- COMMAND [ARG...]
#
# Boots a guest kernel, runs COMMAND in it as root, shows its output as it
# comes and returns its exit status.  The guest's root file system is this
# machine's own, read-only below a memory overlay: every program installed here
# and the checkout are there under the same paths, and nothing the guest writes
# stays, but for the directory $SRN_OUT (build/guest-out/KERNEL here).
#
#	        this machine                          the guest
#	/  --------------------- read-only -------->  / (overlay on tmpfs)
#	build/guest-out/  <---- read and write ---->  build/guest-out/
#	build/KERNEL/*.ko  --------- copy --------->  /lib/modules/.../extra/
#	build/provider/    --------- copy --------->  libibverbs' providers
#	stdout  <---------- second console ---------  COMMAND's stdout and stderr
#
# 6.1 and 6.12 (Debian's own kernels) run in QEMU, the 7.2 ones as User Mode
# Linux.  After COMMAND the guest's kernel log, left in $SRN_OUT/dmesg, is
# searched for signs of a kernel bug; one makes the run fail.
#
# Options:
#	--timeout S	end the guest after S seconds (default 600)
#	--smp N		CPUs of the guest (default 2)
#	--mem M		its memory in MiB (default 3072)
#	--append ARGS	more arguments for the kernel's command line
#	--no-softrnic	without our module and provider
#	--name NAME	results in build/guest-out/NAME, not .../KERNEL
#	--icount	QEMU only: guest time counts instructions, one CPU
#	--allow-log RE	do not count kernel log lines matching RE as a bug
#
# Exit status: COMMAND's; 124 for a timeout; 99 when COMMAND passed but the
# kernel log shows a bug; 98 when the guest died before COMMAND ended.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage="usage: guest.sh --kernel 6.1|6.12|7.2|7.2-kasan [--timeout S] [--smp N] [--mem M] -- COMMAND [ARG...]"
kernel='' limit=600 smp=2 mem=3072 append='' softrnic=1 name='' icount='' allow=''

is_number()
{
	[[ $1 =~ ^[1-9][0-9]*$ ]]
}

while [ $# -gt 0 ]; do
	case $1 in
	--) shift; break ;;
	--no-softrnic) softrnic= ; shift; continue ;;
	--icount) icount=1; shift; continue ;;
	--kernel | --timeout | --smp | --mem | --append | --name | --allow-log)
		[ $# -ge 2 ] || die "$1 needs a value; $usage" ;;
	*) die "unknown argument '$1'; $usage" ;;
	esac
	case $1 in
	--kernel) kernel=$2 ;;
	--timeout) is_number "$2" || die "--timeout takes seconds, not '$2'"; limit=$2 ;;
	--smp) is_number "$2" || die "--smp takes a number of CPUs, not '$2'"; smp=$2 ;;
	--mem) is_number "$2" || die "--mem takes MiB, not '$2'"; mem=$2 ;;
	--append) append=$2 ;;
	--name) name=$2 ;;
	--allow-log) allow=$2 ;;
	esac
	shift 2
done
[ $# -gt 0 ] || die "no command for the guest; $usage"
case $kernel in
6.1 | 6.12) kind=qemu kdir=$SRN_CACHE/debian-$kernel ;;
7.2) kind=uml variant=plain kdir=$SRN_CACHE/uml-plain ;;
7.2-kasan) kind=uml variant=kasan kdir=$SRN_CACHE/uml-kasan ;;
'') die "which kernel? $usage" ;;
*) die "unknown kernel '$kernel': take one of $SRN_KERNELS" ;;
esac
[ -z "$icount" ] || [ "$kind" = qemu ] || die "--icount needs a QEMU guest: 6.1 or 6.12"
[[ ${name:=$kernel} =~ ^[A-Za-z0-9._-]+$ ]] || die "--name takes letters, digits, '.', '_' and '-', not '$name'"

outs=$SRN_BUILD/guest-out
out=$outs/$name
mkdir -p "$out"
# What this run and its guest tell each other; gone afterwards.
run=$(mktemp -d "$outs/.run-XXXXXXXX")
guest_pid=
cleanup()
{
	local rc=$?
	trap - EXIT INT TERM
	if [ -n "$guest_pid" ] && kill -0 "$guest_pid" 2>/dev/null; then
		# timeout, and the guest below it: User Mode Linux makes itself
		# a process group of its own
		local guest
		guest=$(pgrep -P "$guest_pid" || :)
		# shellcheck disable=SC2086	# a list of numbers
		kill -KILL $guest "$guest_pid" 2>/dev/null || :
		wait "$guest_pid" 2>/dev/null || :
	fi
	rm -rf "$run"
	exit "$rc"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- what the guest needs --------------------------------------------------

if [ "$kind" = qemu ]; then
	need_packages "run a guest with Debian's kernel" qemu-system-x86 busybox-static kmod cpio
	"$SRN_TOP/scripts/fetch-debian-kernel.sh" "$kernel" >/dev/null
else
	need_packages "run a guest" kmod
	"$SRN_TOP/scripts/build-uml.sh" "$variant" >/dev/null
fi
need_packages "the RDMA and network tools that run in the guest" \
	libibverbs1 librdmacm1 ibverbs-providers ibverbs-utils rdmacm-utils perftest \
	iproute2 ethtool iputils-ping tcpdump iperf3 qperf
release=$(cat "$kdir/release")

# make_module_tree: /lib/modules as the guest shall see it: the kernel's own
# modules and ours, which modprobe (and so "rdma link add") finds.  Kept for
# the next run with the same modules.
make_module_tree()
{
	local kos=() sum work f
	if [ -n "$softrnic" ]; then
		for f in "$SRN_BUILD/$kernel"/*.ko; do
			[ ! -f "$f" ] || kos+=("$f")
		done
		[ "${#kos[@]}" -gt 0 ] ||
			die "no module for $kernel: run scripts/build-module.sh $kernel first"
	fi
	sum=$({ cat "${kos[@]}" "$kdir/release" "$kdir/key" 2>/dev/null || :; } </dev/null |
		sha256sum | cut -c 1-16)
	modules=$SRN_BUILD/modules/$kernel-$sum
	[ ! -f "$modules/.complete" ] || return 0
	find "$SRN_BUILD/modules" -maxdepth 1 -name "$kernel-*" -mmin +240 \
		-exec rm -rf {} + 2>/dev/null || :
	work=$modules.$$
	mkdir -p "$work/lib/modules/$release/extra"
	for f in "$kdir/lib/modules/$release"/*; do
		case ${f##*/} in
		kernel) ln -s "$f" "$work/lib/modules/$release/kernel" ;;
		modules.order | modules.builtin*) cp "$f" "$work/lib/modules/$release/" ;;
		esac
	done
	[ "${#kos[@]}" -eq 0 ] || cp "${kos[@]}" "$work/lib/modules/$release/extra/"
	depmod -b "$work" "$release"
	touch "$work/.complete"
	mv -T "$work" "$modules" 2>/dev/null || rm -rf "$work"
}
make_module_tree

if [ -n "$softrnic" ]; then
	lib=$(find "$SRN_BUILD/provider" -name 'libsoftrnic-rdmav*.so' 2>/dev/null | head -n 1)
	if [ -n "$lib" ]; then
		mkdir "$run/provider"
		cp "$lib" "$run/provider/"
	else
		say "no provider in build/provider: programs in the guest will not see softrnic devices (scripts/build-provider.sh)"
	fi
fi

# The job: everything the guest's first process reads.
mhz=$(sed -n 's/^cpu MHz[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
{
	printf 'SRN_TOP=%q\nSRN_KERNEL=%q\nSRN_RUN=%q\nSRN_OUT=%q\nSRN_OUTS=%q\n' \
		"$SRN_TOP" "$kernel" "$run" "$out" "$outs"
	printf 'SRN_MODULES=%q\nSRN_CACHE=%q\nSRN_CWD=%q\n' \
		"$modules/lib/modules" "$SRN_CACHE" "$PWD"
	printf 'SRN_CPU_MHZ=%q\nSRN_KIND=%q\n' "${mhz:-2000.000}" "$kind"
	printf 'SRN_COMMAND=('
	printf '%q ' "$@"
	printf ')\n'
	# the caller's settings for the tests go along
	while IFS='=' read -r -d '' var value; do
		case $var in
		CI | SRN_TEST_* | TEST_*) printf 'export %s=%q\n' "$var" "$value" ;;
		esac
	done < <(env -0)
} >"$run/job"

# --- QEMU -------------------------------------------------------------------

# make_initramfs: busybox and the modules that reach the shared file system.
make_initramfs()
{
	local init=$SRN_TOP/tests/guest/initramfs-init work=$run/initramfs key module f
	key=$(cat "$init" "$kdir/release" | sha256sum | cut -c 1-16)
	initramfs=$SRN_CACHE/initramfs-$kernel-$key.gz
	[ ! -f "$initramfs" ] || return 0
	mkdir -p "$work/bin" "$work/mod" "$work/proc" "$work/sys" "$work/dev" "$work/new"
	cp /bin/busybox "$work/bin/"
	cp "$init" "$work/init"
	chmod 755 "$work/init"
	for module in virtio_pci 9pnet_virtio 9p overlay; do
		modprobe -d "$kdir" -S "$release" --show-depends "$module" |
			sed -n 's/^insmod //p'
	done | awk '!seen[$1]++ { print $1 }' >"$work/list"
	while read -r f; do
		module=${f##*/}
		case $f in
		*.xz) xz -dc "$f" >"$work/mod/${module%.xz}" ;;
		*) cp "$f" "$work/mod/" ;;
		esac
		printf '%s\n' "${module%.xz}" >>"$work/modules"
	done <"$work/list"
	rm "$work/list"
	(cd "$work" && find . | cpio -o -H newc --quiet | gzip -1) >"$initramfs.$$"
	mv "$initramfs.$$" "$initramfs"
	rm -rf "$work"
}

# kvm_works: whether the hardware runs a stock kernel here.  /dev/kvm may exist
# and yet hang; so a guest that only switches itself off is tried, once for
# each boot of this machine.
kvm_works()
{
	local boot verdict=$SRN_CACHE/kvm-verdict
	[ "${SRN_KVM:-}" != 0 ] && [ -r /dev/kvm ] && [ -w /dev/kvm ] || return 1
	boot=$(cat /proc/sys/kernel/random/boot_id)
	case $(cat "$verdict" 2>/dev/null) in
	"$boot yes") return 0 ;;
	"$boot no") return 1 ;;
	esac
	say "trying whether /dev/kvm runs a guest (8 seconds at most)"
	if { timeout -k 1 8 qemu-system-x86_64 -accel kvm -cpu host -m 512 -nodefaults \
		-no-reboot -display none -kernel "$kdir/boot/vmlinuz" -initrd "$initramfs" \
		-serial "file:$run/kvm.log" -append "console=ttyS0 quiet guest.probe panic=-1" \
		</dev/null >/dev/null; } 2>/dev/null && grep -q 'softrnic: probe' "$run/kvm.log"; then
		echo "$boot yes" >"$verdict"
	else
		echo "$boot no" >"$verdict"
		say "it does not: the guest's CPU is emulated (slow, and all there is to it)"
		return 1
	fi
}

start_qemu()
{
	local accel=()
	make_initramfs
	if [ -n "$icount" ]; then
		smp=1
		accel=(-accel "tcg,thread=single" -icount "shift=0,sleep=off" -cpu "max,-erms,-fsrm")
	elif kvm_works; then
		accel=(-accel kvm -cpu host)
	else
		# with ERMS the kernel copies by 'rep movsb', byte by byte here
		accel=(-accel "tcg,thread=multi" -cpu "max,-erms,-fsrm")
	fi
	# the shared file system holds many files open
	ulimit -n "$(ulimit -Hn)"
	exec setsid timeout -k 5 "$limit" qemu-system-x86_64 "${accel[@]}" \
		-m "$mem" -smp "$smp" -nodefaults -no-user-config -no-reboot -display none \
		-kernel "$kdir/boot/vmlinuz" -initrd "$initramfs" \
		-fsdev "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap" \
		-device "virtio-9p-pci,fsdev=root,mount_tag=root" \
		-fsdev "local,id=out,path=$outs,security_model=none,multidevs=remap" \
		-device "virtio-9p-pci,fsdev=out,mount_tag=out" \
		-serial "file:$run/console" \
		-chardev "stdio,id=out,signal=off" -serial chardev:out \
		-append "console=ttyS0 loglevel=5 log_buf_len=8M oops=panic panic=-1 hung_task_panic=0 guest.job=$run/job guest.outs=$outs $append" \
		</dev/null 2>"$run/qemu-errors"
}

# --- User Mode Linux ---------------------------------------------------------

start_uml()
{
	exec 3>"$run/console" 4>&1
	exec setsid timeout -s KILL "$limit" "$kdir/linux" mem="${mem}M" seccomp=on \
		ncpus="$smp" rootfstype=hostfs rootflags=/ ro \
		init="$SRN_TOP/tests/guest/uml-init" con=null con0=null,fd:3 con1=null,fd:4 \
		loglevel=5 log_buf_len=8M oops=panic panic=-1 \
		guest.job="$run/job" "$append" \
		</dev/null >"$run/uml-output" 2>&1
}

# --- run it -------------------------------------------------------------------

started=$SECONDS
: >"$run/console"
mkfifo "$run/pipe"
cat "$run/pipe" &
cat_pid=$!
"start_$kind" >"$run/pipe" &
guest_pid=$!
status=0
wait "$guest_pid" 2>/dev/null || status=$?
guest_pid=
wait "$cat_pid" 2>/dev/null || :

rc=98
[ ! -s "$run/status" ] || rc=$(cat "$run/status")
[ ! -f "$run/dmesg" ] || cp "$run/dmesg" "$out/dmesg"
cp "$run/console" "$out/console"
if [ ! -s "$run/status" ]; then
	if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
		rc=124
		say "guest $kernel: ended after its limit of $limit s"
	else
		say "guest $kernel: died before the command ended (status $status); end of its console:"
		tail -n 40 "$run/console" "$run/qemu-errors" "$run/uml-output" 2>/dev/null >&2 || :
	fi
fi

bugs='WARNING:|BUG:|BUG at|kernel BUG|KASAN|UBSAN|Oops|general protection|Call Trace:|INFO: (task|rcu)|rcu: INFO|possible (circular|recursive)|inconsistent lock|suspicious RCU|blocked for more than|unregister_netdevice: waiting|soft lockup|sleeping function|refcount_t:|kmemleak: [1-9]|Kernel panic|list_(add|del) corruption|BUG kmalloc|still has|leaked'
# What is not the module's business: TCG's clock, UML's start.
harmless='clocksource|tsc: |Unstable clock|RETBleed|Spectre|MDS|TAA|MMIO Stale'
# shellcheck disable=SC2002	# either file may be missing
if found=$(cat "$run/dmesg" "$run/console" 2>/dev/null | tr -d '\r' | grep -aE "$bugs" |
	grep -avE "$harmless" | { [ -z "$allow" ] && cat || grep -avE "$allow"; }); then
	say "guest $kernel: the kernel log shows a bug (all of it: ${out#"$SRN_TOP"/}/dmesg):"
	printf '%s\n' "$found" | awk '!seen[$0]++' | head -n 20 >&2
	grep -aE -A 30 "$bugs" "$run/dmesg" 2>/dev/null | head -n 60 >&2 || :
	[ "$rc" -ne 0 ] || rc=99
fi
[ "${SRN_QUIET:-}" = 1 ] || say "guest $kernel: status $rc after $((SECONDS - started)) s"
exit "$rc"
