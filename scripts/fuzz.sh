#!/usr/bin/env bash
# fuzz.sh TIME runs each fuzz target of the module for TIME, as many at once as there are processors, each on one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export time=${1:?usage: fuzz.sh TIME}

# fuzz PACKAGE TARGET runs one target, and prints what it said in one piece.
fuzz() {
	local said status=0
	said=$(go test -toolexec "$PWD/scripts/fuzz-compile.sh" -parallel 1 -run '^$' -fuzz "^$2\$" -fuzztime "$time" "$1" 2>&1) || status=1
	printf '== %s %s\n%s\n' "$1" "$2" "$said"
	return $status
}
export -f fuzz

targets=$(go list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package folder; do
	grep -shoE '^func Fuzz[A-Za-z0-9_]+' "$folder"/*_test.go | sed "s|^func |$package |" || true
done)
# shellcheck disable=SC2016 # that shell expands it
xargs -P "$(nproc)" -n 2 bash -c 'fuzz "$@"' fuzz <<<"$targets"
echo "fuzz: $(wc -l <<<"$targets") targets, $time each, nothing found"
