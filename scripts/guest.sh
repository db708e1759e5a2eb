#!/usr/bin/env bash
# guest.sh [--events] PACKAGE... [FLAGS OF go test] runs tests of packages as root in a guest, whose kernel has every kind of link,
# and ends with a list of what was skipped there and why:
#
#   scripts/guest.sh ./testbed/lab -run TestNetworks/ipip -v
#
# Packages run one after another in one guest, each in its own folder with its testdata. --events prints what `go test -json` would.
# NETDELTA_GUEST holds flags of `netdelta vm exec` (--cards 2 --memory 2GiB, --file HERE:THERE); NETDELTA is a netdelta to boot the
# guest with, linked statically, in place of one built of these sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

(($# > 0)) || {
	echo "usage: scripts/guest.sh [--events] PACKAGE... [FLAGS OF go test]" >&2
	exit 2
}
if [[ $1 != --events ]]; then exec scripts/summary.sh guest scripts/guest.sh --events "$@"; fi
shift
packages=()
flags=()
pattern=.
while (($# > 0)); do
	case $1 in
	-run) pattern=$2 && shift ;;
	-v) ;; # always on, for the list of skips
	-test.*) flags+=("$1") ;;
	-[a-z]*) flags+=("-test.${1#-}") ;;
	*) packages+=("$1") ;;
	esac
	shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0

if [[ -n ${NETDELTA:-} ]]; then
	cp "$NETDELTA" "$work/netdelta"
else
	go build -o "$work/netdelta" ./cmd/netdelta
fi
mkdir -p "$work/tests"
go build -o "$work/tests/test2json" cmd/test2json

# What runs in the guest: one line of JSON for each event.
listed=$(go list -f '{{.ImportPath}} {{.Dir}}' "${packages[@]}")
files=(--file "$work/tests:/tests")
{
	echo 'status=0'
	while read -r package folder; do
		name=${package//\//.}
		go test -c -ldflags=-w -o "$work/tests/$name" "$package" >&2
		if [[ ! -e $work/tests/$name ]]; then continue; fi # it has no tests
		there=/src/${folder#"$PWD"}
		if [[ -d $folder/testdata ]]; then files+=(--file "$folder/testdata:$there/testdata"); fi
		printf 'mkdir -p %q && cd %q && /tests/test2json -t -p %q /tests/%q -test.v=test2json -test.paniconexit0' "$there" "$there" "$package" "$name"
		printf ' %q' "-test.timeout=${NETDELTA_TEST_TIMEOUT:-30m}" "-test.run=$pattern" "${flags[@]}"
		printf ' || status=1\n'
	done <<<"$listed"
	echo 'exit $status'
} >"$work/tests/run"

mkdir -p "${XDG_CACHE_HOME:-$HOME/.cache}/netdelta"
exec 9>"${XDG_CACHE_HOME:-$HOME/.cache}/netdelta/guest.lock"
# Two guests at once would only slow one another down.
flock -w 1800 9 || {
	echo "guest.sh: another guest has run for half an hour" >&2
	exit 1
}
read -ra extra <<<"${NETDELTA_GUEST:-}"
"$work/netdelta" vm exec "${files[@]}" "${extra[@]}" -- /bin/sh /tests/run </dev/null
