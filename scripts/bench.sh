#!/usr/bin/env bash
# bench.sh [NAMES] runs the programs under extras/bench/ one after another, all when no name is given. They measure, so nothing else
# should run at the same time. A program that misses its aim exits with 1; the others still run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (($# > 0)); then patterns=("${@/#/./extras/bench/}"); else patterns=(./extras/bench/...); fi
list=$(go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' "${patterns[@]}")
[[ -n $list ]] || { echo "bench: no program among ${patterns[*]}" >&2 && exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
missed=()
for program in $list; do
	go build -o "$folder/program" "$program"
	echo "== $program"
	began=$SECONDS
	"$folder/program" </dev/null || missed+=("$program")
	echo "== $program took $((SECONDS - began)) s"
done
if ((${#missed[@]} > 0)); then
	printf 'missed its aim: %s\n' "${missed[@]}" >&2
	exit 1
fi
