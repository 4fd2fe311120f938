#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run-interop.sh [--quick|--full]
#
# softrnic and the kernel's rxe talk to each other, each in both roles. Runs
# inside a guest, as root (scripts/guest.sh --kernel 6.1). rxe of that kernel
# works in the initial namespace only:
#
#	   initial namespace                  namespace h2
#	+----------------+                +----------------+
#	|    rxe r1      |                |    softrnic d2 |
#	|  v1            |------veth------|            v2  |
#	| 192.0.2.1/24   |    MTU 4400    |   192.0.2.2/24 |
#	| 2001:db8::1/64 |                | 2001:db8::2/64 |
#	+----------------+                +----------------+
#
# What rxe is known to do wrong by itself is not asked of it: see the filters.
# The last line has the totals.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage='usage: run-interop.sh [--quick|--full]'
while [ $# -gt 0 ]; do
	case $1 in
	--quick) LEVEL=quick ;;
	--full) LEVEL=full ;;
	*) die "unknown argument '$1'; $usage" ;;
	esac
	shift
done
[ "$(id -u)" -eq 0 ] || die "needs root: run it in a guest, scripts/guest.sh --kernel 6.1 -- tests/verbs/run-interop.sh"
[ -x "$VERBS_BIN/data" ] || die "the test programs are not built: make -C tests/verbs"
host1=()

cleanup()
{
	local rc=$?
	trap - EXIT
	# shellcheck disable=SC2046	# process ids
	kill $(jobs -p) 2>/dev/null || :
	timeout 10 rdma link delete r1 2>/dev/null || :
	timeout 10 rdma link delete d2 2>/dev/null || :
	ip link del v1 2>/dev/null || :
	ip netns del h2 2>/dev/null || :
	rm -rf "$SCRATCH"
	exit "$rc"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
SCRATCH=$(mktemp -d)
mkdir -p "$(dirname "$RESULTS")"
: >"$RESULTS"
measure_scale

report "# kernel $(uname -r), rxe and softrnic, $LEVEL, deadlines x$SCALE"
ip netns add h2
n2 ip link set lo up
ip link add v1 mtu 4400 type veth peer name v2 netns h2 mtu 4400
ip addr add 192.0.2.1/24 dev v1
ip addr add 2001:db8::1/64 dev v1 nodad
n2 ip addr add 192.0.2.2/24 dev v2
n2 ip addr add 2001:db8::2/64 dev v2 nodad
ip link set v1 up
n2 ip link set v2 up
check "rxe link in the initial namespace" rdma link add r1 type rxe netdev v1
check "softrnic link beside it, in another namespace [B08]" n2 rdma link add d2 type roce netdev v2

all_gids()
{
	gid r1 4 && gid r1 6 && gid d2@h2 4 && gid d2@h2 6
}
check "GIDs" eventually 10 all_gids

# both NAME ARGS-OF-RXE'S-SIDE ARGS-OF-OURS TOOL ARGS...: a tool whose server
# listens on TCP port 18515, with rxe as server, then as client.
both()
{
	local name=$1 rxe=$2 own=$3 tool=$4 args="${*:5}"
	server_on=1
	pair "$name, rxe serves" 25 tcp:18515 "$tool $rxe $args" "$tool $own $args 192.0.2.1"
	server_on=2
	pair "$name, softrnic serves" 25 tcp:18515 "$tool $own $args" "$tool $rxe $args 192.0.2.2"
	server_on=1
}

# cm NAME SERVER-ARGS CLIENT-ARGS: the same for rdma_cm tools, ADDR standing for
# the server's address.
cm()
{
	local name=$1 serve=$2 use=$3 f addr i
	for f in 4 6; do
		for i in 1 2; do
			addr=192.0.2.$i
			[ "$f" = 4 ] || addr=2001:db8::$i
			server_on=$i
			pair "$name v$f, $([ $i = 1 ] && echo rxe || echo softrnic) serves [B39]" 20 cm \
				"${serve//ADDR/$addr}" "${use//ADDR/$addr}"
		done
	done
	server_on=1
}

server_ends=any
cm "rping" "rping -s -a ADDR -C 10 -V" "rping -c -a ADDR -C 10 -V"
server_ends=1
cm "ucmatose" "ucmatose -b ADDR -c 2 -C 10 -S 3000" "ucmatose -s ADDR -c 2 -C 10 -S 3000"
cm "udaddy" "udaddy -b ADDR -c 2 -C 10 -S 500" "udaddy -s ADDR -c 2 -C 10 -S 500"
cm "rstream" "rstream -b ADDR -S 4000 -C 50 -T v" "rstream -s ADDR -S 4000 -C 50 -T v"

for f in 4 6; do
	g1=$(gid r1 $f) g2=$(gid d2@h2 $f)
	for tool in rc ud srq; do
		both "ibv_${tool}_pingpong v$f" "-d r1 -g $g1" "-d d2 -g $g2" "ibv_${tool}_pingpong" -n 50 -s 1000
	done
	for m in 256 512 1024 2048 4096; do
		[ "$LEVEL" = full ] || [ "$m" = 1024 ] || [ "$m" = 4096 ] || continue
		both "ibv_rc_pingpong v$f MTU $m, checked" "-d r1 -g $g1" "-d d2 -g $g2" \
			ibv_rc_pingpong -n 20 -s 65536 -m "$m" -c
	done
done
g1=$(gid r1 4) g2=$(gid d2@h2 4)
for verb in send write read atomic; do
	both "ib_${verb}_bw" "-d r1 -x $g1" "-d d2 -x $g2" "ib_${verb}_bw" -F -n 30
	both "ib_${verb}_lat" "-d r1 -x $g1" "-d d2 -x $g2" "ib_${verb}_lat" -F -n 50
done
both "ib_send_bw UD" "-d r1 -x $g1" "-d d2 -x $g2" ib_send_bw -F -n 30 -c UD -s 1024

# Every operation, size and MTU, both directions within.
program 150 data --devices r1,d2@h2 "--$LEVEL" --filter 'send v' --filter 'send_imm v' --filter 'write v' \
	--filter 'write_imm v' --filter 'read v' --filter 'cmp_swap' --filter 'fetch_add' --filter 'ud send' \
	--filter '32 elements' --filter 'pipeline' --filter 'every pad'
program 100 data --devices d2@h2,r1 --quick --filter 'mtu 1024' --filter '32 elements' --not 'send_inv'
# rxe asks, softrnic refuses; then the other way round, as far as rxe answers by the rules
program 60 errors --devices r1,d2@h2 --quick --filter 'remote access' --filter 'RNR retries' \
	--filter 'max_dest_rd_atomic 0'
program 60 errors --devices d2@h2,r1 --quick --set events=no --filter 'remote access, *: REM_ACCESS' --filter 'RNR' \
	--filter 'retries exhausted' --filter 'peer comes late'
program 60 queues --devices d2@h2,r1 --quick --filter 'PSN wraps' --filter 'fence' --filter 'atomic sum' \
	--filter 'write before send' --filter 'max_rd_atomic'
program 60 traffic --devices d2@h2,r1 --quick --set "cable=with rxe"
finish
