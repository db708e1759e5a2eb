#!/usr/bin/env bash
# summary.sh NAME COMMAND... runs tests and prints each package, each failure, each skip with its reason, and how many there were.
#
# COMMAND prints the events of `go test -json`. A test that fails is tried once more: COMMAND is called again with the arguments
# -test.run=PATTERN PACKAGE, and both results are printed. There is no second try after a panic, a data race, a time-out or a build
# that fails, nor where more than four tests failed, or NETDELTA_AGAIN. NETDELTA_SUMMARY is a folder that several calls share: then that is
# for all of them, and NAME.done, NAME.skipped and NAME.again in it hold the counts, the skips and the second tries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=$1
shift
folder=${NETDELTA_SUMMARY:-}
if [[ -z $folder ]]; then
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
fi
log=$folder/$name.log
before=$(find "$folder" -name '*.again' -exec cat {} + | wc -l)

status=0
go tool -modfile=tools/go.mod gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --format-icons text \
	--rerun-fails=1 --rerun-fails-max-failures=$((${NETDELTA_AGAIN:-4} - before)) --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
	--rerun-fails-report="$folder/$name.report" --raw-command --ignore-non-json-output-lines -- \
	bash -c '"${@:2}" || { echo $? >>"$1"; exit 1; }' "$name" "$folder/$name.failed" "$@" 2>&1 | tee "$log" || status=$?

grep '^DONE' "$log" | tail -1 >"$folder/$name.done" || true
sed -n '/^=== Skipped/,/^\(=== Failed\|=== Errors\|DONE\)/{/^=== SKIP\|^    /p}' "$log" >"$folder/$name.skipped"
# Tests alone: a subtest is tried again as part of its test.
if [[ -e $folder/$name.report ]]; then grep -E '\.[A-Za-z0-9_]*: ' "$folder/$name.report" >"$folder/$name.again" || true; fi
if [[ -s $folder/$name.again ]]; then
	echo "Tried again (the first failure is printed above):"
	cat "$folder/$name.again"
elif [[ -e $folder/$name.failed && $status == 0 ]]; then
	echo "summary.sh: the tests ended with status $(head -1 "$folder/$name.failed"), and none of them says why" >&2
	status=1
fi
rm -f "$log" "$folder/$name.report" "$folder/$name.failed"
exit "$status"
