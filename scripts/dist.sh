#!/usr/bin/env bash
# dist.sh makes the release in dist/: for each processor an archive with the program and its agent, manual pages, completions and all
# licences, and beside it a bill of materials; then the manifest by which Krew installs them as a plugin of kubectl, and the
# checksums of them all. The same commit gives the same bytes.
#
#   NETDELTA_RELEASE_URL   folder that the archives are going to be published in, for the manifest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -ra flags <<<"${NETDELTA_BUILD_FLAGS:--trimpath -buildvcs=auto -ldflags=-s}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The program of this machine says its version and writes its own manual and completions.
CGO_ENABLED=0 go build "${flags[@]}" -o "$work/netdelta" ./cmd/netdelta
version=$("$work/netdelta" --version)
version=${version##* }
date=$(git log -1 --format=%cI 2>/dev/null || echo 2000-01-01T00:00:00Z)

mkdir "$work/share" "$work/share/completions" "$work/share/licenses"
SOURCE_DATE_EPOCH=$(date -d "$date" +%s) "$work/netdelta" man "$work/share/man"
"$work/netdelta" completion bash >"$work/share/completions/netdelta.bash"
"$work/netdelta" completion zsh >"$work/share/completions/_netdelta"
"$work/netdelta" completion fish >"$work/share/completions/netdelta.fish"
# kubectl asks a program of this name what follows "kubectl netdelta".
printf '#!/bin/sh\nexec kubectl netdelta __complete "$@"\n' >"$work/share/completions/kubectl_complete-netdelta"
chmod 755 "$work/share/completions/kubectl_complete-netdelta"
materials=$(go tool -modfile=tools/go.mod -n cyclonedx-gomod)

# licences FOLDER gathers the licence of each module that is linked into the program for GOARCH, and that of Go.
licences() {
	local module folder file found
	mkdir -p "$1/go" && cp "$(go env GOROOT)/LICENSE" "$1/go/"
	while read -r module folder; do
		found=
		for file in "$folder"/LICENSE* "$folder"/LICENCE* "$folder"/COPYING* "$folder"/NOTICE*; do
			[[ -f $file ]] || continue
			mkdir -p "$1/$module"
			install -m 644 "$file" "$1/$module/"
			found=yes
		done
		[[ -n $found ]] || { echo "dist: $module has no licence in $folder" >&2 && return 1; }
	done < <(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/... | sort -u)
}

rm -rf dist
mkdir dist
for arch in amd64 arm64; do
	export GOOS=linux GOARCH=$arch CGO_ENABLED=0
	name=netdelta-$version-linux-$arch
	cp -r "$work/share" "$work/$name"
	go build "${flags[@]}" -o "$work/$name/" ./cmd/...
	licences "$work/$name/licenses"
	cp LICENSE README.md "$work/$name/"
	"$materials" bin -json -noserial -notimestamp -std -version "$version" -output "dist/$name.cdx.json" "$work/$name/netdelta"
	cp "dist/$name.cdx.json" "$work/$name/sbom.cdx.json"
	tar -C "$work" --sort=name --mtime="$date" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w -c "$name" | gzip -9n >"dist/$name.tar.gz"
done

# plugin prints the manifest of Krew: without a folder to publish in it is good for `kubectl krew install --manifest dist/netdelta.yaml
# --archive ARCHIVE`. A build that is no release has a version before the first.
plugin() {
	local semantic=$version archive name
	[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || semantic=v0.0.0-${version//[^0-9A-Za-z]/-}
	sed "s/^spec:/&\n  version: $semantic/" deploy/krew/netdelta.yaml
	echo '  platforms:'
	for archive in dist/*.tar.gz; do
		name=$(basename "$archive" .tar.gz)
		cat <<-END
		    - selector: {matchLabels: {os: linux, arch: ${name##*-}}}
		      uri: ${NETDELTA_RELEASE_URL:-https://releases.netdelta.invalid}/$name.tar.gz
		      sha256: "$(sha256sum <"$archive" | cut -d' ' -f1)"
		      files: [{from: $name/netdelta, to: .}, {from: $name/netdelta-agent, to: .}, {from: $name/LICENSE, to: .}]
		      bin: netdelta
		END
	done
}

plugin >dist/netdelta.yaml
cd dist
sha256sum ./* >../dist.sums && mv ../dist.sums SHA256SUMS
sed -i 's| \./| |' SHA256SUMS
cat SHA256SUMS
