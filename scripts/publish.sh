#!/usr/bin/env bash
# publish.sh HOST/OWNER/netdelta [--releases URL] [--image REF] says where netdelta is published, in this tree: it sets the module's path
# in all sources, and in deploy/addresses the folder of the releases and the image's name, and it writes the commands that install
# netdelta from there into docs/install.md. It can be run again with another address. Commit what it changes, then tag the version.
#
#   --releases   folder of all releases (default: https://HOST/OWNER/netdelta/releases/download)
#   --image      image without a tag (default: ghcr.io/OWNER/netdelta for github.com, registry.gitlab.com/OWNER/netdelta for
#                gitlab.com, else HOST/OWNER/netdelta)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
	echo "publish: $1" >&2
	echo "usage: publish.sh HOST/OWNER/netdelta [--releases URL] [--image REF]" >&2
	exit 2
}

new='' releases='' image=''
while (($# > 0)); do
	case $1 in
	--releases | --image)
		(($# > 1)) || usage "$1 takes a value"
		if [[ $1 == --image ]]; then image=$2; else releases=${2%/}; fi
		shift
		;;
	-*) usage "there is no flag $1" ;;
	*) [[ -z $new ]] || usage "give one address, not $new and $1"; new=$1 ;;
	esac
	shift
done
[[ -n $new ]] || usage "say where netdelta is published"
# go install names a program by the last part of its path, and takes a host by its dot.
[[ $new =~ ^[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?(/[A-Za-z0-9._~-]+)+/netdelta$ && $new != *:* ]] ||
	usage "$new is no path of a module: write HOST/OWNER/netdelta, such as git.example.org/me/netdelta, without https:// and without a port"
[[ -z $releases || $releases =~ ^https?://[^[:space:]\"\'\|]+$ ]] || usage "--releases $releases is no URL"
[[ -z $image || $image =~ ^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$ ]] || usage "--image $image is no name of an image without a tag"

owner=${new#*/}
case ${new%%/*} in
github.com) registry=ghcr.io ;;
gitlab.com) registry=registry.gitlab.com ;;
*) registry=${new%%/*} ;;
esac
image=${image:-$registry/${owner,,}}
releases=${releases:-https://$new/releases/download}
old=$(go list -m)

# Sources name packages of their own as "MODULE/ROOM...", and the modules of tools are below the module.
rooms=$(find . -mindepth 1 -maxdepth 1 -type d -not -name '.*' -printf '%f|')
from=${old//./\\.}
mapfile -t sources < <(find . \( -path ./.git -o -path ./bin -o -path ./dist -o -path ./runs -o -path ./site \) -prune -o -type f \
	\( -name '*.go' -o -name go.mod -o -name Makefile -o -name '*.sh' -o -name '*.md' \) -print0 |
	xargs -0 grep -lE "(^module |\"|go install |std )$from(/|\$)" || true)
((${#sources[@]} > 0)) || { echo "publish: no source names the module $old" >&2 && exit 1; }
sed -i -E "s#^module $from(/|\$)#module $new\1#; s#\"$from/(\"|(${rooms%|})[/\"])#\"$new/\1#g; s#go install $from/#go install $new/#g; s#\(std $from/#(std $new/#" "${sources[@]}"
# Names of imports stand in alphabetical order, which a new one may have changed.
printf '%s\n' "${sources[@]}" | grep '\.go$' | xargs gofmt -w

sed -i -E "s|^releases=.*|releases=$releases|; s|^image=.*|image=$image|" deploy/addresses

guide=docs/install.md
part=$(mktemp)
trap 'rm -f "$part"' EXIT
cat >"$part" <<END
    go install $new/cmd/...@latest              # with Go: the program and its agent, into the folder of Go's programs
    docker run --rm $image:VERSION version      # as an image, for amd64 and arm64

Archives, packages for Debian and Fedora, the manifest for clusters, the Krew plugin and the Homebrew formula of a version are in
$releases/VERSION.
END
sed -i -e "/^<!-- published -->/,/^<!-- end of published -->/{/^<!-- published -->/r $part" -e '/^<!--/!d' -e '}' "$guide"

echo "module    $new"
echo "releases  $releases/VERSION"
echo "image     $image:VERSION"
echo "Commit this, and tag the version: git tag v$(ls changelog | sed -n 's/^\([0-9][0-9.]*\)_.*/\1/p' | sort -V | tail -1)"
