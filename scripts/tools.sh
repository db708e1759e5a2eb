#!/usr/bin/env bash
# tools.sh prints the folder of the checkers of lint.sh, pinned in tools/go.mod, and builds them first when they are not there yet.
#
# The folder's name is a hash of everything that decides what the checkers are, so that a change of a pin builds anew, and
# nothing else does: a second run takes milliseconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../tools"

key=$({ cat go.mod go.sum; go env GOVERSION GOOS GOARCH; } | sha256sum | cut -c1-16)
home=${XDG_CACHE_HOME:-${HOME:?HOME or XDG_CACHE_HOME must say where to keep the checkers}/.cache}/netdelta/tools
folder=$home/$key

if [[ ! -d $folder ]]; then
	mkdir -p "$home"
	# Two runs at once: the second waits for the first and finds its work.
	exec 9>"$home/.lock"
	flock 9
	if [[ ! -d $folder ]]; then
		fresh=$(mktemp -d "$home/.fresh.XXXXXX")
		trap 'rm -rf "$fresh"' EXIT
		echo "building the checkers into $folder (once; several minutes of processor time)" >&2
		began=$SECONDS
		# Each runs once for minutes of compiling: calls are inlined in Go's own packages alone.
		CGO_ENABLED=0 GOGC=400 nice -n 10 go build -trimpath -buildvcs=false -gcflags=all='-dwarf=false -l' -gcflags=std=-dwarf=false \
			-ldflags='-s -w' -o "$fresh/" github.com/golangci/golangci-lint/v2/cmd/golangci-lint golang.org/x/vuln/cmd/govulncheck >&2
		chmod 755 "$fresh"
		mv -T "$fresh" "$folder"
		trap - EXIT
		echo "built the checkers in $((SECONDS - began)) s" >&2
	fi
fi
echo "$folder"
