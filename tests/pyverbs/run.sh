#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh [--type TYPE] [--gid N] [--rounds N] [PATTERN...]
#
# The tests of rdma-core itself (pyverbs) on one device, which talks to itself.
# Runs inside a guest, as root (scripts/guest.sh), after
# scripts/build-pyverbs.sh:
#
#	   namespace h1                       namespace h2
#	+----------------+                +----------------+
#	| suite          |                |                |
#	| softrnic d1    |                |                |
#	|  v1            |------veth------|            v2  |
#	| 192.0.2.1/24   |    MTU 4400    |   192.0.2.2/24 |
#	| 2001:db8::1/64 |                | 2001:db8::2/64 |
#	+----------------+                +----------------+
#
# Each test has a child of its own and 30 s, each file 120 s. A test that is
# skipped has to be listed in expected-skips.txt. --type rxe runs the suite on
# the kernel's rxe; --gid chooses the GID (the suite's own choice is the
# first one); PATTERN (test_cq.*) chooses tests; --rounds repeats them. What
# the tests print is left in $SRN_OUT/pyverbs.log.

set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../verbs/lib.sh"

usage='usage: run.sh [--type TYPE] [--gid N] [--rounds N] [PATTERN...]'
type=roce rounds=1 gid=()
while [ $# -gt 0 ]; do
	case $1 in
	--type | --gid | --rounds) [ $# -ge 2 ] || die "$usage" ;;
	-*) die "unknown argument '$1'; $usage" ;;
	*) break ;;
	esac
	case $1 in
	--type) type=$2 ;;
	--gid) gid=(--gid "$2") ;;
	--rounds) rounds=$2 ;;
	esac
	shift 2
done
[ "$(id -u)" -eq 0 ] || die "needs root: run it in a guest, scripts/guest.sh --kernel 7.2 -- tests/pyverbs/run.sh"
built=$VERBS_TOP/build/pyverbs
[ -f "$built/.complete" ] || die "the suite is not built: scripts/build-pyverbs.sh"
module=$(module_of "$type")
pyverbs=$VERBS_TOP/tests/pyverbs
log=$(dirname "$RESULTS")/pyverbs.log

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
: >"$log"
measure_scale

# add_provider: the suite's libibverbs knows only its own directories. What is
# written here stays in the guest.
add_provider()
{
	local lib
	lib=$(find "$VERBS_TOP/build/provider" -name 'libsoftrnic-rdmav*.so' | head -n 1)
	[ -n "$lib" ] || die "no provider in build/provider: scripts/build-provider.sh"
	cp "$lib" "$built/obj/lib/"
	cp "$VERBS_TOP/build/provider/softrnic.driver" "$built/obj/etc/libibverbs.d/"
}

# addresses_ready: the first GID is that of the link-local address, which comes
# when both ends are up and can be reached a second or two later.
addresses_ready()
{
	ip -n h1 -6 addr show dev v1 scope link -tentative | grep -q inet6
}

# suite: one round; each line of its report counts.
suite()
{
	local out=$SCRATCH/out line rc=0
	n1 env PYTHONPATH="$built/obj/python" PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 "$pyverbs/run.py" --source "$built/source/tests" --dev d1 "${gid[@]}" \
		--skips "$pyverbs/expected-skips.txt" --log "$log" \
		--test-limit $((30 * SCALE)) --file-limit $((120 * SCALE)) "$@" 2>&1 |
		tee "$out" || rc=$?
	cat "$out" >>"$RESULTS"
	while read -r line; do
		case $line in
		'ok - '*) passed=$((passed + 1)) ;;
		'not ok - '*) failed=$((failed + 1)) ;;
		'skip - '*) skipped=$((skipped + 1)) ;;
		esac
	done <"$out"
	[ "$rc" -eq 0 ] || not_ok run.py "ended early, status $rc: $(tail -n 1 "$out")"
}

# gone: no program holds the device any more, so it can be removed.
gone()
{
	timeout 10 rdma link delete d1 && eventually 5 test "$(refcount "$module")" = 0
}

report "# kernel $(uname -r), type $type, deadlines x$SCALE"
[ "$type" != roce ] || add_provider
remove_hosts
make_hosts 4400
eventually 5 addresses_ready || die "the link-local address of v1 does not become usable"
n1 rdma link add d1 type "$type" netdev v1
for ((round = 1; round <= rounds; round++)); do
	[ "$rounds" -eq 1 ] || report "# round $round"
	suite "$@"
done
gone || not_ok "rdma link delete" "the device is still in use"
finish
