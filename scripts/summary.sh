#!/usr/bin/env bash
# summary.sh NAME COMMAND... runs tests and prints each package, each failure, each skip with its reason, and how many there were.
#
# COMMAND prints the events of `go test -json`. NETDELTA_SUMMARY is a folder that several calls share: NAME.done and NAME.skipped in it hold
# the counts and the skips.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
go tool -modfile=tools/go.mod gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --format-icons text \
	--raw-command --ignore-non-json-output-lines -- "$@" 2>&1 | tee "$log" || status=$?
if [[ -n ${NETDELTA_SUMMARY:-} ]]; then
	grep '^DONE' "$log" | tail -1 >"$NETDELTA_SUMMARY/$name.done" || true
	sed -n '/^=== Skipped/,/^\(=== Failed\|=== Errors\|DONE\)/{/^=== SKIP\|^    /p}' "$log" >"$NETDELTA_SUMMARY/$name.skipped"
fi
exit "$status"
