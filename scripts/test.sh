#!/usr/bin/env bash
# test.sh [PACKAGES] runs the tests, and ends with their counts and a list of what was skipped and why. All run under the race
# detector, but for those of packages in which nothing runs at once or which it can't see, and those that time microseconds: these run
# after the others, one package at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# timed lists what others on the processor would disturb, and what the race detector slows ten times: a package, and why.
timed() {
	cat <<-'END'
		netdelta/extras/bench/engine      compares the engine with other programs
		netdelta/engine                   times single requests
		netdelta/internal/clock           times single readings of the clock
		netdelta/workload/foreign         compares what other programs measure with what the engine does
	END
}

# unseen lists what runs without the race detector, at the same time as what it sees: a package, and why.
unseen() {
	cat <<-'END'
		netdelta/cli                      runs the program, in processes of its own, which the detector can't see
		netdelta/extras/cluster/image     writes an image of half a gigabyte
	END
}

# sequential lists packages that start nothing that runs at once, and keep nothing that several could use at once: the race detector has
# nothing to find in them, and makes them several times slower. TestSequentialPackages holds them to it.
sequential() {
	cat <<-'END'
		netdelta/report/html
		netdelta/experiment/tracing
		netdelta/engine/mlrsearch
		netdelta/experiment/imported
		netdelta/experiment/plan
		netdelta/experiment/studies
		netdelta/experiment/study
		netdelta/extras/cluster
		netdelta/extras/cluster/pki
		netdelta/insight/fleet
		netdelta/insight/hops
		netdelta/insight/pairs
		netdelta/internal/golden
		netdelta/internal/latency
		netdelta/internal/machine
		netdelta/internal/owner
		netdelta/internal/procfile
		netdelta/internal/repotest
		netdelta/internal/require
		netdelta/internal/suggest
		netdelta/network
		netdelta/probe/bounds
		netdelta/probe/pressure
		netdelta/probe/procstat
		netdelta/probe/sockets
		netdelta/report/annotations
		netdelta/report/benchfmt
		netdelta/report/cluster
		netdelta/report/csv
		netdelta/report/flame
		netdelta/report/fleet
		netdelta/report/hops
		netdelta/report/junit
		netdelta/report/markdown
		netdelta/report/openmetrics
		netdelta/report/pairs
		netdelta/report/parquet
		netdelta/report/policies
		netdelta/report/rows
		netdelta/report/terminal
		netdelta/report/words
		netdelta/stats
		netdelta/stats/visits
		netdelta/testbed/kube/client
		netdelta/testbed/kube/provider
		netdelta/testbed/kube/schedule
		netdelta/testbed/lab/datapath
		netdelta/testbed/lab/plugin
		netdelta/testbed/lab/udptun
		netdelta/testbed/servers/server
		netdelta/unit
		netdelta/workload/tool/...
	END
}

# unraced finds single tests that run with what is timed, in packages whose other tests are raced or run at the same time: those with Cost
# in their names time what rules and services add to a request; three hold a load on the processor, and networks that stall, against quiet;
# one looks when packets of bursts pass, and one finds the rate that a link carries without loss.
unraced='^Test(SearchFindsTheLink|LoadThatBeginsMidRunGivesNoFalseVerdict|StallIsNamed|(Policy|Service|Guard|Known)Cost|StallingNetwork|SilentDuringBursts)$'
partly=(netdelta/testbed/lab netdelta/experiment netdelta/experiment/tracing netdelta/probe/stalls netdelta/testbed/ssh netdelta/workload/udpstream)

# simulated finds those of insight that judge hundreds of made-up runs one after another, which takes minutes under the race detector.
simulated='^Test(EffectsHoldTheTruth|EvenRunsAreNotWarnedOf|Claims(OfEffects)?ErrSeldom|WhatIsSettledHasItsVerdict|CoverageAcrossStates|DeltaByState|DeltaOfNoState|Repeat|AlikeNetworksAreTied|ReferenceIsTakenWhereItHelps|ApartFamiliesKeepTheirPromise|Unequal(Exclusion|Scatter)IsNamed|GoalsByChance|DirectContrastsLeaveFewerTied|ComparisonsClaimLittle|AddedTimeHasItsOwnInterval)$'

# long lists packages that take minutes, nearly all of it spent waiting: they begin first, so that others run meanwhile.
long=(netdelta/experiment netdelta/testbed/lab netdelta/probe/path netdelta/workload/oltp netdelta/workload/block netdelta/workload/block/ceph netdelta/testbed/ssh)

# A program under the race detector waits for a second when it ends, and tests start hundreds.
export GORACE=atexit_sleep_ms=0

# seldom is how often tests that only need processor time collect garbage: it takes some of them a tenth of it.
seldom=GOGC=400

# events KIND PACKAGES... [-test.run=PATTERN PACKAGE] prints the events of tests: those of all packages, or those that the pattern finds.
events() {
	# go vet is part of `make lint`. What debuggers need takes a linker a third of its time, and there are a hundred programs to link.
	local kind=$1 pattern=. flags=(-json -vet=off -count=1 -ldflags=-w -timeout "${NETDELTA_TEST_TIMEOUT:-30m}")
	shift
	if [[ $kind == guests ]]; then pattern=InGuest; fi
	if (($# > 1)) && [[ ${*: -2:1} == -test.run=* ]]; then
		# The pattern ^$ means that no test failed, but the package did: all of it is tried again.
		if [[ ${*: -2:1} != '-test.run=^$' ]]; then pattern=${*: -2:1}; fi
		pattern=${pattern#-test.run=}
		set -- "${@: -1}"
	fi
	case $kind in
	timed) go test "${flags[@]}" -p 1 -run "$pattern" "$@" ;;
	unraced | simulated)
		if [[ $pattern == . ]]; then pattern=${!kind}; fi
		if [[ $kind == simulated ]]; then export "$seldom"; fi
		go test "${flags[@]}" -p 1 -run "$pattern" "$@"
		;;
	guests) go test "${flags[@]}" -p 1 -run "$pattern" "$@" ;;
	apart) go test "${flags[@]}" -p 2 -parallel 4 -run "$pattern" -skip "^TestChaos$|$unraced" "$@" ;; # make chaos
	raced) env "$seldom" CGO_ENABLED=1 go test -race "${flags[@]}" -p 3 -parallel 4 -run "$pattern" -skip "$unraced|$simulated" "$@" ;;
	esac
}

if [[ ${1:-} == --events ]]; then
	shift
	events "$@"
	exit
fi

# listed prints the packages of patterns, each of which must match one. What the go command says on its standard error, such as what it
# downloads, is no package.
listed() {
	local packages said
	said=$(mktemp)
	# shellcheck disable=SC2064 # the name is known now
	trap "rm -f '$said'" RETURN
	packages=$(go list "$@" 2>"$said") || { cat "$said" >&2 && return 1; }
	if grep 'matched no packages' "$said" >&2; then
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
mapfile -t patterns < <(unseen | awk '{ print $1 }')
beside=$(listed "${patterns[@]}")
first=$(listed "${long[@]}")
status=0

# of KIND PACKAGES... runs the tests of one kind, if there are any.
of() {
	(($# == 1)) || scripts/summary.sh "test-$1" scripts/test.sh --events "$@" || status=$?
}

# both LIST LIST prints what is in both.
both() { comm -12 <(sort -u <<<"$1") <(sort -u <<<"$2"); }

others=$(comm -23 <(echo "$wanted") <(sort -u <<<"$first"$'\n'"$slowed"$'\n'"$quick"$'\n'"$beside"))
mapfile -t raced < <(both "$first" "$wanted" && echo -n "$others")
mapfile -t apart < <(both "$beside" "$wanted" && both "$quick" "$wanted")
mapfile -t plain < <(both "$slowed" "$wanted")
mapfile -t some < <(both "$(printf '%s\n' "${partly[@]}")" "$wanted")
mapfile -t made < <(both netdelta/insight "$wanted")

# aside runs what is not raced and needs no quiet.
aside() {
	of apart "${apart[@]}"
	of simulated "${made[@]}"
	exit "$status"
}

# It runs at the same time, in a process group of its own, and what it printed follows. Of the second tries each may have half.
if ((${#raced[@]} == 0)); then
	(aside) || status=$?
else
	out=$(mktemp)
	export NETDELTA_AGAIN=2
	set -m
	(aside) >"$out" 2>&1 </dev/null &
	group=$!
	set +m
	trap 'kill -- "-$group" 2>/dev/null || true; rm -f "$out"' EXIT
	of raced "${raced[@]}"
	wait "$group" || status=$?
	trap 'rm -f "$out"' EXIT
	unset NETDELTA_AGAIN
	cat "$out"
fi
of timed "${plain[@]}"
of unraced "${some[@]}"
exit "$status"
