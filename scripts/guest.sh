#!/usr/bin/env bash
# guest.sh [--json] PACKAGE... [FLAGS OF go test] runs tests of packages as root in a guest, whose kernel has every kind of link,
# and ends with a list of what was skipped there and why:
#
#   scripts/guest.sh ./testbed/lab -run TestNetworks/ipip -v
#
# Packages run one after another in one guest, each in its own folder with its testdata. --json gives what `go test -json` would.
# NETDELTA_GUEST holds flags of `netdelta vm exec` (--cards 2 --memory 2GiB, --file HERE:THERE); NETDELTA is a netdelta to boot the
# guest with, linked statically, in place of one built of these sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

json=false
packages=()
while (($# > 0)); do
	case $1 in
	--json) json=true ;;
	-*) break ;;
	*) packages+=("$1") ;;
	esac
	shift
done
((${#packages[@]} > 0)) || {
	echo "usage: scripts/guest.sh [--json] PACKAGE... [FLAGS OF go test]" >&2
	exit 2
}
flags=()
for flag in "$@"; do
	if [[ $flag == -test.* ]]; then flag=-${flag#-test.}; fi
	if [[ $flag == -v ]]; then continue; fi # it is always on, for the list of skips
	if [[ $flag == -[a-z]* ]]; then flag=-test.${flag#-}; fi
	flags+=("$flag")
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
go build -o "$work/tests/testreport" ./scripts/testreport
go build -o "$work/tests/test2json" cmd/test2json

# What runs in the guest: one line of JSON for each event, to the report or to standard output.
listed=$(go list -f '{{.ImportPath}} {{.Dir}}' "${packages[@]}")
files=(--file "$work/tests:/tests")
{
	echo 'set -u'
	echo 'events() {'
	while read -r package folder; do
		name=${package//\//.}
		go test -c -o "$work/tests/$name" "$package" >&2
		if [[ ! -e $work/tests/$name ]]; then continue; fi # it has no tests
		there=/src/${folder#"$PWD"}
		if [[ -d $folder/testdata ]]; then files+=(--file "$folder/testdata:$there/testdata"); fi
		printf 'mkdir -p %q && cd %q && /tests/test2json -t -p %q /tests/%q -test.v=test2json -test.paniconexit0' "$there" "$there" "$package" "$name"
		printf ' %q' "-test.timeout=${NETDELTA_TEST_TIMEOUT:-15m}" "${flags[@]}"
		printf '\n'
	done <<<"$listed"
	echo '}'
	if $json; then echo 'events'; else echo 'events | /tests/testreport'; fi
} >"$work/tests/run"

mkdir -p "${XDG_CACHE_HOME:-$HOME/.cache}/netdelta"
exec 9>"${XDG_CACHE_HOME:-$HOME/.cache}/netdelta/guest.lock"
# Two guests at once would only slow one another down.
flock -w 1800 9 || {
	echo "guest.sh: another guest has run for half an hour" >&2
	exit 1
}
read -ra extra <<<"${NETDELTA_GUEST:-}"
"$work/netdelta" vm exec --timing "${files[@]}" "${extra[@]}" -- /bin/sh /tests/run </dev/null
