#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The demonstration, inside a guest (make demo starts it there): two hosts as
# network namespaces with a softrnic device each, RDMA between them, and one
# table beside rxe and TCP.
#
#	  h1                                h2
#	  sr1 (softrnic)                    sr2 (softrnic)
#	  veth1 192.0.2.1 ---------------- veth2 192.0.2.2
#	        2001:db8::1                      2001:db8::2
#
#	  one: sr3 (softrnic) on dummy3 198.51.100.1, to itself
#	  the initial namespace: rxe4 (rxe) on dummy4 198.51.100.1, to itself
#
# rxe of the 6.1 kernel has its socket in the initial namespace and reaches no
# other one; so it is measured on one device that talks to itself, and so is
# softrnic a second time, on a netdev of the same kind.

set -euo pipefail

mtu=4200	# holds RoCE's largest path MTU, 4096, and its headers
type=${TEST_DEMO_TYPE:-roce}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

title()
{
	printf '\n--- %s\n' "$*"
}

run()
{
	printf '$ %s\n' "$*"
	"$@"
}

fail()
{
	printf 'demo: %s\n' "$*"
	printf 'end of the kernel log:\n'
	dmesg | tail -n 8
	exit 1
}

h1() { ip netns exec h1 "$@"; }
h2() { ip netns exec h2 "$@"; }
one() { ip netns exec one "$@"; }
root() { "$@"; }

# listening NAMESPACE PORT: waits until a TCP server is there.
listening()
{
	local port i
	port=$(printf ':%04X ' "$2")
	for ((i = 0; i < 100; i++)); do
		if "$1" cat /proc/net/tcp /proc/net/tcp6 | grep -q "$port.* 0A "; then
			return 0
		fi
		sleep 0.1
	done
	return 1
}

port=18515
# perftest NAME SERVER-NS DEVICE CLIENT-NS DEVICE ADDRESS TOOL ARGS...: runs a
# perftest pair and leaves the client's line of figures in $work/NAME.  On a
# busy machine perftest fails to measure the CPU's clock now and then and
# prints zeros: then once more.
perftest()
{
	local try
	for try in 1 2 3 4 5 6; do
		perftest_once "$@"
		grep -qE '^ *[0-9]+ +[0-9]+ +[0-9.]+ ' "$work/$1" || continue
		! grep -qE 'inf|nan| 0\.00 +0\.00 ' "$work/$1" || continue
		printf '    %-12s %-14s %s\n' "$1" "$7" "$(tr -s ' \t' ' ' <"$work/$1")"
		return 0
	done
	fail "$7 gave no figures in $try tries: $(cat "$work/$1")"
}

perftest_once()
{
	local name=$1 server=$2 sdev=$3 client=$4 cdev=$5 address=$6 pid
	shift 6
	port=$((port + 1))
	"$server" timeout 60 "$@" -d "$sdev" -p "$port" >"$work/server" 2>&1 &
	pid=$!
	if ! listening "$server" "$port" ||
		! "$client" timeout 60 "$@" -d "$cdev" -p "$port" "$address" >"$work/client" 2>&1; then
		kill "$pid" 2>/dev/null || :
		cat "$work/server" "$work/client" 2>/dev/null || :
		fail "$1 over $sdev and $cdev failed"
	fi
	wait "$pid" || :
	grep -E '^ *[0-9]+ +[0-9]+ ' "$work/client" | tail -n 1 >"$work/$name" || :
}

field()
{
	awk -v n="$2" '{ print $n }' "$work/$1"
}

# --- two hosts -----------------------------------------------------------------
title "two hosts: network namespaces h1 and h2, joined by veth (MTU $mtu)"
for ns in h1 h2 one; do
	ip netns add "$ns"
	ip -n "$ns" link set lo up
done
ip link add veth1 netns h1 mtu $mtu type veth peer name veth2 netns h2 mtu $mtu
for i in 1 2; do
	ip -n h$i addr add 192.0.2.$i/24 dev veth$i
	ip -n h$i addr add 2001:db8::$i/64 dev veth$i nodad
	ip -n h$i link set veth$i up
done
ip -n one link add dummy3 mtu $mtu type dummy
ip -n one addr add 198.51.100.1/24 dev dummy3
ip -n one link set dummy3 up

for i in 1 2; do
	run ip netns exec h$i rdma link add sr$i type "$type" netdev veth$i
done
run ip netns exec h1 rdma link show sr1/1
run ip netns exec h2 rdma link show sr2/1
run ip netns exec h1 ibv_devinfo -d sr1

title "rping: h2 reads and writes memory of h1, and checks it"
h1 timeout 40 rping -s -a 192.0.2.1 -C 4 >"$work/rping" 2>&1 &
server=$!
for ((i = 0; i < 50; i++)); do
	h1 rdma resource show cm_id 2>/dev/null | grep -q LISTEN && break
	sleep 0.1
done
run ip netns exec h2 timeout 30 rping -c -a 192.0.2.1 -C 4 -v ||
	fail "rping failed; its server said: $(cat "$work/rping")"
wait "$server" || :

# --- the figures ---------------------------------------------------------------
title "measuring (softrnic h1 to h2; then softrnic, rxe: one device to itself; then TCP)"
lat=(-F -s 64 -n "${TEST_DEMO_LAT:-1000}")
bw=(-F -s 65536 -n "${TEST_DEMO_BW:-500}")

rdma_set()
{
	perftest "$1-lat" "$2" "$3" "$4" "$5" "$6" ib_send_lat "${lat[@]}"
	perftest "$1-write" "$2" "$3" "$4" "$5" "$6" ib_write_bw "${bw[@]}"
	perftest "$1-read" "$2" "$3" "$4" "$5" "$6" ib_read_bw "${bw[@]}"
}
rdma_set pair h1 sr1 h2 sr2 192.0.2.1

one rdma link add sr3 type "$type" netdev dummy3
rdma_set self one sr3 one sr3 198.51.100.1
one rdma link delete sr3

ip link add dummy4 mtu $mtu type dummy
ip addr add 198.51.100.1/24 dev dummy4
ip link set dummy4 up
rdma link add rxe4 type rxe netdev dummy4
rdma_set rxe root rxe4 root rxe4 198.51.100.1
rdma link delete rxe4

h1 timeout 60 iperf3 -s -1 -p 5201 >/dev/null 2>&1 &
server=$!
listening h1 5201 || fail "iperf3 does not listen"
h2 timeout 60 iperf3 -c 192.0.2.1 -p 5201 -l 64K -t 2 -J >"$work/iperf" || fail "iperf3 failed"
wait "$server" || :
tcp_bw=$(awk -F'[:,]' '/"sum_received"/ { on = 1 }
	on && /bits_per_second/ { printf "%.2f", $2 / 8 / 1048576; exit }' "$work/iperf")
h1 timeout 60 qperf -lp 19765 >/dev/null 2>&1 &
server=$!
listening h1 19765 || fail "qperf does not listen"
h2 timeout 60 qperf -lp 19765 -t 2 -m 64 -uu 192.0.2.1 tcp_lat >"$work/qperf" || fail "qperf failed"
kill "$server" 2>/dev/null || :
wait "$server" 2>/dev/null || :
# qperf -uu: plain numbers in ns or s
tcp_lat=$(awk '/latency/ { v = $3; u = $4
	if (u == "ns") v /= 1000; else if (u == "ms") v *= 1000; else if (u == "sec") v *= 1e6
	printf "%.2f", v }' "$work/qperf")
printf '    %-12s %s us, %s MB/s\n' tcp "$tcp_lat" "$tcp_bw"

# row LABEL KIND PAIR TCP SELF RXE: KIND says whether less or more is better.
row()
{
	awk -v label="$1" -v kind="$2" -v p="$3" -v t="$4" -v s="$5" -v r="$6" 'BEGIN {
		if (kind == "less") { pt = t / p; sr = r / s } else { pt = p / t; sr = s / r }
		printf "%-29s %9.2f %9.2f %7.2fx   %9.2f %9.2f %7.2fx\n", label, p, t, pt, s, r, sr
	}'
}

title "softrnic beside TCP and rxe, $(uname -r), $(nproc) CPUs$(
	[ "$SRN_KERNEL" != 6.1 ] || grep -q hypervisor /proc/cpuinfo && echo ' (emulated or virtual: compare the columns, not with other machines)')"
cat <<-'E2'

	                                   from host h1 to host h2           one device to itself
	                               softrnic       TCP    ratio    softrnic       rxe    ratio
E2
row "ib_send_lat, 64 B (us)" less "$(field pair-lat 5)" "$tcp_lat" "$(field self-lat 5)" "$(field rxe-lat 5)"
row "ib_write_bw, 64 KiB (MB/s)" more "$(field pair-write 4)" "$tcp_bw" "$(field self-write 4)" "$(field rxe-write 4)"
row "ib_read_bw, 64 KiB (MB/s)" more "$(field pair-read 4)" "$tcp_bw" "$(field self-read 4)" "$(field rxe-read 4)"
cat <<-'E2'

	Ratio: how many times faster softrnic is. TCP: qperf tcp_lat (64 B), iperf3 (64 KiB
	writes). Latency is typical, one way; MB is 2^20 bytes.
E2

for i in 1 2; do
	ip netns exec h$i rdma link delete sr$i
done
