#!/usr/bin/env bash
# gallery.sh RUNFOLDER makes the pictures of docs/reading-a-report.md anew from the report of a run. It needs chromium (scripts/setup.sh test).
set -euo pipefail

if (($# != 1)) || [[ ! -f $1/trials.jsonl ]]; then
	echo "usage: gallery.sh RUNFOLDER, a folder that netdelta run has written" >&2
	exit 2
fi
run=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pictures=$PWD/docs/pictures
mkdir -p "$pictures"
go test ./report/html -count=1 -run '^TestPictures$' -v -pictured "$run" -pictures "$pictures" | grep -v '^=== '
ls -l "$pictures"
