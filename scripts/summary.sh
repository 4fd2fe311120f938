#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# summary.sh RESULT-FILE...
#
# Adds up the totals of test suites, the last line "N passed, N failed,
# N skipped" of each file in build/results, shows one line for each, and closes
# with the sum alone on its line.  Fails when anything failed, when nothing was
# executed, or when a file has no totals.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -gt 0 ] || die "usage: summary.sh RESULT-FILE..."

passed=0 failed=0 skipped=0
for file in "$@"; do
	suite=$(basename "$file" .txt)
	if [[ $(tail -n 1 "$file" 2>/dev/null) =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		set_passed=${BASH_REMATCH[1]}
		set_failed=${BASH_REMATCH[2]}
		set_skipped=${BASH_REMATCH[3]}
		note=
	else
		set_passed=0 set_failed=1 set_skipped=0
		note="  (no totals in $file)"
	fi
	printf '%-24s %6d passed %6d failed %6d skipped%s\n' "$suite" \
		"$set_passed" "$set_failed" "$set_skipped" "$note"
	passed=$((passed + set_passed))
	failed=$((failed + set_failed))
	skipped=$((skipped + set_skipped))
done
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
