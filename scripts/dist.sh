#!/usr/bin/env bash
# dist.sh makes the release in dist/. For each processor: an archive with the programs, manual pages, completions and all licences, a bill
# of materials, and packages for Debian and Fedora. For both: the container image, and the manifest that runs it on a cluster each night.
# Then what Krew and Homebrew install the archives by, the checksums of all, and the provenance. The same commit gives the same bytes.
#
#   NETDELTA_RELEASE_URL   folder that the files are going to be published in (default: that of deploy/addresses)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -ra flags <<<"${NETDELTA_BUILD_FLAGS:--trimpath -buildvcs=auto -ldflags=-s}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The program of this machine says its version and writes its own manual and completions.
CGO_ENABLED=0 go build "${flags[@]}" -o "$work/netdelta" ./cmd/netdelta
version=$("$work/netdelta" --version)
version=${version##* }
plain=${version#v} # as packages write it
date=$(git log -1 --format=%cI 2>/dev/null || echo 2000-01-01T00:00:00Z)
module=$(go list -m)
releases='' image=''
# shellcheck source=/dev/null # two assignments
. deploy/addresses
# Where nobody has said where netdelta is published, addresses lead nowhere, as names in .invalid do.
home=https://netdelta.invalid
if [[ $module == */* ]]; then home=https://$module; fi
url=${NETDELTA_RELEASE_URL:-${releases:-$home/releases}/$version}
image=${image:-localhost/netdelta}:${version/+/-} # a tag has no plus

mkdir "$work/share" "$work/share/completions" "$work/share/licenses"
SOURCE_DATE_EPOCH=$(date -d "$date" +%s) "$work/netdelta" man "$work/share/man"
"$work/netdelta" completion bash >"$work/share/completions/netdelta.bash"
"$work/netdelta" completion zsh >"$work/share/completions/_netdelta"
"$work/netdelta" completion fish >"$work/share/completions/netdelta.fish"
# kubectl asks a program of this name what follows "kubectl netdelta".
printf '#!/bin/sh\nexec kubectl netdelta __complete "$@"\n' >"$work/share/completions/kubectl_complete-netdelta"
chmod 755 "$work/share/completions/kubectl_complete-netdelta"
materials=$(go tool -modfile=tools/go.mod -n cyclonedx-gomod)
packages=$(CGO_ENABLED=0 go tool -modfile=tools/packages/go.mod -n nfpm)

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
	cp LICENSE README.md CHANGELOG.md "$work/$name/"
	"$materials" bin -json -noserial -notimestamp -std -version "$version" -output "dist/$name.cdx.json" "$work/$name/netdelta"
	cp "dist/$name.cdx.json" "$work/$name/sbom.cdx.json"
	tar -C "$work" --sort=name --mtime="$date" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w -c "$name" | gzip -9n >"dist/$name.tar.gz"
	mkdir "$work/$name/man.gz"
	for page in "$work/$name"/man/*; do gzip -9n <"$page" >"$work/$name/man.gz/${page##*/}.gz"; done
	for kind in deb rpm; do
		(cd "$work/$name" && ARCH=$arch VERSION=$plain HOMEPAGE=$home SOURCE_DATE_EPOCH=$(date -d "$date" +%s) "$packages" package --config "$OLDPWD/deploy/packages/nfpm.yaml" \
			--packager $kind --target "$OLDPWD/dist/netdelta-$version-linux-$arch.$kind")
	done
done
unset GOOS GOARCH

"$work/netdelta" image --out "dist/netdelta-$version-image.tar" --name "$image" \
	--binary "$work/netdelta-$version-linux-amd64/netdelta" --binary "$work/netdelta-$version-linux-arm64/netdelta"
"$work/netdelta" kube schedule --image "$image" --namespace netdelta --new-namespace >"dist/netdelta-$version-kubernetes.yaml"

# sum FILE prints its checksum.
sum() { sha256sum <"$1" | cut -d' ' -f1; }

# formula prints the formula of Homebrew.
formula() {
	local arch script="s|@HOMEPAGE@|$home|; s|@VERSION@|$plain|"
	for arch in amd64 arm64; do
		script+="; s|@URL_$arch@|$url/netdelta-$version-linux-$arch.tar.gz|; s|@SHA256_$arch@|$(sum "dist/netdelta-$version-linux-$arch.tar.gz")|"
	done
	sed "$script" deploy/homebrew/netdelta.rb
}

# plugin prints the manifest of Krew: without a folder to publish in it is good for `kubectl krew install --manifest dist/netdelta.yaml
# --archive ARCHIVE`.
plugin() {
	local archive name
	# Krew takes no plus in a version.
	sed "s/^spec:/&\n  version: ${version/+/-g}/" deploy/krew/netdelta.yaml
	echo '  platforms:'
	for archive in dist/*.tar.gz; do
		name=$(basename "$archive" .tar.gz)
		cat <<-END
		    - selector: {matchLabels: {os: linux, arch: ${name##*-}}}
		      uri: $url/$name.tar.gz
		      sha256: "$(sum "$archive")"
		      files: [{from: $name/netdelta, to: .}, {from: $name/netdelta-agent, to: .}, {from: $name/LICENSE, to: .}]
		      bin: netdelta
		END
	done
}

# provenance FILES prints a statement of in-toto (https://in-toto.io/Statement/v1) that says of what and how files were built, in the form of
# SLSA (https://slsa.dev/spec/v1.0/provenance). It is not signed: who publishes it signs it.
provenance() {
	local file separator='' revision
	revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
	echo '{"_type": "https://in-toto.io/Statement/v1", "subject": ['
	for file in "$@"; do
		printf '%s  {"name": "%s", "digest": {"sha256": "%s"}}' "$separator" "${file##*/}" "$(sum "$file")"
		separator=$',\n'
	done
	cat <<-END

	], "predicateType": "https://slsa.dev/provenance/v1", "predicate": {
	  "buildDefinition": {
	    "buildType": "$home/make-dist/v1",
	    "externalParameters": {"target": "dist", "version": "$version", "releases": "$url", "image": "$image"},
	    "internalParameters": {"go": "$(go env GOVERSION)", "flags": "${flags[*]}"},
	    "resolvedDependencies": [
	      {"uri": "git+$home", "digest": {"gitCommit": "$revision"}},
	      {"name": "go.sum", "digest": {"sha256": "$(sum go.sum)"}}
	    ]
	  },
	  "runDetails": {"builder": {"id": "$home/scripts/dist.sh"}}
	}}
	END
}

plugin >dist/netdelta.yaml
formula >dist/netdelta.rb
provenance dist/* >"$work/provenance"
mv "$work/provenance" "dist/netdelta-$version.provenance.json"
cd dist
sha256sum ./* >../dist.sums && mv ../dist.sums SHA256SUMS
sed -i 's| \./| |' SHA256SUMS
cat SHA256SUMS
