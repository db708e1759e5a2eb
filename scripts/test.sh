#!/usr/bin/env bash
# test.sh [PACKAGES] runs the tests, and ends with their counts and a list of what was skipped and why. All run under the race
# detector, but for those that time microseconds: these run after the others, without it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# timed lists what the race detector would falsify, since it slows what is timed ten times: a package, and why.
timed() {
	cat <<-'END'
		netdelta/bench/...                compares the engine with other programs
		netdelta/engine                   times single requests
		netdelta/internal/clock           times single readings of the clock
	END
}

# alone lists packages that keep all processors busy, or judge what they measured: they run one at a time.
alone=(
	netdelta/cli
	netdelta/experiment
	netdelta/experiment/tracing
	netdelta/probe/...
	netdelta/testbed/...
	netdelta/workload/...
)

# events KIND PACKAGES... [-test.run=PATTERN PACKAGE] prints the events of tests: those of all packages, or those that the pattern finds.
events() {
	local kind=$1 pattern=. flags=(-json -timeout "${NETDELTA_TEST_TIMEOUT:-30m}")
	shift
	if (($# > 1)) && [[ ${*: -2:1} == -test.run=* ]]; then
		pattern=${*: -2:1}
		pattern=${pattern#-test.run=}
		[[ $pattern != '^$' ]] || pattern=. # no test failed, but the package did: all of it is tried again
		set -- "${@: -1}"
	fi
	case $kind in
	shared) CGO_ENABLED=1 go test -race "${flags[@]}" -run "$pattern" "$@" ;;
	alone) CGO_ENABLED=1 go test -race "${flags[@]}" -count=1 -p 1 -run "$pattern" "$@" ;;
	timed) go test "${flags[@]}" -count=1 -p 1 -run "$pattern" "$@" ;;
	esac
}

if [[ ${1:-} == --events ]]; then
	shift
	events "$@"
	exit
fi

# listed prints the packages of patterns, each of which must match one.
listed() {
	local packages
	packages=$(go list "$@" 2>&1)
	if grep 'matched no packages' <<<"$packages"; then
		echo "scripts/test.sh lists packages that are no more (see above)" >&2
		return 1
	fi
	sort -u <<<"$packages"
}

wanted=$(listed "${@:-./...}")
mapfile -t patterns < <(timed | awk '{ print $1 }')
slowed=$(listed "${patterns[@]}")
alone=$(comm -23 <(listed "${alone[@]}") <(echo "$slowed"))
status=0
# of KIND PACKAGES runs the tests of one kind, if there are any among those that are wanted.
of() {
	local packages
	mapfile -t packages < <(comm -12 <(echo "$wanted") <(echo "$2"))
	((${#packages[@]} == 0)) || scripts/summary.sh "test-$1" scripts/test.sh --events "$1" "${packages[@]}" || status=$?
}

of shared "$(comm -23 <(echo "$wanted") <(sort -u <(echo "$alone") <(echo "$slowed")))"
of alone "$alone"
of timed "$slowed"
exit "$status"
