#!/usr/bin/env bash
# results.sh NATIVE EXACT writes docs/results/latency-exact.md and docs/results/latency-with-exact.md anew, from the folders of two runs
# of the study latency: one that measured time, and one that counted instructions (netdelta run latency --exact).
set -euo pipefail

if (($# != 2)) || [[ ! -f $1/trials.jsonl || ! -f $2/trials.jsonl ]]; then
	echo "usage: results.sh NATIVE EXACT, two folders that netdelta run has written" >&2
	exit 2
fi
native=$(realpath "$1") exact=$(realpath "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ -x bin/netdelta ]] || make build
mkdir -p docs/results

# page FILE TITLE HOW REPORT... writes one page.
page() {
	local file=$1 title=$2 how=$3
	shift 3
	{
		printf '# %s\n\nMade by these commands, in a clone of this repository:\n\n```\n%s\nscripts/results.sh runs/native runs/exact\n```\n\n' "$title" "$how"
		bin/netdelta report "$@" --format md --out -
	} >"docs/results/$file.new"
	mv "docs/results/$file.new" "docs/results/$file"
	scripts/raw-tables.sh "docs/results/$file"
	wc -l "docs/results/$file"
}

page latency-exact.md "What networks cost, in instructions" \
	"bin/netdelta run latency --exact --out runs/exact" "$exact"
page latency-with-exact.md "What networks cost, by time and by instructions" \
	"bin/netdelta run latency --time-budget 3m --out runs/native
bin/netdelta run latency --exact --out runs/exact" "$native" --exact "$exact"
