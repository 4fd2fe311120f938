#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# capture.sh [--type TYPE] [--keep DIR]
#
# What a device sends, seen on the wire: traffic of every kind is captured and
# each frame taken apart by srn-decode, and by tshark where it is installed.
# Runs inside a guest, as root (scripts/guest.sh):
#
#	   namespace h1                          namespace h2
#	+----------------+                   +----------------+
#	| softrnic d1    |                   |    softrnic d2 |
#	|  v1            |-------veth--------|            v2  |
#	| 192.0.2.1/24   |     MTU 4400      |   192.0.2.2/24 |
#	| 2001:db8::1/64 |         |         | 2001:db8::2/64 |
#	+----------------+         |         +----------------+
#	                        tcpdump on v1
#
# tx-gso-list is off at both ends, so that runs of packets are split before
# they are captured. For each capture: no frame malformed, every ICRC good, the
# fields that the device chooses are right, no PSN missing, the opcodes of that
# traffic are there. --keep leaves the captures in DIR.
# The last line of output has the totals.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../verbs/lib.sh"

usage='usage: capture.sh [--type TYPE] [--keep DIR]'
type=roce keep=
while [ $# -gt 0 ]; do
	[ $# -ge 2 ] || die "$usage"
	case $1 in
	--type) type=$2 ;;
	--keep) keep=$2 ;;
	*) die "unknown argument '$1'; $usage" ;;
	esac
	shift 2
done
decode=$VERBS_TOP/build/tools/srn-decode
[ "$(id -u)" -eq 0 ] || die "needs root: run it in a guest, scripts/guest.sh --kernel 7.2 -- tests/net/capture.sh"
[ -x "$VERBS_BIN/data" ] || die "the test programs are not built: make -C tests/verbs"
[ -x "$decode" ] || die "srn-decode is not built: make -C tools"
both=d1@h1,d2@h2
module=$(module_of "$type")

cleanup()
{
	local rc=$?
	trap - EXIT
	# shellcheck disable=SC2046	# process ids
	kill $(jobs -p) 2>/dev/null || :
	remove_hosts 2>/dev/null || :
	rm -rf "$SCRATCH"
	exit "$rc"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
SCRATCH=$(mktemp -d)
mkdir -p "$(dirname "$RESULTS")"
: >"$RESULTS"
measure_scale

# --- what is asserted of a capture -------------------------------------------

# none FILTER: no frame matches a filter of pcap.
none()
{
	local found
	found=$(tcpdump -nnr "$pcap" -c 1 "$1" 2>/dev/null) || return 1
	[ -z "$found" ] || { echo "$found"; return 1; }
}

has_opcodes()
{
	local op rc=0
	for op in "$@"; do
		grep -q " $op qp=" "$SCRATCH/lines" || { echo "no $op among $(wc -l <"$SCRATCH/lines") frames"; rc=1; }
	done
	return "$rc"
}

no_gaps()
{
	! grep -vE ' gaps=0 | UD | RoCE frames, ' "$SCRATCH/flows"
}

sound()
{
	"$decode" --check --quiet "$pcap"
}

# ACKs and answers ask for none; the request that ends a message, or a READ, that
# nothing follows has to, or its loss would only be found by a timer.
ackreq_only_in_requests()
{
	! grep -E ' RC_(ACK|READ_RESP_[A-Z]+|ATOMIC_ACK) .* ackreq ' "$SCRATCH/lines"
}

# the last request to each queue pair asks for an acknowledgement
last_asks()
{
	awk '/ RC_/ && !/ RC_(ACK|READ_RESP|ATOMIC_ACK)/ {
		for (i = 1; i <= NF; i++) if ($i ~ /^qp=/) { sub(/:[0-9]+$/, "", $2); key = $2 " " $i }
		last[key] = $0
	} END {
		for (key in last)
			if (last[key] !~ / ackreq | RC_READ_REQUEST | RC_(COMPARE_SWAP|FETCH_ADD) /) { print last[key]; bad = 1 }
		exit bad
	}' "$SCRATCH/lines"
}

# tshark guesses what a payload may be, and finds our patterns malformed: the
# guessers are switched off.
not_malformed_to_tshark()
{
	local found guessers
	mapfile -t guessers < <(tshark -G heuristic-decodes 2>/dev/null |
		awk '$1 == "infiniband.payload" && $2 != "ethertype" { print "--disable-protocol"; print $2 }')
	found=$(timeout 120 tshark -nr "$pcap" "${guessers[@]}" -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE \
		-o udp.ignore_ipv6_zero_checksum:TRUE \
		-Y '_ws.malformed || _ws.expert.severity == error || ip.checksum.status == bad || udp.checksum.status == bad' \
		-c 20000 2>"$SCRATCH/tshark") || { tail -n 1 "$SCRATCH/tshark"; return 1; }
	[ -z "$found" ] || { tail -n 1 <<<"$found"; return 1; }
}

# --- a capture ------------------------------------------------------------------

listens()
{
	grep -q 'listening on' "$SCRATCH/tcpdump"
}

# captured NAME OPCODES COMMAND...: the traffic of COMMAND, which counts as a
# check itself, then all that is asserted of its frames. $lossy is set where
# PSNs may be missing.
lossy=
captured()
{
	local name=$1 ops=$2 pcap pid dropped frames
	shift 2
	pcap=$SCRATCH/${name//[^A-Za-z0-9]/-}.pcap
	# what the last one said is not what this one says
	: >"$SCRATCH/tcpdump"
	ip netns exec h1 tcpdump -nn -i v1 -s 0 -B 65536 --time-stamp-precision=nano -w "$pcap" \
		udp port 4791 2>"$SCRATCH/tcpdump" &
	pid=$!
	eventually 5 listens || not_ok "$name: tcpdump" "$(tail -n 1 "$SCRATCH/tcpdump")"
	"$@"
	# the last frames reach tcpdump within its buffer's timeout
	sleep 1.2
	kill "$pid"
	wait "$pid" || :
	dropped=$(sed -n 's/^\([0-9]*\) packets\? dropped by kernel.*/\1/p' "$SCRATCH/tcpdump")

	"$decode" "$pcap" >"$SCRATCH/lines" || :
	"$decode" --quiet --summary "$pcap" >"$SCRATCH/flows" || :
	frames=$(wc -l <"$SCRATCH/lines")
	report "# $name: $frames frames, ${dropped:-?} not captured"
	check "$name: no frame is malformed, every ICRC is good [R011]" sound
	# shellcheck disable=SC2086	# a list
	check "$name: the opcodes are there" has_opcodes $ops
	check "$name: IPv4 has DF, ID 0 and no options [R003]" \
		none 'ip and (ip[6:2] != 0x4000 or ip[4:2] != 0 or ip[0] != 0x45)'
	check "$name: UDP checksum 0, source port of a flow [R006,R007]" \
		none '(ip and (udp[6:2] != 0 or udp[0:2] < 49152)) or (ip6 and (ip6[46:2] != 0 or ip6[40:2] < 49152))'
	check "$name: MigReq is 1, reserved bits are 0" \
		none '(ip and (udp[9] & 0x40 == 0 or udp[12] & 0x3f != 0 or udp[16] & 0x7f != 0)) or
		      (ip6 and (ip6[49] & 0x40 == 0 or ip6[52] & 0x3f != 0 or ip6[56] & 0x7f != 0))'
	check "$name: no response asks for an acknowledgement" ackreq_only_in_requests
	check "$name: the last request to a queue pair does" last_asks
	if [ -n "$lossy" ]; then
		:
	elif [ "${dropped:-1}" -eq 0 ]; then
		check "$name: no PSN is missing [R027,R032]" no_gaps
	else
		skip "$name: no PSN is missing [R027,R032]" "${dropped:-?} frames were not captured"
	fi
	if command -v tshark >/dev/null; then
		check "$name: tshark finds nothing malformed" not_malformed_to_tshark
	else
		skip "$name: tshark finds nothing malformed" "no tshark here"
	fi
	[ -z "$keep" ] || { mkdir -p "$keep"; cp "$pcap" "$keep/"; }
	rm -f "$pcap"
}

# --- traffic ----------------------------------------------------------------------

perf()
{
	local name=$1 tool=$2 args="${*:3}"
	pair "$name" 25 tcp:18515 "$tool -d d1 -x $g1 -F $args" \
		"$tool -d d2 -x $g2 -F $args 192.0.2.1"
}

data()
{
	local filter
	for filter in "$@"; do
		program 60 data --devices "$both" --quick --filter "$filter"
	done
}

gid_present()
{
	gid d1@h1 4 && gid d1@h1 6 && gid d2@h2 4 && gid d2@h2 6
}

traffic()
{
	local f
	for f in 4 6; do
		g1=$(gid d1@h1 "$f") g2=$(gid d2@h2 "$f")
		captured "write v$f" "RC_WRITE_FIRST RC_WRITE_MIDDLE RC_WRITE_LAST RC_ACK" \
			perf "ib_write_bw v$f" ib_write_bw -n 100
		captured "read v$f" "RC_READ_REQUEST RC_READ_RESP_FIRST RC_READ_RESP_MIDDLE RC_READ_RESP_LAST" \
			perf "ib_read_bw v$f" ib_read_bw -n 100 -m 1024
		captured "send v$f" "RC_SEND_FIRST RC_SEND_LAST RC_ACK" \
			perf "ib_send_bw v$f" ib_send_bw -n 100 -s 8191
		captured "matrix v$f" "RC_SEND_ONLY RC_SEND_LAST RC_WRITE_ONLY RC_WRITE_LAST RC_READ_RESP_ONLY" \
			data "send v$f mtu 1024" "write v$f mtu 1024" "read v$f mtu 1024"
		captured "atomic v$f" "RC_FETCH_ADD RC_ATOMIC_ACK" \
			perf "ib_atomic_bw v$f" ib_atomic_bw -n 100
		captured "compare and swap v$f" "RC_COMPARE_SWAP RC_ATOMIC_ACK" \
			perf "ib_atomic_lat v$f" ib_atomic_lat -A CMP_AND_SWAP -n 50
		captured "datagrams v$f" "UD_SEND_ONLY" \
			pair "ibv_ud_pingpong v$f" 20 tcp:18515 \
			"ibv_ud_pingpong -d d1 -g $g1 -n 100 -s 1001" \
			"ibv_ud_pingpong -d d2 -g $g2 -n 100 -s 1001 192.0.2.1"
		captured "multicast and others v$f" "UD_SEND_ONLY" \
			program 60 ud --devices "$both" --quick --family "$f"
	done
	server_ends=any
	captured "connection manager" "UD_SEND_ONLY RC_SEND_ONLY RC_WRITE_ONLY RC_READ_REQUEST RC_READ_RESP_ONLY" \
		pair "rping" 20 cm "rping -s -a 2001:db8::1 -C 10 -V" "rping -c -a 2001:db8::1 -C 10 -V"
	server_ends=1
	captured "with immediate" "RC_SEND_ONLY_IMM RC_SEND_LAST_IMM RC_WRITE_ONLY_IMM RC_WRITE_LAST_IMM UD_SEND_ONLY_IMM" \
		data imm
	captured "errors" "RC_ACK" program 120 errors --devices "$both" --quick
}

# What is sent again is right as well. The token bucket takes runs apart, so
# that each packet may be lost by itself.
losses()
{
	local i g1 g2
	for i in 1 2; do
		if ! ip netns exec "h$i" tc qdisc add dev "v$i" root handle 1: tbf \
			rate 20gbit burst 4500 limit 20000000 2>"$SCRATCH/err" ||
			! ip netns exec "h$i" tc qdisc add dev "v$i" parent 1:1 netem loss 2% \
				limit 10000 2>"$SCRATCH/err"; then
			skip "with loss" "the kernel has no netem or tbf: $(tail -n 1 "$SCRATCH/err")"
			return 0
		fi
	done
	lossy=1
	g1=$(gid d1@h1 4) g2=$(gid d2@h2 4)
	captured "write with loss" "RC_WRITE_MIDDLE RC_ACK" \
		perf "ib_write_bw with loss" ib_write_bw -n 100 -u 8
	check "write with loss: something was sent again" \
		grep -qE ' retransmitted=[1-9]' "$SCRATCH/flows"
	captured "read with loss" "RC_READ_REQUEST RC_READ_RESP_MIDDLE" \
		perf "ib_read_bw with loss" ib_read_bw -n 100 -u 8
	check "read with loss: something was sent again" \
		grep -qE ' retransmitted=[1-9]' "$SCRATCH/flows"
}

report "# kernel $(uname -r), type $type, deadlines x$SCALE"
remove_hosts
make_hosts 4400
# a run that is split early fills the backlog, which the cable stands for
sysctl -qw net.core.netdev_max_backlog=100000
for i in 1 2; do
	ip netns exec "h$i" rdma link add "d$i" type "$type" netdev "v$i" ||
		die "no link of type $type (module $module)"
	ip netns exec "h$i" ethtool -K "v$i" tx-gso-list off ||
		die "tx-gso-list of v$i cannot be switched off"
done
eventually 5 gid_present || not_ok "GIDs" "not all of the addresses have one"
traffic
losses
finish
