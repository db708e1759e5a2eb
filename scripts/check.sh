#!/usr/bin/env bash
# check.sh commit|everything checks a clean checkout, asks nothing, and ends with how long each step took and what was skipped. Every step
# runs, also after one has failed.
#
#   commit      what every landing waits for (.ci/run): generated files, lint, make test, the archives, whole runs, one guest, one cluster
#   everything  all there is (make check): all tests under the race detector, services, faults, all suites in guests and on clusters, fuzzing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

out=$(mktemp -d)
declare -A groups=() # the process groups of steps in the background, by name
leave() {
	local group
	for group in "${groups[@]}"; do kill -- "-$group" 2>/dev/null || true; done
	rm -rf "$out"
}
trap leave EXIT
export NETDELTA_SUMMARY=$out/summary # each step leaves in it what it counted and skipped
mkdir "$NETDELTA_SUMMARY"

steps=()
failed=0
# step NAME COMMAND... runs a step.
step() {
	local name=$1 began=$SECONDS came=ok
	shift
	printf '\n=== %s\n' "$name"
	"$@" || { came="FAILED ($?)" && failed=1; }
	steps+=("$(printf '%5d s  %-8s  %s' $((SECONDS - began)) "$came" "$name")")
}

# target NAME VARIABLE=VALUE... runs a step that is a target of the Makefile.
target() { step "$1" make --no-print-directory "$@"; }

# beside NICE NAME COMMAND... begins a step that runs at the same time as those that follow, up to its await. The kernel weighs a session
# against the others as a whole, whatever its processes are, by its niceness.
beside() {
	# shellcheck disable=SC2016 # that shell expands it
	setsid bash -c 'echo "$1" 2>/dev/null >/proc/self/autogroup; time "${@:2}"' beside "$1" "${@:3}" >"$out/$2" 2>&1 &
	groups[$2]=$!
}

# background NAME COMMAND... begins a step that takes only the time in which nothing else wants the processors.
background() { beside 19 "$1" chrt --idle 0 "${@:2}"; }

# await NAME waits for a step that runs at the same time as others, and shows what it printed.
await() {
	local status=0
	wait "${groups[$1]}" || status=$?
	unset "groups[$1]"
	cat "$out/$1"
	return "$status"
}

# The programs of clusters are compiled before anything else, since that needs nothing but Go, and goes on in idle time.
begin() {
	background programs scripts/kubernetes.sh "$@"
	step setup scripts/setup.sh all
	target generated
	background lint make --no-print-directory lint
	background dist make --no-print-directory dist
	background site make --no-print-directory site
}

commit() {
	begin kubernetes
	target test
	# It looks for what is left on the machine, so that nothing else may make namespaces meanwhile.
	target e2e
	target guest WHICH=basic
	step lint await lint
	step dist await dist
	target test-dist
	step site await site
	step programs await programs
	target test-kubernetes WHICH=basic
}

everything() {
	begin --quick kubernetes calico cilium
	# With all faults of `make chaos`.
	target test EVERYTHING=yes
	# Guests want both processors, for time passes in them as outside.
	target guest WHICH=boots
	# These look for what is left on the machine.
	target e2e
	target services
	step lint await lint
	step dist await dist
	target test-dist
	step site await site
	step programs await programs
	target guest WHICH=inside
	target test-kubernetes
	target fuzz FUZZ_TIME=1m
}

case ${1:-} in
commit | everything) "$1" ;;
*) echo "usage: check.sh commit|everything" >&2 && exit 2 ;;
esac

printf '\n=== done in %d s\n' "$SECONDS"
printf '%s\n' "${steps[@]}"
cd "$NETDELTA_SUMMARY"
printf '\nTests\n'
grep -H . ./*.done | sed 's|^./\(.*\).done:DONE|  \1:|'
printf '\nSkipped\n'
find . -name '*.skipped' -exec cat {} +
exit $failed
