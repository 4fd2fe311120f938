#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-style.sh
#
# Looks at every tracked file: SPDX line, kernel version tests outside
# kernel/compat, whitespace errors; shellcheck on scripts, checkpatch on kernel
# sources, sparse on the module.  Each check counts as one test.
#
# checkpatch.pl is taken from the kernel source that make check-full unpacks (it
# is in no other package); before that its check is skipped.  Its errors and
# warnings fail, its CHECK lines are only shown.  What it is told to ignore:
#	FILE_PATH_CHANGES	MAINTAINERS is the kernel tree's
#	SPDX_LICENSE_TAG	looked at here, for every kind of file
#	EMBEDDED_FILENAME	helps readers who find a file alone
#	COMPLEX_MACRO, MACRO_WITH_FLOW_CONTROL, MACRO_ARG_UNUSED
#				macros that expand tables of names
#	BRACKET_SPACE		designated initialisers that a macro makes
#	ALLOC_WITH_SIZEOF	wants kzalloc_obj(), which only 7.x kernels have
#	MEMORY_BARRIER		wants the comment on the line before, where
#				ours is above the statement or function

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -eq 0 ] || die "usage: check-style.sh"
cd "$SRN_TOP"
mkdir -p "$SRN_BUILD/log"
need_packages "check the style" git perl shellcheck sparse

passed=0 failed=0 skipped=0
problems=$(mktemp)
trap 'rm -f "$problems"' EXIT

# verdict WHAT: $problems has the complaints, if any.
verdict()
{
	if [ -s "$problems" ]; then
		failed=$((failed + 1))
		printf 'FAIL %s\n' "$1"
		head -n 40 "$problems" | sed 's/^/     /'
	else
		passed=$((passed + 1))
		printf 'ok   %s\n' "$1"
	fi
	: >"$problems"
}

mapfile -t files < <(git ls-files --cached -- ':!COPYING' | while read -r f; do
	[ ! -f "$f" ] || printf '%s\n' "$f"
done)
mapfile -t c_files < <(printf '%s\n' "${files[@]}" | grep -E '\.(c|h|cc|hh|S)$' || :)
mapfile -t kernel_files < <(printf '%s\n' "${files[@]}" | grep -E '^(kernel|tests/kmod)/.*\.[ch]$' || :)
mapfile -t shell_files < <(printf '%s\n' "${files[@]}" | grep -v '\.\(md\|c\|h\|cc\)$' |
	xargs -r grep -lE '^#!/bin/(ba)?sh|^# shellcheck shell=' || :)

for f in "${files[@]}"; do
	case $f in
	*.c | *.h | *.cc | *.hh | *.sh | *.py | *.S | *Makefile | *Kbuild | *CMakeLists.txt | *.config | *.rules | .ci/run)
		head -n 3 "$f" | grep -q 'SPDX-License-Identifier:' || echo "$f" >>"$problems" ;;
	esac
done
verdict "every source file says its licence (SPDX) at its top"

printf '%s\n' "${c_files[@]}" | grep -E '^kernel/' | grep -v '^kernel/compat/' |
	xargs -r grep -nE 'LINUX_VERSION_CODE|KERNEL_VERSION *\(' >>"$problems" || :
verdict "no kernel version test outside kernel/compat"

printf '%s\n' "${files[@]}" | grep -vE '\.(md|bin|svg|pcap)$|corpus|seeds' |
	xargs -r grep -nIE '[[:blank:]]+$' >>"$problems" || :
printf '%s\n' "${c_files[@]}" | xargs -r grep -nE '^ +	|^        ' >>"$problems" || :
verdict "no blank at a line's end, indentation by tabs"

# what this machine's apt is configured with, and where this checkout lies
private=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
	sed -nE 's#^[^\#]*https?://([^/ ]+).*#\1#p' | sort -u) || :
printf '%s\n' "${files[@]}" |
	xargs -r grep -nIF -e "$SRN_TOP/" ${private:+-e "$private"} >>"$problems" || :
verdict "no mirror's address and no path of one machine"

shellcheck -x "${shell_files[@]}" >>"$problems" 2>&1 || :
verdict "shellcheck"

# --- with the kernel's own tools ----------------------------------------------
if [ "${#kernel_files[@]}" -gt 0 ]; then
	debian=$("$SRN_TOP/scripts/fetch-debian-kernel.sh" 6.12)
	checkpatch=$SRN_CACHE/uml-source/scripts/checkpatch.pl
	if [ -f "$checkpatch" ]; then
		# it leaves a cache in the directory it runs in
		(cd "$SRN_BUILD" && perl "$checkpatch" --no-tree --strict --terse --no-summary --show-types \
			--max-line-length=100 \
			--ignore FILE_PATH_CHANGES,SPDX_LICENSE_TAG,EMBEDDED_FILENAME \
			--ignore COMPLEX_MACRO,MACRO_WITH_FLOW_CONTROL,MACRO_ARG_UNUSED \
			--ignore MEMORY_BARRIER,ALLOC_WITH_SIZEOF,BRACKET_SPACE \
			-f "${kernel_files[@]/#/../}" 2>/dev/null) |
			sed 's|^\.\./||' >"$problems" || :
		grep ': CHECK:' "$problems" | sed 's/^/note /' | head -n 30 || :
		sed -i '/: CHECK:/d' "$problems"
		verdict "checkpatch --strict on kernel/"
	else
		echo "skip checkpatch.pl: no kernel source yet"
		skipped=$((skipped + 1))
	fi

	if [ -f "$SRN_TOP/kernel/Kbuild" ] &&
		"$SRN_TOP/scripts/build-module.sh" 6.12 >"$SRN_BUILD/log/sparse-build.log" 2>&1; then
		make -C "$debian/hdr" M="$SRN_BUILD/6.12/kernel" C=2 \
			CF='-D__CHECK_ENDIAN__ -Wno-tautological-compare' modules \
			>"$SRN_BUILD/log/sparse.log" 2>&1 || :
		grep -E '/kernel/.*(warning|error):' "$SRN_BUILD/log/sparse.log" |
			grep -F "$SRN_BUILD/6.12/kernel/" | sed "s|$SRN_BUILD/6.12/||" |
			sort -u >>"$problems" || :
		verdict "sparse on kernel/"
	else
		tail -n 3 "$SRN_BUILD/log/sparse-build.log" >>"$problems" 2>/dev/null || :
		echo "the module does not build" >>"$problems"
		verdict "sparse on kernel/"
	fi
fi

printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
