#!/usr/bin/env bash
# fuzz.sh TIME runs each fuzz target of the module for TIME, one after another.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

time=${1:?usage: fuzz.sh TIME}
found=0
while read -r package folder; do
	for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$folder"/*_test.go 2>/dev/null | cut -d ' ' -f 2); do
		found=$((found + 1))
		echo "== $package $target"
		go test -toolexec "$PWD/scripts/fuzz-compile.sh" -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
	done
done < <(go list -f '{{.ImportPath}} {{.Dir}}' ./...)
echo "fuzz: $found targets, $time each, nothing found"
