# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# What every script of the project shares: where the checkout, the build
# output and the cache are, how a message and an error look, and how Debian
# packages are installed, downloaded and unpacked.  To be sourced, not run.
#
# The cache (${XDG_CACHE_HOME:-$HOME/.cache}/softrnic) holds what is expensive
# to fetch or build and does not belong to one checkout: guest kernels, kernel
# headers, the rdma-core source.  It can be deleted at any time.

set -euo pipefail

SRN_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SRN_CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/softrnic

# shellcheck disable=SC2034	# for the scripts that source this file
SRN_BUILD=$SRN_TOP/build
# Every kernel that scripts take as a name.
# shellcheck disable=SC2034
SRN_KERNELS="6.1 6.12 7.2 7.2-kasan"

export LC_ALL=C.UTF-8

# say TEXT: one progress line, on stderr so that a script's result (a path)
# stays alone on stdout.
say()
{
	printf '== %s\n' "$*" >&2
}

# die TEXT: one line that says what is wrong and what to do, then failure.
die()
{
	printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# with_progress WHAT LOG COMMAND...: runs COMMAND with its output in LOG and
# says every 20 seconds that it is still at it; shows the end of LOG when it
# fails.
with_progress()
{
	local what=$1 log=$2 start=$SECONDS pid rc=0
	shift 2
	say "$what"
	mkdir -p "$(dirname "$log")"
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	(
		# sleep outlives its shell: it must hold no lock and no pipe
		while sleep 20 >/dev/null 2>&1 8>&- 9>&-; do
			say "$what: $((SECONDS - start)) s so far, $(wc -l <"$log") lines of output"
		done
	) &
	local ticker=$!
	# shellcheck disable=SC2064	# the values of now are meant
	trap "kill $ticker $pid 2>/dev/null || :" INT TERM
	wait "$pid" || rc=$?
	trap - INT TERM
	kill "$ticker" 2>/dev/null || :
	wait "$ticker" 2>/dev/null || :
	if [ "$rc" -ne 0 ]; then
		tail -n 40 "$log" >&2
		printf '%s: error: %s failed (status %s); all of its output is in %s\n' \
			"$(basename "$0")" "$what" "$rc" "$log" >&2
	fi
	return "$rc"
}

# as_root COMMAND...: runs COMMAND as root, through sudo when we are not.
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "root is needed for '$*': run this as root, or install sudo"
	fi
}

is_interactive()
{
	[ "${CI:-}" != true ] && [ -t 0 ] && [ -t 1 ]
}

have_package()
{
	local state
	# shellcheck disable=SC2016	# the format is dpkg-query's
	state=$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) || return 1
	[ "$state" = installed ]
}

# need_packages WHY PACKAGE...: installs the Debian packages that are missing.
need_packages()
{
	local why=$1 p missing=()
	shift
	command -v dpkg-query >/dev/null ||
		die "this needs Debian 12 or a relative of it (dpkg and apt); missing: $*"
	for p in "$@"; do
		have_package "$p" || missing+=("$p")
	done
	[ "${#missing[@]}" -gt 0 ] || return 0

	say "installing ${missing[*]} ($why)"
	if is_interactive && [ "${SRN_YES:-}" != 1 ]; then
		local answer
		read -r -p "   through apt on this machine; go on? [Y/n] " answer
		case $answer in
		'' | [yY]*) ;;
		*) die "these packages are needed: apt-get install ${missing[*]}" ;;
		esac
	fi
	apt_update_once
	(
		# one apt at a time, whoever else runs our scripts
		flock 9
		as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
			-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
			install --no-install-recommends "${missing[@]}" \
			</dev/null >"$SRN_CACHE/apt-install.log" 2>&1
	) 9>"$SRN_CACHE/apt.lock" || {
		tail -n 5 "$SRN_CACHE/apt-install.log" >&2
		die "apt-get could not install ${missing[*]}; try it by hand: apt-get install ${missing[*]}"
	}
}

# apt_update_once: refreshes the machine's package lists when they are missing
# or older than a day; 'apt_update_once force' always does.
apt_update_once()
{
	mkdir -p "$SRN_CACHE"
	local fresh
	fresh=$(find /var/lib/apt/lists -maxdepth 1 -name '*Packages*' -mmin -1440 \
		-print -quit 2>/dev/null || :)
	if [ -n "$fresh" ] && [ "${1:-}" != force ]; then
		return 0
	fi
	say "refreshing the package lists (apt-get update)"
	as_root apt-get -qq -o DPkg::Lock::Timeout=300 update </dev/null ||
		die "apt-get update failed: look at the network and at /etc/apt"
}

# debian_mirror: the address from which this machine gets Debian's main
# archive, as its own apt configuration has it.
debian_mirror()
{
	local uri
	# shellcheck disable=SC2016	# the format is apt's
	uri=$(apt-get indextargets --format '$(LABEL)|$(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null |
		sed -n 's/^Debian|//p' | sort -u | head -n 1)
	if [ -z "$uri" ]; then
		apt_update_once force
		# shellcheck disable=SC2016
		uri=$(apt-get indextargets --format '$(LABEL)|$(REPO_URI)' \
			'Created-By: Packages' 2>/dev/null |
			sed -n 's/^Debian|//p' | sort -u | head -n 1)
	fi
	[ -n "$uri" ] || die "apt on this machine knows no Debian archive: add one to /etc/apt/sources.list"
	printf '%s\n' "$uri"
}

# suite_apt SUITE TYPES: makes SUITE_APT, the start of a command line for an
# apt-get (or apt-cache: "${SUITE_APT[@]}") that knows only SUITE, with lists
# of its own in the cache, so that the machine's apt set-up is left alone.
# TYPES is "deb", "deb-src" or both.
suite_apt()
{
	local suite=$1 types=$2 dir=$SRN_CACHE/apt-$1 mirror t
	mirror=$(debian_mirror)
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/etc"
	: >"$dir/etc/sources.list.new"
	for t in $types; do
		printf '%s [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
			"$t" "$mirror" "$suite" >>"$dir/etc/sources.list.new"
	done
	mv "$dir/etc/sources.list.new" "$dir/etc/sources.list"
	: >"$dir/status"
	SUITE_APT=(
		-o "Dir::State=$dir" -o "Dir::State::Lists=$dir/lists"
		-o "Dir::State::status=$dir/status"
		-o "Dir::Cache=$dir/cache"
		-o "Dir::Etc::SourceList=$dir/etc/sources.list"
		-o "Dir::Etc::SourceParts=/dev/null"
		-o "APT::Sandbox::User=" -o Acquire::Languages=none
	)
	[ "$(id -u)" -ne 0 ] || SUITE_APT+=(-o APT::Sandbox::User=root)
	say "reading the package lists of Debian's $suite suite"
	apt-get -qq "${SUITE_APT[@]}" update </dev/null >"$dir/update.log" 2>&1 || {
		tail -n 3 "$dir/update.log" >&2
		die "the package lists of Debian's $suite suite could not be read (network?)"
	}
}

# download_debs DIR PACKAGE[=VERSION]...: fetches packages into DIR; apt
# checks their sums against its signed lists.  APT_OPTIONS selects a suite.
download_debs()
{
	local dir=$1 options=("${APT_OPTIONS[@]}")
	shift
	mkdir -p "$dir"
	[ "$(id -u)" -ne 0 ] || options+=(-o APT::Sandbox::User=root)
	(cd "$dir" && apt-get -qq "${options[@]}" download "$@" </dev/null >&2) ||
		die "apt-get could not download: $* (network? then run it again)"
}
APT_OPTIONS=()

# kernel_dir NAME: the directory of a kernel that modules are built against.
kernel_dir()
{
	case $1 in
	6.1 | 6.12) printf '%s\n' "$SRN_CACHE/debian-$1/hdr" ;;
	7.2) printf '%s\n' "$SRN_CACHE/uml-plain/obj" ;;
	7.2-kasan) printf '%s\n' "$SRN_CACHE/uml-kasan/obj" ;;
	host) printf '/lib/modules/%s/build\n' "$(uname -r)" ;;
	*) die "unknown kernel '$1': take one of $SRN_KERNELS host" ;;
	esac
}
