#!/usr/bin/env bash
# test-kubernetes.sh [--basic] [PACKAGES] runs the tests that need a Kubernetes cluster: those with OnCluster in their names. With --basic it
# runs only those whose names begin with TestBasic, on one cluster with flannel.
#
# A cluster that is up is taken, and left up. Otherwise two are made for the tests and ended after them, one for those of whole runs,
# whose nodes get the programs that workloads run, and one for all others: most of the time such tests wait, and those that
# end programs of nodes or change the network can't share a cluster with others. Tests of clusters make their own, at the same time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# on_cluster CACHE FLAGS PACKAGE... runs tests on the cluster of a folder for caches. They are sent to pods, which have no libraries.
on_cluster() {
	local image=
	if [[ $1 == "$first_cache" && -e $work/programs ]]; then image=$(tail -1 "$work/programs"); fi
	NETDELTA_KUBECONFIG=$1/netdelta/cluster/kubeconfig NETDELTA_IMAGE=$image CGO_ENABLED=0 XDG_CACHE_HOME=$1 \
		go test -json -vet=off -count=1 -ldflags=-w -p 1 -timeout 40m "${@:2}"
}

declare -A groups=() # the process groups of tests that were begun aside, by the file that keeps their events

# aside KEPT FLAGS PACKAGES begins tests on the second cluster, and keeps their events in a file: two streams can't be one.
aside() {
	read -ra packages <<<"${*:3}"
	if ((${#packages[@]} == 0)); then return; fi
	set -m # a process group, which can be ended with all that is in it
	# shellcheck disable=SC2086 # several words
	on_cluster "$second_cache" $2 -run "^$pattern" "${packages[@]}" >"$work/$1" &
	groups[$1]=$!
	set +m
}

# await waits for the tests that were begun aside, and prints their events.
await() {
	local kept
	for kept in "${!groups[@]}"; do
		wait "${groups[$kept]}" || status=$?
		unset "groups[$kept]" # its number may be another's from now on
		cat "$work/$kept"
	done
}

# events prints the events of all tests: those of both clusters at once, unless they are one.
events() {
	local status=0 packages
	trap 'for group in "${groups[@]}"; do kill -- "-$group" 2>/dev/null || true; done' EXIT
	# They wait for pods to start and to end most of the time.
	aside others '-parallel 2' "$others"
	aside makers '' "$makers"
	if [[ $first_cache == "$second_cache" ]]; then await; fi
	read -ra packages <<<"$runs"
	if ((${#packages[@]} > 0)); then
		# The nodes get the programs that workloads run, and the program under test: few tests stream that.
		XDG_CACHE_HOME=$first_cache "$work/cluster" programs --netdelta "$NETDELTA_TESTED" >"$work/programs" &&
			on_cluster "$first_cache" -parallel 3 -run "^$pattern" "${packages[@]}" || status=$?
	fi
	await
	trap - EXIT
	return "$status"
}

if [[ ${1:-} == --events ]]; then
	events
	exit
fi
basic=
pattern='Test.*OnCluster'
if [[ ${1:-} == --basic ]]; then shift && basic=yes pattern='TestBasic.*OnCluster'; fi

work=$(mktemp -d)
chmod 755 "$work" # other users run the program under test
mine=()           # the folders for caches of the clusters that are made here
ups=()            # and the processes that bring them up

# as CACHE COMMAND... runs a command for the cluster whose files are below a folder for caches.
as() { XDG_CACHE_HOME=$1 "${@:2}"; }

# leave ends what was made here.
leave() {
	local cache began=$SECONDS
	wait # for what is brought up still
	for cache in "${mine[@]}"; do as "$cache" "$work/cluster" down || true; done
	rm -rf "$work"
	((${#mine[@]} == 0)) || printf -- '--- clusters down: %d s\n' $((SECONDS - began))
}
trap leave EXIT

# with_tests PACKAGES prints those of them that have tests of a cluster: their import path and their folder.
with_tests() {
	local path folder
	go list -f '{{.ImportPath}} {{.Dir}}' "$@" | while read -r path folder; do
		! grep -qsE "func $pattern" "$folder"/*_test.go || echo "$path $folder"
	done
}

# skipped says what this machine lacks for a cluster, in the words of the file; it fails where it lacks nothing.
skipped() {
	local why
	why=$(grep -o 'unsupported: .*' "$1") || return 1
	printf 'skip: test-kubernetes: %s\n' "$why" | tee ${NETDELTA_SUMMARY:+"$NETDELTA_SUMMARY/test-kubernetes.skipped"}
}

# bring_up CACHE FLAGS begins to bring up the cluster of a folder for caches.
bring_up() {
	mkdir "$1"
	mine+=("$1")
	as "$1" "$work/cluster" up "${@:2}" >/dev/null 2>"$1/said" &
	ups+=($!)
}

# are_up waits for the clusters that are brought up, or ends the script where this machine can have none.
are_up() {
	local i began=$SECONDS
	for i in "${!ups[@]}"; do
		if ! wait "${ups[i]}"; then
			cat "${mine[i]}/said" >&2
			skipped "${mine[i]}/said" && exit
			exit 1
		fi
		cat "${mine[i]}/said" >&2
	done
	printf -- '--- clusters up: %d s\n' $((SECONDS - began))
}

# What the go command keeps is the same for both clusters.
GOCACHE=$(go env GOCACHE)
began=$SECONDS
NETDELTA_KUBERNETES=$(scripts/kubernetes.sh)
export GOCACHE NETDELTA_KUBERNETES
# Tests of the products bring up clusters of their own.
if [[ -z $basic ]]; then
	NETDELTA_CALICO=$(scripts/kubernetes.sh --quick calico)
	NETDELTA_CILIUM=$(scripts/kubernetes.sh --quick cilium)
	export NETDELTA_CALICO NETDELTA_CILIUM
fi
printf -- '--- programs of the cluster: %d s\n' $((SECONDS - began))
go build -o "$work/" ./extras/cluster

runs='' # the packages whose tests are whole runs, those that make clusters of their own, and the others
makers=''
others=''
while read -r path folder; do
	if grep -q NETDELTA_IMAGE "$folder"/*_test.go; then
		runs+="$path "
	elif grep -q 'require\.Cluster(' "$folder"/*_test.go; then
		others+="$path "
	else
		makers+="$path "
	fi
done < <(with_tests "${@:-./...}")

first_cache=${XDG_CACHE_HOME:-$HOME/.cache}
second_cache=$first_cache
if ! "$work/cluster" status >/dev/null 2>&1; then
	first_cache=$work/first
	second_cache=$work/second
	if [[ -n $basic ]]; then second_cache=$first_cache && bring_up "$first_cache" --cni flannel-vxlan --workers 2; fi
	if [[ -z $basic && -n $others ]]; then bring_up "$second_cache" --ipv6 --workers 2; fi
	if [[ -z $basic && -n $runs ]]; then bring_up "$first_cache" --ipv6 --workers 4; fi # clusters of databases and storage
fi
NETDELTA_TESTED=$work/netdelta
export NETDELTA_TESTED
CGO_ENABLED=0 go build -ldflags=-s -o "$work/" ./cmd/...
are_up

began=$SECONDS
status=0
export work pattern runs makers others first_cache second_cache
scripts/summary.sh test-kubernetes scripts/test-kubernetes.sh --events || status=$?
printf -- '--- tests: %d s\n' $((SECONDS - began))
exit "$status"
