#!/usr/bin/env bash
# changelog.sh prints the change log: all releases of the folder changelog/, the newest first, each with its notes by kind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../changelog"

echo '# Change log'
echo
echo 'Made by `make changelog` of the notes in [changelog/](changelog/). What has changed since the last release is in `changelog/unreleased/`.'
for release in $(printf '%s\n' [0-9]*_*/ | sort -rV); do
	release=${release%/}
	printf '\n## %s (%s)\n' "${release%%_*}" "${release#*_}"
	for kind in Security Change Enhancement Bugfix; do
		mapfile -t notes < <(grep -l "^$kind: " "$release"/*.md || true)
		((${#notes[@]} > 0)) || continue
		case $kind in
		Security) printf '\n### Security\n' ;;
		Change) printf '\n### Changes that need your attention\n' ;;
		Enhancement) printf '\n### Enhancements\n' ;;
		Bugfix) printf '\n### Fixes\n' ;;
		esac
		# The title in bold, and the text after it.
		for note in "${notes[@]}"; do
			sed -E "1s/^$kind: (.*)\$/\n**\1.**/; 2d" "$note"
		done
	done
done
