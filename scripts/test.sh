#!/usr/bin/env bash
# test.sh [PACKAGES] runs the tests, and ends with their counts and a list of what was skipped and why. All run under the race
# detector, but for those of packages in which nothing runs at once, and those that time microseconds: these run after the others, one
# package at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# timed lists what runs without the race detector, which slows it ten times: a package, and why.
timed() {
	cat <<-'END'
		netdelta/extras/bench/...         compares the engine with other programs
		netdelta/cli                      times whole runs, in processes of their own, which the detector can't see
		netdelta/engine                   times single requests
		netdelta/internal/clock           times single readings of the clock
		netdelta/extras/cluster/image     compresses an image of half a gigabyte
		netdelta/workload/foreign         compares what other programs measure with what the engine does
		netdelta/workload/udpstream       finds the rate that a link carries without loss
	END
}

# sequential lists packages that start nothing that runs at once, and keep nothing that several could use at once: the race detector has
# nothing to find in them, and makes them several times slower. TestSequentialPackages holds them to it.
sequential() {
	cat <<-'END'
		netdelta/experiment/plan
		netdelta/experiment/study
		netdelta/internal/repotest
		netdelta/network
		netdelta/report/annotations
		netdelta/report/benchfmt
		netdelta/report/csv
		netdelta/report/junit
		netdelta/report/markdown
		netdelta/report/openmetrics
		netdelta/report/parquet
		netdelta/report/rows
		netdelta/report/terminal
		netdelta/report/words
		netdelta/stats
		netdelta/stats/visits
		netdelta/unit
		netdelta/workload/tool/...
	END
}

# unraced finds single tests that run with what is timed, in packages whose other tests are raced: those with Cost in their names time
# what rules and services add to a request; those of insight judge hundreds of made-up runs one after another, which takes minutes under
# the race detector; two hold a load on the processor, and a network that stalls, against quiet, which others would disturb.
unraced='^Test(LoadThatBeginsMidRunGivesNoFalseVerdict|(Policy|Service|Guard|Known)Cost|StallingNetwork|EffectsHoldTheTruth|EvenRunsAreNotWarnedOf|Claims(OfEffects)?ErrSeldom|WhatIsSettledHasItsVerdict|CoverageAcrossStates|DeltaByState|DeltaOfNoState|Repeat|AlikeNetworksAreTied|ReferenceIsTakenWhereItHelps)$'
partly=(netdelta/insight netdelta/testbed/lab netdelta/experiment netdelta/experiment/tracing netdelta/probe/stalls)

# long lists packages that take minutes, nearly all of it spent waiting: they begin first, so that others run meanwhile.
long=(netdelta/experiment netdelta/probe/path netdelta/testbed/lab netdelta/workload/block netdelta/workload/oltp)

# A program under the race detector waits for a second when it ends, and tests start hundreds.
export GORACE=atexit_sleep_ms=0

# events KIND PACKAGES... [-test.run=PATTERN PACKAGE] prints the events of tests: those of all packages, or those that the pattern finds.
events() {
	# go vet is a step of `make lint`.
	local kind=$1 pattern=. flags=(-json -vet=off -count=1 -timeout "${NETDELTA_TEST_TIMEOUT:-30m}")
	shift
	if [[ $kind == guests ]]; then pattern=InGuest; fi
	if (($# > 1)) && [[ ${*: -2:1} == -test.run=* ]]; then
		# The pattern ^$ means that no test failed, but the package did: all of it is tried again.
		if [[ ${*: -2:1} != '-test.run=^$' ]]; then pattern=${*: -2:1}; fi
		pattern=${pattern#-test.run=}
		set -- "${@: -1}"
	fi
	case $kind in
	timed) go test "${flags[@]}" -p 1 -run "$pattern" -skip '^TestChaos$' "$@" ;; # make chaos
	unraced)
		if [[ $pattern == . ]]; then pattern=$unraced; fi
		go test "${flags[@]}" -p 1 -run "$pattern" "$@"
		;;
	guests) go test "${flags[@]}" -p 1 -run "$pattern" "$@" ;;
	sequential) go test "${flags[@]}" -p 3 -run "$pattern" "$@" ;;
	raced) CGO_ENABLED=1 go test -race "${flags[@]}" -p 3 -run "$pattern" -skip "$unraced" "$@" ;;
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
	packages=$(go list "$@" 2>&1) || { echo "$packages" >&2 && return 1; }
	if grep 'matched no packages' <<<"$packages" >&2; then
		echo "scripts/test.sh: there are no such packages (see above)" >&2
		return 1
	fi
	sort -u <<<"$packages"
}

wanted=$(listed "${@:-./...}")
mapfile -t patterns < <(timed | awk '{ print $1 }')
slowed=$(listed "${patterns[@]}")
mapfile -t patterns < <(sequential)
quick=$(listed "${patterns[@]}")
first=$(listed "${long[@]}")
status=0

# of KIND PACKAGES... runs the tests of one kind, if there are any.
of() {
	(($# == 1)) || scripts/summary.sh "test-$1" scripts/test.sh --events "$@" || status=$?
}

mapfile -t raced < <(comm -12 <(echo "$first") <(echo "$wanted"); comm -23 <(echo "$wanted") <(sort -u <(echo "$first") <(echo "$slowed") <(echo "$quick")))
mapfile -t alone < <(comm -12 <(echo "$quick") <(echo "$wanted"))
mapfile -t plain < <(comm -12 <(echo "$slowed") <(echo "$wanted"))
mapfile -t some < <(comm -12 <(printf '%s\n' "${partly[@]}" | sort -u) <(echo "$wanted"))
of raced "${raced[@]}"
of sequential "${alone[@]}"
of timed "${plain[@]}"
of unraced "${some[@]}"
exit "$status"
