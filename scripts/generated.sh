#!/usr/bin/env bash
# generated.sh builds all generated files anew, in a copy of the sources, and fails where one differs from what is committed:
# then somebody changed a source and forgot `make generate`, or changed a generated file by hand.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# All that the generators read; neither builds nor runs that lie about.
tar --exclude=./.git --exclude=./bin --exclude=./dist --exclude=./runs -cf - . | tar -xf - -C "$copy"

mapfile -t sources < <(grep -rlE '^//go:generate ' --include='*.go' . | sort)
((${#sources[@]} > 0)) || { echo "no file says how it is generated" >&2 && exit 1; }
# So that a file that is generated no more is missed.
find "$copy" -name '*_bpfel.go' -delete -o -name '*_bpfel.o' -delete
for source in "${sources[@]}"; do
	(cd "$copy/$(dirname "$source")" && go generate "$(basename "$source")")
done

differs=0
mapfile -t files < <({ find . -path ./.git -prune -o -name '*_bpfel.*' -print; cd "$copy" && find . -name '*_bpfel.*'; } | sort -u)
for file in "${files[@]}"; do
	cmp "$file" "$copy/$file" || differs=1
done
if ((differs)); then
	echo "run 'make generate' and commit what it changes" >&2
	exit 1
fi
echo "${#files[@]} generated files are as their sources say"
