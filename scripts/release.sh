#!/usr/bin/env bash
# release.sh VERSION [DATE] makes these sources those of a release, such as 0.2.0: the notes of changelog/unreleased/ become the
# release's, CHANGELOG.md is written anew, and the program says the version. Notes that came since a first call with the same version
# are added. Commit what it changes, then tag the commit vVERSION.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:-}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ && $# -le 2 ]] || { echo "usage: release.sh VERSION [DATE], such as release.sh 1.2.3 2026-01-31" >&2 && exit 2; }
before=$(printf '%s\n' changelog/"$version"_*)
day=${2:-$(date -u +%F)}
[[ $day =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] || { echo "release: $day is no date such as 2026-01-31" >&2 && exit 2; }
if [[ -d $before && -z ${2:-} ]]; then day=${before##*_}; fi
folder=changelog/${version}_$day
if [[ -d $before && $before != "$folder" ]]; then mv "$before" "$folder"; fi
mkdir -p "$folder"
for note in changelog/unreleased/*.md; do
	[[ -e $note ]] || continue
	[[ ! -e $folder/${note##*/} ]] || { echo "release: $folder has a note ${note##*/} already: rename the one in changelog/unreleased" >&2 && exit 1; }
	mv "$note" "$folder/"
done
rmdir changelog/unreleased 2>/dev/null || true
sed -i -E "s/^(const Release = \")[^\"]*/\1v$version/" internal/machine/version.go
scripts/changelog.sh >CHANGELOG.md
echo "Commit this, and tag the commit: git tag v$version"
