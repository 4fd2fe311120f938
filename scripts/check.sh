#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check.sh quick|full
#
# Runs the project's test suites one after the other and ends with a line of
# totals.  "quick" is make check: style, unit tests, bounded fuzzing, modules
# for Debian's kernels without a warning, device tests on the 6.1 guest; no
# kernel is compiled.  "full" is what make check-full adds: the 7.2 kernels,
# plain and with KASAN, the device tests on them and on 6.12,
# interoperability with rxe, and rdma-core's own tests.
#
# A suite's output is in build/log/STAGE-SUITE.log, its totals are the last
# line of build/results/STAGE-SUITE.txt.  A suite that prints no totals counts
# as one test; one that is not there has failed.  Tests find in TEST_LEVEL
# (quick or full) how much to do.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
quick | full) stage=$1 ;;
*) die "usage: check.sh quick|full" ;;
esac
[ $# -eq 1 ] || die "usage: check.sh quick|full"
export TEST_LEVEL=$stage
results=()

# suite NAME NEEDS COMMAND...: runs one suite.  NEEDS is the file of the
# checkout without which it cannot be.
suite()
{
	local name=$1 needs=$2 rc=0 start=$SECONDS log totals passed failed skipped
	shift 2
	log=$SRN_BUILD/log/$stage-$name.log
	printf '\n==== %s\n' "$name"
	if [ ! -e "$SRN_TOP/$needs" ]; then
		echo "$needs is missing" | tee "$log"
		rc=1
	else
		"$@" </dev/null 2>&1 | tee "$log" || rc=$?
	fi
	totals=$(sed -n 's/^\([a-z0-9-]*: \)\?\([0-9]\+ passed, [0-9]\+ failed\(, [0-9]\+ skipped\)\?\)$/\2/p' \
		"$log" | tail -n 1)
	if [[ $totals =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
		passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]} skipped=${BASH_REMATCH[4]:-0}
		# a clean count does not excuse a bad end
		[ "$rc" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
	elif [ "$rc" -eq 0 ]; then
		passed=1 failed=0 skipped=0
	else
		passed=0 failed=1 skipped=0
	fi
	{
		printf 'status %d after %d s\n' "$rc" "$((SECONDS - start))"
		printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	} >"$SRN_BUILD/results/$stage-$name.txt"
	results+=("$SRN_BUILD/results/$stage-$name.txt")
	printf '==== %s: %d passed, %d failed, %d skipped (status %d, %d s)\n' "$name" \
		"$passed" "$failed" "$skipped" "$rc" "$((SECONDS - start))"
}

s=$SRN_TOP/scripts
mkdir -p "$SRN_BUILD/log" "$SRN_BUILD/results"
rm -f "$SRN_BUILD/results/$stage"-*.txt

need_packages "build and run the tests" make gcc g++ clang libclang-rt-14-dev \
	libcunit1-dev libibverbs-dev librdmacm-dev libpcap-dev shellcheck sparse perl git

case $stage in
quick)
	suite style scripts/check-style.sh "$s/check-style.sh"
	suite unit tests/unit/Makefile make --no-print-directory -C "$SRN_TOP/tests/unit" check
	suite tools tests/tools/Makefile make --no-print-directory -C "$SRN_TOP/tests/tools" check
	suite fuzz tests/fuzz/Makefile make -j2 --no-print-directory -C "$SRN_TOP/tests/fuzz" check
	suite compat tests/compat "$s/check-compat.sh" 6.1 6.12
	suite module-6.12 kernel/Kbuild "$s/build-module.sh" 6.12
	suite module-6.1 kernel/Kbuild "$s/build-module.sh" 6.1
	suite provider provider/CMakeLists.txt "$s/build-provider.sh"
	suite verbs-build tests/verbs/Makefile make --no-print-directory -C "$SRN_TOP/tests/verbs"
	suite verbs-6.1 tests/verbs/run.sh "$s/guest.sh" --kernel 6.1 \
		--timeout 540 -- "$SRN_TOP/tests/verbs/run.sh"
	;;
full)
	suite provider provider/CMakeLists.txt "$s/build-provider.sh"
	suite verbs-build tests/verbs/Makefile make --no-print-directory -C "$SRN_TOP/tests/verbs"
	suite module-6.1 kernel/Kbuild "$s/build-module.sh" 6.1
	suite interop-6.1 tests/verbs/run-interop.sh "$s/guest.sh" --kernel 6.1 \
		--name interop-6.1 --timeout 480 -- "$SRN_TOP/tests/verbs/run-interop.sh"
	suite nvme-6.1 tests/net/nvme.sh "$s/guest.sh" --kernel 6.1 \
		--name nvme-6.1 --timeout 300 -- "$SRN_TOP/tests/net/nvme.sh"
	suite uml-7.2 scripts/build-uml.sh "$s/build-uml.sh" plain
	# once more when make check had no checkpatch: the kernel source brings it
	if ! grep -q '^ok .*checkpatch' "$SRN_BUILD/log/quick-style.log" 2>/dev/null; then
		suite style scripts/check-style.sh "$s/check-style.sh"
	fi
	suite compat-7.2 tests/compat "$s/check-compat.sh" 7.2
	suite module-7.2 kernel/Kbuild "$s/build-module.sh" 7.2
	suite verbs-7.2 tests/verbs/run.sh "$s/guest.sh" --kernel 7.2 \
		--timeout 480 -- "$SRN_TOP/tests/verbs/run.sh"
	suite pyverbs-build scripts/build-pyverbs.sh "$s/build-pyverbs.sh"
	suite pyverbs tests/pyverbs/run.sh "$s/guest.sh" --kernel 7.2 \
		--name pyverbs --timeout 420 -- "$SRN_TOP/tests/pyverbs/run.sh"
	suite tools-build tools/Makefile "$s/build-tools.sh"
	suite capture-7.2 tests/net/capture.sh "$s/guest.sh" --kernel 7.2 \
		--name capture-7.2 --timeout 480 -- "$SRN_TOP/tests/net/capture.sh"
	suite uml-7.2-kasan scripts/build-uml.sh "$s/build-uml.sh" kasan
	suite module-7.2-kasan kernel/Kbuild "$s/build-module.sh" 7.2-kasan
	# six times slower: the covering subset
	suite verbs-7.2-kasan tests/verbs/run.sh env TEST_LEVEL=quick \
		"$s/guest.sh" --kernel 7.2-kasan \
		--timeout 780 -- "$SRN_TOP/tests/verbs/run.sh"
	;;
esac

printf '\n'
"$s/summary.sh" "${results[@]}"
