#!/usr/bin/env bash
# quick.sh PACKAGES runs the short tests of packages, and of those that import them directly as far as they make no namespaces, which takes
# minutes: make test runs these. What was tested before, and has not changed since, is not run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

changed=$(go list "${@:?usage: quick.sh PACKAGES}")
mapfile -t touched < <(echo "$changed" && go list -f '{{.ImportPath}} {{.Dir}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
	awk -v changed="$changed" 'BEGIN { split(changed, all); for (i in all) is[all[i]] } { for (i = 3; i <= NF; i++) if ($i in is) { print $1, $2; next } }' |
	while read -r path folder; do grep -qsE 'require\.(Namespaces|Tool)\(|browsertest' "$folder"/*_test.go || echo "$path"; done)
scripts/summary.sh quick go test -json -vet=off -ldflags=-w -short -p 4 -parallel 4 -skip 'OnCluster|InGuest|WhenQuiet' "${touched[@]}"
