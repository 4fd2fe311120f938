#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [--quick|--full] [--type TYPE] [--only SECTION[,SECTION...]] [--not GLOB]...
#
# The tests of a live device. Runs inside a guest, as root (scripts/guest.sh):
#
#	   namespace h1                       namespace h2
#	+----------------+                +----------------+
#	| softrnic d1    |                |    softrnic d2 |
#	|  v1            |------veth------|            v2  |
#	| 192.0.2.1/24   |    MTU 4400    |   192.0.2.2/24 |
#	| 2001:db8::1/64 |                | 2001:db8::2/64 |
#	+----------------+                +----------------+
#
# Sections: links, data, errors, queues, ud, abuse, inject, loss, lifecycle,
# tools, perf, unload, exclusive. --type rxe runs them on the kernel's rxe (7.2 only: older ones
# do not cross namespaces), to see whether a test asks too much; --not leaves
# out tests of our programs by name, such as those that rxe does not survive.
#
# --quick, the default without TEST_LEVEL, is a covering subset for guests with
# an emulated CPU. Checks go to stdout and to $SRN_OUT/run.txt; the last line
# has the totals.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage='usage: run.sh [--quick|--full] [--type TYPE] [--only SECTION,...] [--not GLOB]...'
sections=(links data errors queues ud abuse inject loss lifecycle tools perf unload exclusive)
type=roce
while [ $# -gt 0 ]; do
	case $1 in
	--quick) LEVEL=quick ;;
	--full) LEVEL=full ;;
	--type) [ $# -ge 2 ] || die "$usage"; type=$2; shift ;;
	--not) [ $# -ge 2 ] || die "$usage"; WITHOUT+=(--not "$2"); shift ;;
	--only) [ $# -ge 2 ] || die "$usage"; IFS=, read -ra sections <<<"$2"; shift ;;
	*) die "unknown argument '$1'; $usage" ;;
	esac
	shift
done
[ "$(id -u)" -eq 0 ] || die "needs root: run it in a guest, scripts/guest.sh --kernel 6.1 -- tests/verbs/run.sh"
[ -x "$VERBS_BIN/data" ] || die "the test programs are not built: make -C tests/verbs"
module=$(module_of "$type")
mtu=4400
both=d1@h1,d2@h2

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

add_link()
{
	n1 rdma link add d1 type "$type" netdev v1
	n2 rdma link add d2 type "$type" netdev v2
}

gid_present()
{
	gid d1@h1 4 && gid d1@h1 6 && gid d2@h2 4 && gid d2@h2 6
}

# --- links: what "rdma link" and the netdev do to the device ---------------------

port_field()
{
	n1 rdma link show d1/1 | sed -n "s/.* $1 \([^ ]*\).*/\1/p"
}

port_is()
{
	[ "$(port_field state)" = "$1" ]
}

mtu_is()
{
	[ "$(n1 ibv_devinfo -d d1 | sed -n 's/.*active_mtu:[[:space:]]*\([0-9]*\).*/\1/p')" = "$1" ]
}

no_gid()
{
	! gid d1@h1 4
}

pingpong()
{
	local g1 g2
	g1=$(gid d1@h1 "${2:-4}") g2=$(gid d2@h2 "${2:-4}") || :
	pair "$1" 20 tcp:18515 "ibv_rc_pingpong -d d1 -g ${g1:-0} -c -n 20" \
		"ibv_rc_pingpong -d d2 -g ${g2:-0} -c -n 20 192.0.2.1"
}

section_links()
{
	refused "second link on one netdev is refused [B09]" 'exist' \
		n1 rdma link add e1 type "$type" netdev v1
	refused "link on a netdev that is not there" 'no such|not found|invalid|cannot' \
		n1 rdma link add e1 type "$type" netdev nothing0
	check "rdma link names the netdev [B30]" grep -q 'netdev v1' <(n1 rdma link show d1/1)
	check "ibv_devinfo in the namespace [B12,B16]" n1 ibv_devinfo -v -d d1
	check "GIDs of IPv4 and IPv6 addresses [B37]" gid_present
	pingpong "traffic between namespaces [B16]"

	check "port goes down with the netdev [B27]" link_down
	check "port comes back [B27]" link_up
	check "GIDs come back [B27]" eventually 5 gid_present
	pingpong "traffic after down and up [B27]"

	ip -n h1 link set v1 mtu 1500
	check "netdev MTU 1500 gives 1024 [R070,B28]" eventually 5 mtu_is 1024
	ip -n h1 link set v1 mtu "$mtu"
	check "netdev MTU $mtu gives 4096 [B28]" eventually 5 mtu_is 4096

	ip -n h1 addr del 192.0.2.1/24 dev v1
	check "GID goes with its address [B37]" eventually 5 no_gid
	ip -n h1 addr add 192.0.2.1/24 dev v1
	check "GID comes with its address [B37]" eventually 5 gid_present

	ip -n h1 link set v1 down
	ip -n h1 link set v1 name renamed
	check "netdev renamed [B30]" grep -q 'netdev renamed' <(n1 rdma link show d1/1)
	ip -n h1 link set renamed name v1
	bring_up
	eventually 5 gid_present || :
	eventually 5 no_tentative || :
	pingpong "traffic after renames [B30]" 6

	n1 rdma link delete d1
	check "a deleted link is gone" test -z "$(rdma link show d1/1 2>/dev/null)"
	n1 rdma link add d1 type "$type" netdev v1
	check "and can be made again" eventually 5 gid_present
	other_owner
	netdev_kinds
}

link_down()
{
	ip -n h1 link set v1 down
	eventually 5 port_is DOWN
}

# bring_up: v1 with what going down took away.
bring_up()
{
	ip -n h1 link set v1 up
	ip -n h1 addr replace 2001:db8::1/64 dev v1 nodad
	ip -n h1 route replace 224.0.0.0/4 dev v1
}

link_up()
{
	bring_up
	eventually 5 port_is ACTIVE
}

# UDP port 4791 of a namespace has one owner.
other_owner()
{
	local name="port 4791 in use by rxe is an error that says so [B08]"
	if [ "$module" = rdma_rxe ] || ! modprobe -q rdma_rxe; then
		skip "$name" "needs rxe beside the device"
		return 0
	fi
	ip link add own0 type dummy
	ip link add own1 type dummy
	ip link set own0 up
	ip link set own1 up
	if rdma link add r0 type rxe netdev own0 2>/dev/null; then
		refused "$name" 'in use' rdma link add e1 type "$type" netdev own1
		rdma link delete r0
	else
		skip "$name" "rxe adds no link"
	fi
	ip link del own0
	ip link del own1
	modprobe -qr rdma_rxe || :
}

# Every kind of netdev carries a device that talks to itself. rdma_cm looks for
# RoCE GIDs of netdevs of type ARPHRD_ETHER only: no rping on tun and lo.
netdev_kinds()
{
	local kind addr=198.51.100.1 dev make kinds=(dummy bond tun lo)
	[ "$LEVEL" = quick ] || kinds+=(bridge veth macvlan)
	modprobe -q tun || :
	for kind in "${kinds[@]}"; do
		dev=k0
		case $kind in
		macvlan) make="ip link add k0 link v1 type macvlan" ;;
		veth) make="ip link add k0 type veth peer name k1" ;;
		tun) make="ip tuntap add k0 mode tun" ;;
		lo) make=true dev=lo ;;
		*) make="ip link add k0 type $kind" ;;
		esac
		# shellcheck disable=SC2086	# words of a command
		if ! n1 $make 2>/dev/null; then
			skip "device on $kind [B32,B33]" "the kernel has none"
			continue
		fi
		[ "$kind" != veth ] || n1 ip link set k1 up
		if [ "$kind" = bond ]; then
			n1 ip link add k1 type dummy
			n1 ip link set k1 master k0
		elif [ "$kind" = bridge ]; then
			n1 ip link add k1 type dummy
			n1 ip link set k1 master k0
			n1 ip link set k1 up
		fi
		n1 ip link set "$dev" up
		n1 ip addr add "$addr/24" dev "$dev"
		if n1 timeout 10 rdma link add e1 type "$type" netdev "$dev" 2>"$SCRATCH/err"; then
			check "device on $kind carries data to itself [B32,B33,B34]" "$VERBS_BIN/data" \
				--devices e1@h1 --family 4 --scale "$SCALE" --filter 'send v4 mtu 1024'
			[ "$kind" = tun ] || [ "$kind" = lo ] ||
				{ [ "$LEVEL" = quick ] && [ "$kind" != dummy ] && [ "$kind" != bond ]; } ||
				own_rping "rping on $kind to itself [B32,B33,B34]" "$addr"
			check "its link can be deleted ($kind)" n1 rdma link delete e1
		else
			not_ok "device on $kind [B32,B33]" "$(tail -n 1 "$SCRATCH/err")"
		fi
		if [ "$kind" = lo ]; then
			n1 ip addr del "$addr/24" dev lo
		else
			n1 ip link del k0
		fi
		n1 ip link del k1 2>/dev/null || :
	done
}

# rping of h1 with one of its own addresses.
own_rping()
{
	local name=$1 rc=0 pid
	"${host1[@]}" timeout -k 2 $((15 * SCALE)) rping -s -a "$2" -C 5 -V >"$SCRATCH/server" 2>&1 &
	pid=$!
	eventually 5 cm_listens || :
	n1 timeout -k 2 $((15 * SCALE)) rping -c -a "$2" -C 5 -V >"$SCRATCH/client" 2>&1 || rc=$?
	kill "$pid" 2>/dev/null || :
	wait "$pid" || :
	if [ "$rc" -eq 0 ]; then
		ok "$name"
	else
		not_ok "$name" "client status $rc: $(tail -n 1 "$SCRATCH/client")"
	fi
}

# --- our own programs ------------------------------------------------------------

# matrix: data with every operation; a KASAN kernel takes the covering subset.
section_data()
{
	local level=$LEVEL
	[[ ${SRN_KERNEL:-} != *kasan* ]] || level=quick
	program 150 data --devices "$both" "--$level"
	# a device to itself
	program 60 data --devices d1@h1 --quick --family 4 --filter 'send v4 mtu 1024' \
		--filter 'write v4 mtu 1024' --filter 'read v4 mtu 1024' --filter fetch_add --filter 'ud send v4'
}

section_errors()
{
	program 120 errors --devices "$both" "--$LEVEL"
	[ "$LEVEL" = quick ] || program 60 errors --devices d1@h1 --quick --filter 'access'
}

section_queues()
{
	# for the test that registers huge pages
	[ ! -w /proc/sys/vm/nr_hugepages ] || echo 8 >/proc/sys/vm/nr_hugepages
	program 150 queues --devices "$both" "--$LEVEL"
}

section_ud()
{
	program 60 ud --devices "$both" "--$LEVEL" --family 4
	program 60 ud --devices "$both" "--$LEVEL" --family 6
}

section_abuse()
{
	program 120 abuse --devices "$both" "--$LEVEL"
}

# Its long form (--full, five minutes a family) is for a developer at work on the
# receive path.
section_inject()
{
	local family
	[ "$type" = roce ] || { skip "inject: forged packets" "they are made for our device"; return 0; }
	for family in 4 6; do
		[ "$LEVEL" = full ] || [ $family = 4 ] || continue
		program 90 inject --devices "$both" --quick --family $family
	done
}

section_lifecycle()
{
	program 150 lifecycle --devices "$both" "--$LEVEL" --set "type=$type" --set "module=$module"
}

# --- tools of others --------------------------------------------------------------

section_tools()
{
	local f addr g1 g2 tool count=10 rounds=1 i
	[ "$LEVEL" = quick ] || rounds=2
	for ((i = 0; i < rounds; i++)); do
		for f in 4 6; do
			addr=192.0.2.1
			[ "$f" = 4 ] || addr=2001:db8::1
			# the server of rping notices the end, or the disconnect, first
			server_ends=any
			pair "rping v$f [B39]" 20 cm "rping -s -a $addr -C $count -V" \
				"rping -c -a $addr -C $count -V"
			pair "rping v$f with 60000 bytes [B39]" 20 cm "rping -s -a $addr -C 5 -V -S 60000" \
				"rping -c -a $addr -C 5 -V -S 60000"
			server_ends=1
			g1=$(gid d1@h1 $f) g2=$(gid d2@h2 $f) || :
			for tool in rc ud srq; do
				pair "ibv_${tool}_pingpong v$f" 20 tcp:18515 \
					"ibv_${tool}_pingpong -d d1 -g $g1 -n 100 -s 1000" \
					"ibv_${tool}_pingpong -d d2 -g $g2 -n 100 -s 1000 192.0.2.1"
			done
			# quick: the rest over IPv4 only
			[ "$LEVEL" = full ] || [ $f = 4 ] || continue
			pair "ucmatose v$f [B39]" 20 cm "ucmatose -b $addr -c 3 -C $count -S 3000" \
				"ucmatose -s $addr -c 3 -C $count -S 3000"
			pair "udaddy v$f [B39]" 20 cm "udaddy -b $addr -c 2 -C $count -S 500" \
				"udaddy -s $addr -c 2 -C $count -S 500"
			pair "rstream v$f [B39]" 20 cm "rstream -b $addr -S 4000 -C 50 -T v" \
				"rstream -s $addr -S 4000 -C 50 -T v"
			# the server of rcopy listens on IPv4 only
			[ "$f" = 6 ] || rcopy_files "rcopy [B39]" "$addr"
			for tool in rc ud srq; do
				pair "ibv_${tool}_pingpong v$f, events" 20 tcp:18515 \
					"ibv_${tool}_pingpong -d d1 -g $g1 -n 100 -s 1000 -e" \
					"ibv_${tool}_pingpong -d d2 -g $g2 -n 100 -s 1000 -e 192.0.2.1"
			done
			pair "ibv_rc_pingpong v$f, 64 KiB, MTU 4096, checked" 20 tcp:18515 \
				"ibv_rc_pingpong -d d1 -g $g1 -n 30 -s 65536 -m 4096 -c" \
				"ibv_rc_pingpong -d d2 -g $g2 -n 30 -s 65536 -m 4096 -c 192.0.2.1"
			pair "ibv_rc_pingpong v$f, ibv_wr_* interface" 20 tcp:18515 \
				"ibv_rc_pingpong -d d1 -g $g1 -n 50 -N" \
				"ibv_rc_pingpong -d d2 -g $g2 -n 50 -N 192.0.2.1"
		done
		server_ends=any
		pair "rping v6 link-local [B39]" 20 cm "rping -s -a ::0 -C 5 -V" \
			"rping -c -a $(link_local)%v2 -C 5 -V"
		server_ends=1
	done
}

link_local()
{
	ip -n h1 -6 -o addr show dev v1 scope link | sed -n 's/.*inet6 \([^/]*\).*/\1/p' | head -n 1
}

same_copy()
{
	cmp "$SCRATCH/source" "$SCRATCH/copy"
}

rcopy_files()
{
	head -c 300000 /dev/urandom >"$SCRATCH/source"
	rm -f "$SCRATCH/copy"
	server_ends=0 verify=same_copy
	pair "$1" 20 cm rcopy "rcopy $SCRATCH/source $2:$SCRATCH/copy"
	server_ends=1 verify=true
}

# perf NAME ARGS: one perftest tool, on both hosts with the same arguments.
perf()
{
	local name=$1 tool=$2 args="${*:3}"
	pair "$name" 25 tcp:18515 "$tool -d d1 -x $g1 -F $args" \
		"$tool -d d2 -x $g2 -F $args 192.0.2.1"
}

section_perf()
{
	local f verb kind families=(4) g1 g2
	[ "$LEVEL" = quick ] || families=(4 6)
	for f in "${families[@]}"; do
		g1=$(gid d1@h1 "$f") g2=$(gid d2@h2 "$f") || :
		for verb in send write read atomic; do
			perf "ib_${verb}_bw v$f, polling" "ib_${verb}_bw" -n 50
			perf "ib_${verb}_lat v$f, polling" "ib_${verb}_lat" -n 100
			# perftest has no events with writes
			[ "$verb" != write ] || continue
			perf "ib_${verb}_bw v$f, events" "ib_${verb}_bw" -n 50 -e
			perf "ib_${verb}_lat v$f, events" "ib_${verb}_lat" -n 50 -e
		done
		perf "ib_send_bw v$f, UD" ib_send_bw -n 50 -c UD -s 1024
		[ "$LEVEL" = full ] && [ "$f" = 4 ] || continue
		perf "ib_send_lat v$f, UD" ib_send_lat -n 50 -c UD
		perf "ib_send_bw v$f, SRQ" ib_send_bw -n 50 --use-srq -q 2
		perf "ib_write_bw v$f, both directions, 4 queue pairs" ib_write_bw -n 50 -b -q 4
		perf "ib_write_bw v$f, 1 MiB" ib_write_bw -n 10 -s 1048576
		perf "ib_write_lat v$f, inline 220" ib_write_lat -n 50 -I 220
	done
	pair "ib_send_bw over rdma_cm" 25 tcp:18515 "ib_send_bw -R -n 50 -F" "ib_send_bw -R -n 50 -F 192.0.2.1"
	if [ "$LEVEL" = full ]; then
		pair "ib_write_lat over rdma_cm" 25 tcp:18515 "ib_write_lat -R -n 50 -F" \
			"ib_write_lat -R -n 50 -F 192.0.2.1"
		perf "ib_send_bw, all sizes" ib_send_bw -n 20 -a
		perf "ib_write_bw, all sizes" ib_write_bw -n 20 -a
		perf "ib_read_bw, all sizes" ib_read_bw -n 20 -a
	fi
}

# --- a bad cable -------------------------------------------------------------------

# bad_cable NETEM...: both directions. The device hands down chains of packets
# as one; a token bucket too small for two packets takes them apart, so that
# the fault hits each packet by itself. "chains" instead of it hits whole chains.
bad_cable()
{
	local i burst=$((mtu + 100))
	good_cable
	for i in 1 2; do
		if [ "$1" = chains ]; then
			ip netns exec "h$i" tc qdisc add dev "v$i" root netem "${@:2}" limit 10000
		else
			ip netns exec "h$i" tc qdisc add dev "v$i" root handle 1: tbf \
				rate 20gbit burst "$burst" limit 20000000
			ip netns exec "h$i" tc qdisc add dev "v$i" parent 1:1 handle 10: netem "$@" limit 10000
		fi
	done
}

good_cable()
{
	n1 tc qdisc del dev v1 root 2>/dev/null || :
	n2 tc qdisc del dev v2 root 2>/dev/null || :
}

section_loss()
{
	local what words cables=('loss 1%' 'loss 5%' 'delay 500us reorder 75% 50%' 'duplicate 5%' 'chains loss 5%')
	[ "$LEVEL" = quick ] || cables+=('corrupt 1%' 'delay 1ms 1ms' 'chains delay 1ms 1ms')
	for what in "${cables[@]}"; do
		read -ra words <<<"$what"
		if bad_cable "${words[@]}" 2>"$SCRATCH/err"; then
			program 100 traffic --devices "$both" "--$LEVEL" --set "cable=$what"
		else
			skip "$what" "the kernel has no netem or tbf: $(tail -n 1 "$SCRATCH/err")"
		fi
	done
	good_cable
	pingpong "traffic on the good cable again"
}

# --- the end --------------------------------------------------------------------------

nothing_left()
{
	! rdma resource show 2>/dev/null | grep -E '^[0-9]+: (d1|d2):' |
		grep -qE '(pd|cq|qp|mr) ([2-9]|[1-9][0-9])'
}

section_unload()
{
	check "no resources are left [B15]" eventually 5 nothing_left
	check "link delete d1" timeout 10 rdma link delete d1
	check "link delete d2" timeout 10 rdma link delete d2
	check "no UDP port is left open [B07]" test -z "$(n1 ss -Hlun 'sport = :4791')"
	check "module reference count is 0 [B15]" eventually 5 test "$(refcount "$module")" = 0
	check "rmmod [B15]" rmmod "$module"
	check "and the next link loads it again [B01]" n1 rdma link add d1 type "$type" netdev v1
	check "which works" eventually 5 gid d1@h1 4
	rdma link delete d1 || :
	rmmod "$module" || :
}

# Every namespace has RDMA devices of its own. The mode can be set only while
# there is no other namespace.
section_exclusive()
{
	local i
	remove_hosts
	if ! eventually 5 rdma system set netns exclusive; then
		skip "exclusive namespaces" "the mode cannot be set: $(rdma system set netns exclusive 2>&1 | tail -n 1)"
		make_hosts "$mtu"
		return 0
	fi
	make_hosts "$mtu"
	add_link
	for i in 1 2; do
		# before 7.0 a device starts out in the initial namespace
		"n$i" rdma link show "d$i/1" >/dev/null 2>&1 ||
			check "d$i moves to its netdev's namespace [B18]" rdma dev set "d$i" netns "h$i"
	done
	check "GIDs in exclusive mode [B16]" eventually 5 gid_present
	refused "d1 is not seen in h2 [B16]" 'wrong|not|no such' n2 rdma link show d1/1
	refused "d1 is not seen in the initial namespace [B16]" 'wrong|not|no such' rdma link show d1/1
	refused "d1 cannot be opened in h2 [B16]" '.' n2 ibv_devinfo -d d1
	pingpong "traffic in exclusive mode [B16]"
	# away and back, with a process that has it open
	"${host1[@]}" ibv_asyncwatch -d d1 >"$SCRATCH/watch" 2>&1 &
	i=$!
	eventually 5 grep -q async "$SCRATCH/watch" || :
	check "d1 moves away while it is open [B18]" n1 rdma dev set d1 netns h2
	check "it is there [B18]" n2 rdma link show d1/1
	refused "and no longer here [B18]" 'wrong|not|no such' n1 rdma link show d1/1
	check "its owner was told [B18]" eventually 5 grep -qi fatal "$SCRATCH/watch"
	kill "$i" 2>/dev/null || :
	wait "$i" || :
	check "it moves back [B18]" n2 rdma dev set d1 netns h1
	check "GIDs after moving [B18]" eventually 5 gid_present
	pingpong "traffic after moving [B18]"
	check "link delete in its namespace" n1 rdma link delete d1
	check "namespace deleted with its device in exclusive mode [B18]" ip netns del h2
	check "whose device goes [B18]" eventually 10 no_device
	remove_hosts
	eventually 10 rdma system set netns shared ||
		not_ok "back to shared mode" "$(rdma system set netns shared 2>&1 | tail -n 1)"
	make_hosts "$mtu"
}

no_device()
{
	[ -z "$(find /sys/class/infiniband/ -mindepth 1)" ] && [ -z "$(rdma link show)" ]
}

# --- all of it -----------------------------------------------------------------------

report "# kernel $(uname -r), type $type, $LEVEL, deadlines x$SCALE"
remove_hosts
make_hosts "$mtu"
if ! n1 rdma link add d1 type "$type" netdev v1 2>"$SCRATCH/err" ||
	! n2 rdma link add d2 type "$type" netdev v2 2>"$SCRATCH/err"; then
	not_ok "rdma link add type $type [B01,B16]" "$(tail -n 1 "$SCRATCH/err")"
	finish || exit 1
fi
ok "rdma link add loads the module and makes devices in namespaces [B01,B16]"
eventually 5 gid_present || not_ok "GIDs" "not all of the addresses have one"
for section in "${sections[@]}"; do
	[ "$(type -t "section_$section")" = function ] || die "no section '$section'; there are: links data errors queues ud abuse inject loss lifecycle tools perf unload exclusive"
	[ -z "$out_of_time" ] || break
	from=$SECONDS
	report "# $section"
	"section_$section"
	report "# $section: $((SECONDS - from)) s"
done
finish
