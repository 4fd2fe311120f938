#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nvme.sh
#
# Kernel consumers of the verbs: NVMe over Fabrics, target and host in one guest
# with the modules of Debian's kernel (scripts/guest.sh --kernel 6.1 -- ...).
# Memory is fast registered (REG_MR), invalidated by SEND_INV and LOCAL_INV; the
# target READs and WRITEs; completions go to kernel CQs in softirq and work items.
#
#	  nvme-rdma (host)  ---- softrnic sr0 on dummy0 ----  nvmet-rdma (target)
#	  /dev/nvme0n1          198.51.100.1, to itself        /dev/ram0
#
# Prints ok and not ok lines and totals.

set -uo pipefail

passed=0 failed=0
check()
{
	local name=$1
	shift
	if timeout 60 "$@" >"$work/out" 2>&1; then
		passed=$((passed + 1))
		echo "ok - nvme: $name"
	else
		failed=$((failed + 1))
		echo "not ok - nvme: $name: $(tail -n 1 "$work/out")"
	fi
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvmet=/sys/kernel/config/nvmet

setup()
{
	set -e
	modprobe -a nvmet-rdma nvme-rdma
	modprobe brd rd_nr=1 rd_size=65536
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
	ip link set lo up
	ip link add dummy9 mtu 9000 type dummy
	ip addr add 198.51.100.1/24 dev dummy9
	ip link set dummy9 up
	rdma link add sr0 type roce netdev dummy9

	cd "$nvmet"
	mkdir subsystems/test ports/1
	echo 1 >subsystems/test/attr_allow_any_host
	mkdir subsystems/test/namespaces/1
	echo -n /dev/ram0 >subsystems/test/namespaces/1/device_path
	echo 1 >subsystems/test/namespaces/1/enable
	echo rdma >ports/1/addr_trtype
	echo ipv4 >ports/1/addr_adrfam
	echo 198.51.100.1 >ports/1/addr_traddr
	echo 4420 >ports/1/addr_trsvcid
	ln -s "$nvmet/subsystems/test" ports/1/subsystems/test
}

disk=/dev/nvme0n1
# The descriptor is closed before anything is unloaded: the kernel's fabrics
# code looks at the transport's module when it goes.
connect()
{
	local i
	exec 3<>/dev/nvme-fabrics
	echo "transport=rdma,traddr=198.51.100.1,trsvcid=4420,nqn=test" >&3 || return 1
	exec 3>&-
	for ((i = 0; i < 50; i++)); do
		[ ! -b $disk ] || return 0
		sleep 0.2
	done
	echo "$disk does not appear"
	return 1
}

# copy BLOCK COUNT: random data to the disk and back, compared.
copy()
{
	head -c "$(($2 * ${1%k} * 1024))" /dev/urandom >"$work/data"
	dd if="$work/data" of=$disk bs="$1" count="$2" oflag=direct &&
		dd if=$disk of="$work/back" bs="$1" count="$2" iflag=direct &&
		cmp "$work/data" "$work/back"
}

# Both directions at once, in the upper and the lower half of the disk.
mixed()
{
	local rc=0 reader
	dd if=$disk of=/dev/null bs=64k count=256 iflag=direct &
	reader=$!
	dd if=/dev/zero of=$disk bs=64k count=256 seek=512 oflag=direct || rc=1
	wait "$reader" || rc=1
	return "$rc"
}

reset_controller()
{
	echo 1 >/sys/class/nvme/nvme0/reset_controller
	sleep 2
	copy 64k 64
}

# The link goes while the disk is read: the reader gets an error, nothing hangs.
delete_link()
{
	local start=$SECONDS reader
	dd if=$disk of=/dev/null bs=256k iflag=direct count=100000 &
	reader=$!
	sleep 0.5
	rdma link delete sr0 || return 1
	[ $((SECONDS - start)) -le 10 ] || { echo "link delete took too long"; return 1; }
	! wait "$reader"
}

unload()
{
	rm -f "$nvmet/ports/1/subsystems/test"
	rmdir "$nvmet/ports/1"
	rmmod nvme_rdma && rmmod nvmet_rdma && rmmod softrnic
}

export -f setup connect copy mixed reset_controller delete_link unload
export nvmet disk work
check "target on a softrnic device" bash -c setup
check "host connects" bash -c connect
check "4 KiB blocks, data compared" bash -c 'copy 4k 500'
check "256 KiB blocks, data compared" bash -c 'copy 256k 100'
check "1 MiB blocks, data compared" bash -c 'copy 1024k 20'
check "reads beside writes" bash -c mixed
check "controller reset, data compared" bash -c reset_controller
check "link deleted under reads" bash -c delete_link
check "modules unload" bash -c unload

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
