#!/usr/bin/env bash
# test.sh [--everything] [PACKAGES] runs the tests that need only this machine, and ends with their counts and with what was skipped, and why.
# With --everything it also runs the long ones (require.Long), and all under the race detector.
#
# A test says by its name what else it needs:
#
#   OnCluster   a Kubernetes cluster: scripts/test-kubernetes.sh runs it
#   InGuest     guests that it boots: scripts/guests.sh runs it
#   WhenQuiet   processors that do nothing else, because it compares times: it runs here, after all others, one package at a time and
#               without the race detector
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# events LEVEL PACKAGES... prints the events of the tests.
events() {
	# go vet is part of `make lint`. What debuggers need takes a linker a third of its time, and there are a hundred programs to link.
	local flags=(-json -vet=off -count=1 -ldflags=-w -timeout "${NETDELTA_TEST_TIMEOUT:-30m}") level=(-short) status=0 quiet
	if [[ $1 == --everything ]]; then level=(-race); fi
	shift
	# A program under the race detector waits for a second when it ends, and tests start hundreds.
	CGO_ENABLED=$([[ ${level[0]} == -race ]] && echo 1 || echo 0) GORACE=atexit_sleep_ms=0 GOGC=400 \
		go test "${flags[@]}" "${level[@]}" -p 5 -parallel 4 -skip 'OnCluster|InGuest|WhenQuiet' "$@" || status=1
	mapfile -t quiet < <(packages_with 'func Test[A-Za-z0-9_]*WhenQuiet' "$@")
	if ((${#quiet[@]} > 0)); then
		go test "${flags[@]}" "${level[@]/-race/-race=false}" -p 1 -parallel 1 -run WhenQuiet "${quiet[@]}" || status=1
	fi
	return $status
}

# packages_with PATTERN PACKAGES... prints those of the packages whose tests have a line that matches.
packages_with() {
	local path folder
	go list -f '{{.ImportPath}} {{.Dir}}' "${@:2}" | while read -r path folder; do
		! grep -qsE "$1" "$folder"/*_test.go || echo "$path"
	done
}

if [[ ${1:-} == --events ]]; then
	shift
	events "$@"
	exit
fi
level=--short
if [[ ${1:-} == --everything ]]; then level=$1 && shift; fi

# The tests that make namespaces wait most of the time, and take longest: they begin first, and the others run meanwhile.
wanted=$(go list "${@:-./...}")
[[ -n $wanted ]] || { echo "scripts/test.sh: there are no such packages" >&2 && exit 1; }
mapfile -t wanted <<<"$wanted"
mapfile -t first < <(packages_with 'require\.(Namespaces|Tool)\(' "${wanted[@]}")
mapfile -t rest < <(comm -23 <(printf '%s\n' "${wanted[@]}" | sort) <(printf '%s\n' "${first[@]}" | sort))
scripts/summary.sh test scripts/test.sh --events "$level" "${first[@]}" "${rest[@]}"
