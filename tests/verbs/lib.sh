# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# What run.sh and run-interop.sh share: reporting of checks, the two hosts and
# the programs that run on them. To be sourced, inside a guest, as root.
#
# Every check prints one line, "ok - NAME", "not ok - NAME: WHY" or
# "skip - NAME: WHY"; finish prints the totals and returns 0 without failures.

VERBS_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
VERBS_BIN=$VERBS_TOP/build/verbs
RESULTS=${SRN_TEST_RESULTS:-${SRN_OUT:-$VERBS_TOP/build/guest-out}/$(basename "$0" .sh).txt}
# shellcheck disable=SC2034	# for the scripts that source this file
LEVEL=${TEST_LEVEL:-quick}
# arguments for every program: tests to leave out
WITHOUT=()
SCRATCH=
passed=0 failed=0 skipped=0
started=$SECONDS

die()
{
	printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
	exit 2
}

# --- reporting --------------------------------------------------------------

report()
{
	printf '%s\n' "$*" | tee -a "$RESULTS"
}

ok()
{
	passed=$((passed + 1))
	report "ok - $1"
}

not_ok()
{
	failed=$((failed + 1))
	report "not ok - $1: $2"
}

skip()
{
	skipped=$((skipped + 1))
	report "skip - $1: $2"
}

# check NAME COMMAND...: the command succeeds within 20 s; its last line of
# output is the reason when it does not.
check()
{
	local name=$1 out rc=0
	shift
	out=$(limited 20 "$@" 2>&1) || rc=$?
	if [ "$rc" -eq 0 ]; then
		ok "$name"
	else
		not_ok "$name" "'$*' gave status $rc: $(tail -n 1 <<<"$out")"
	fi
	return 0
}

# refused NAME PATTERN COMMAND...: the command fails and says PATTERN.
refused()
{
	local name=$1 pattern=$2 out rc=0
	shift 2
	out=$(limited 20 "$@" 2>&1) || rc=$?
	if [ "$rc" -eq 0 ]; then
		not_ok "$name" "'$*' succeeded"
	elif [ "$rc" -eq 124 ] || [ "$rc" -eq 137 ]; then
		not_ok "$name" "'$*' hung"
	elif ! grep -qiE "$pattern" <<<"$out"; then
		not_ok "$name" "'$*' says '$(tail -n 1 <<<"$out")', not '$pattern'"
	else
		ok "$name"
	fi
	return 0
}

finish()
{
	report "# $((SECONDS - started)) s"
	report "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

# --- time ---------------------------------------------------------------------

# How much longer than on a fast machine things may take here.
SCALE=1
measure_scale()
{
	case ${SRN_KERNEL:-$(uname -r)} in
	*kasan* | 6.*) SCALE=3 ;;
	esac
	SCALE=${SRN_TEST_SCALE:-$SCALE}
}

# What all checks together may take, so that this ends before its guest is ended.
budget()
{
	case ${SRN_KERNEL:-$(uname -r)} in
	*kasan*) echo "${SRN_TEST_BUDGET:-700}" ;;
	6.*) echo "${SRN_TEST_BUDGET:-500}" ;;
	*) echo "${SRN_TEST_BUDGET:-440}" ;;
	esac
}

# time_for NAME SECONDS: the smaller of SECONDS and what is left in $limit;
# fails when nothing is left, and says so once, as a failed check.
out_of_time=
time_for()
{
	local left=$(($(budget) - SECONDS + started))
	limit=$(($2 * SCALE))
	if [ "$left" -lt 5 ]; then
		[ -n "$out_of_time" ] || not_ok "$1" "no time left for it and what follows"
		out_of_time=1
		return 1
	fi
	[ "$limit" -le "$left" ] || limit=$left
}

# limited SECONDS COMMAND...: as timeout; after n1 and n2 as well. Other
# functions have to end by themselves.
limited()
{
	local seconds=$(($1 * SCALE))
	shift
	case $1 in
	n1) "${host1[@]}" timeout -k 5 "$seconds" "${@:2}" ;;
	n2) "${host2[@]}" timeout -k 5 "$seconds" "${@:2}" ;;
	*)
		if [ "$(type -t "$1")" = function ]; then
			"$@"
		else
			timeout -k 5 "$seconds" "$@"
		fi
		;;
	esac
}

# eventually SECONDS COMMAND...: until the command succeeds.
eventually()
{
	local end=$((SECONDS + $1 * SCALE + 1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# --- two hosts ------------------------------------------------------------------

# How to run a command on either host.
host1=(ip netns exec h1)
host2=(ip netns exec h2)

n1()
{
	"${host1[@]}" "$@"
}

n2()
{
	"${host2[@]}" "$@"
}

# make_hosts MTU: h1 and h2 and the cable between.
make_hosts()
{
	local mtu=$1 i
	for i in 1 2; do
		ip netns add "h$i"
		ip -n "h$i" link set lo up
	done
	ip link add v1 netns h1 mtu "$mtu" type veth peer name v2 netns h2 mtu "$mtu"
	for i in 1 2; do
		ip -n "h$i" addr add "192.0.2.$i/24" dev "v$i"
		ip -n "h$i" addr add "2001:db8::$i/64" dev "v$i" nodad
		ip -n "h$i" link set "v$i" up
		ip -n "h$i" route add 224.0.0.0/4 dev "v$i"
	done
	# link-local addresses are tentative for a second or two
	eventually 5 no_tentative || :
}

no_tentative()
{
	! { ip -n h1 -6 addr show tentative; ip -n h2 -6 addr show tentative; } | grep -q inet6
}

remove_hosts()
{
	local dev
	for dev in d1 d2 e1; do
		! rdma link show "$dev/1" >/dev/null 2>&1 || timeout 10 rdma link delete "$dev" || :
	done
	for dev in h1 h2; do
		[ ! -e "/run/netns/$dev" ] || ip netns del "$dev"
	done
}

# gid DEVICE@NETNS FAMILY: index of the GID of its address.
gid()
{
	"$VERBS_BIN/data" --devices "$1" --family "$2" --gid
}

# --- programs -------------------------------------------------------------------

# program SECONDS NAME ARGS...: one of our own test programs; each line of its
# report counts.
program()
{
	local limit seconds=$1 name=$2 rc=0 out=$SCRATCH/$2.out line totals=
	shift 2
	time_for "$name" "$seconds" || return 0
	if [ ! -x "$VERBS_BIN/$name" ]; then
		not_ok "$name" "not built: make -C tests/verbs"
		return 0
	fi
	# a pipe shows each line as it comes
	timeout -k 5 "$limit" "$VERBS_BIN/$name" --scale "$SCALE" "${WITHOUT[@]}" "$@" 2>&1 | tee "$out" |
		{ grep -vE '^[0-9]+ passed, ' || :; } || rc=$?
	grep -vE '^[0-9]+ passed, ' "$out" >>"$RESULTS" || :
	while read -r line; do
		case $line in
		'ok - '*) passed=$((passed + 1)) ;;
		'not ok - '*) failed=$((failed + 1)) ;;
		'skip - '*) skipped=$((skipped + 1)) ;;
		*' passed, '*) totals=$line ;;
		esac
	done <"$out"
	if [ "$rc" -eq 124 ] || [ "$rc" -eq 137 ]; then
		not_ok "$name" "still running after $limit s"
	elif [ -z "$totals" ]; then
		not_ok "$name" "ended early, status $rc: $(tail -n 1 "$out")"
	fi
	return 0
}

# tcp_listens PORT HOST
tcp_listens()
{
	[ -n "$("n$2" ss -Htln "sport = :$1")" ]
}

cm_listens()
{
	rdma resource show cm_id 2>/dev/null | grep -q 'state LISTEN'
}

# pair NAME SECONDS WAIT SERVER CLIENT: both commands, the server on host
# $server_on and the client on the other one, end with status 0 in time. WAIT says when the server is ready:
# tcp:PORT, cm, or nothing. SERVER and CLIENT are split at blanks. With
# server_ends=0 the server is one that never ends and is stopped, with "any" it
# has to end but its status means nothing; the command in $verify has the last
# word. The output of both is left in $SCRATCH.
server_ends=1
server_on=1
verify=true
pair()
{
	local name=$1 limit wait=$3 server client there here rc=0 server_rc=0 pid why
	time_for "$name" "$2" || return 0
	read -ra server <<<"$4"
	read -ra client <<<"$5"
	if ! command -v "${server[0]}" >/dev/null; then
		skip "$name" "no ${server[0]} here"
		return 0
	fi
	there=("${host1[@]}") here=("${host2[@]}")
	[ "$server_on" = 1 ] || { there=("${host2[@]}") here=("${host1[@]}"); }
	"${there[@]}" timeout -k 5 "$limit" "${server[@]}" >"$SCRATCH/server" 2>&1 </dev/null &
	pid=$!
	case $wait in
	tcp:*) eventually 5 tcp_listens "${wait#tcp:}" "$server_on" || : ;;
	cm) eventually 5 cm_listens || : ;;
	*) sleep "0.$((2 * SCALE))" ;;
	esac
	"${here[@]}" timeout -k 5 "$limit" "${client[@]}" >"$SCRATCH/client" 2>&1 </dev/null || rc=$?
	if [ "$server_ends" = 0 ] || [ "$rc" -ne 0 ]; then
		kill "$pid" 2>/dev/null || :
	fi
	wait "$pid" || server_rc=$?
	case $server_ends/$server_rc in
	0/* | any/[1-9] | any/[1-9][0-9] | any/2*) server_rc=0 ;;
	esac
	case $rc/$server_rc in
	0/0)
		if why=$("$verify" 2>&1); then
			ok "$name"
			return 0
		fi
		;;
	124/* | 137/*) why="client still running after $limit s: $(tail -n 1 "$SCRATCH/client")" ;;
	0/124 | 0/137) why="server still running after $limit s" ;;
	0/*) why="server status $server_rc: $(tail -n 1 "$SCRATCH/server")" ;;
	*) why="client status $rc: $(tail -n 1 "$SCRATCH/client")" ;;
	esac
	not_ok "$name" "$why"
	return 0
}

# module_of TYPE: the module that makes links of this type.
module_of()
{
	case $1 in
	rxe) echo rdma_rxe ;;
	siw) echo siw ;;
	*) echo softrnic ;;
	esac
}

refcount()
{
	cat "/sys/module/$1/refcnt" 2>/dev/null || echo none
}
