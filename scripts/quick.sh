#!/usr/bin/env bash
# quick.sh PACKAGES runs the short tests of packages and of the packages that import them directly: those which a change to them may fail.
# What was tested before, and has not changed since, is not run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

changed=$(go list "${@:?usage: quick.sh PACKAGES}")
mapfile -t touched < <(go list -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
	awk -v changed="$changed" 'BEGIN { split(changed, all); for (i in all) is[all[i]] } { for (i = 1; i <= NF; i++) if ($i in is) { print $1; next } }')
scripts/summary.sh quick go test -json -vet=off -ldflags=-w -short -p 4 -parallel 4 -skip 'OnCluster|InGuest|WhenQuiet' "${touched[@]}"
