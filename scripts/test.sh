#!/usr/bin/env bash
# test.sh [PACKAGES] runs the tests and ends with a list of what was skipped and why. A skip of something that this machine
# has is a failure.
#
# Packages run under the race detector, save those that it can't judge: it slows the engines by an order of magnitude, and
# what they and the lab do in raw system calls and in other processes it does not see (probe/path starts hundreds of those,
# and would take ten times as long), the simulations of stats take five times as long, and pages for browsers are written by one
# goroutine. These run one after another, since they use the machine's processors and network stack in earnest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Patterns of import paths that run without the race detector. Each must match a package.
unraced=(
	netdelta/bench/...
	netdelta/cmd/...
	netdelta/experiment
	netdelta/experiment/tracing
	netdelta/cli
	netdelta/internal/clock
	netdelta/engine
	netdelta/internal/native
	netdelta/internal/netns
	netdelta/internal/repotest
	netdelta/probe/path
	netdelta/report/flame
	netdelta/report/hops
	netdelta/report/html
	netdelta/scripts/cluster/...
	netdelta/stats
	netdelta/testbed/...
	netdelta/workload/...
)

timeout=${NETDELTA_TEST_TIMEOUT:-30m}

wanted=$(go list "${@:-./...}")
plain=$(go list "${unraced[@]}" 2>&1) || { echo "$plain" >&2 && exit 1; }
if grep 'matched no packages' <<<"$plain"; then
	echo "scripts/test.sh lists packages that are no more (see above)" >&2
	exit 1
fi
mapfile -t raced < <(comm -23 <(sort -u <<<"$wanted") <(sort -u <<<"$plain"))
mapfile -t plain < <(comm -12 <(sort -u <<<"$wanted") <(sort -u <<<"$plain"))

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/testreport" ./scripts/testreport

# first runs all packages.
first() {
	local status=0
	if ((${#raced[@]} > 0)); then
		CGO_ENABLED=1 go test -race -json -timeout "$timeout" "${raced[@]}" || status=$?
	fi
	if ((${#plain[@]} > 0)); then
		go test -json -count=1 -p 1 -timeout "$timeout" "${plain[@]}" || status=$?
	fi
	return "$status"
}

# one runs tests of a package by themselves.
one() {
	local flags=(-json -count=1 -timeout "$timeout" -run "$2")
	if printf '%s\n' "${raced[@]}" | grep -qxF "$1"; then
		CGO_ENABLED=1 go test -race "${flags[@]}" "$1"
	else
		go test "${flags[@]}" "$1"
	fi
}

# shellcheck source=scripts/twice.sh
. scripts/twice.sh
twice "$work" first one ${NETDELTA_SKIPS:+-skips "$NETDELTA_SKIPS/test"}
