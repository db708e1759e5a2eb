#!/usr/bin/env bash
# fuzz-compile.sh TOOL ARGUMENTS... runs a tool of the Go toolchain for fuzz.sh. Code that runs on native threads has stacks of a fixed size,
# which leave no room for what the compiler adds to guide a fuzzer: these packages are compiled without it.
set -euo pipefail

tool=$1
shift
arguments=("$@")
if [[ $tool == */compile && ${1-} == -V=full ]]; then
	echo "$("$tool" "$@") of fuzz-compile.sh" # what was compiled otherwise is not taken from the cache
	exit
fi
if [[ $tool == */compile && " $* " =~ \ -p\ netdelta/(engine|internal/native|internal/clock)\  ]]; then
	arguments=()
	for a in "$@"; do
		[[ $a == -d=libfuzzer ]] || arguments+=("$a")
	done
fi
exec "$tool" "${arguments[@]}"
