#!/usr/bin/env bash
# site.sh makes the site of the documentation in site/, of the same Markdown that is read in the repository. It fails where a link leads
# nowhere, a table is not one, or a page would load something from elsewhere. What makes it is pinned in tools/site, comes from the Python
# package index once, and stays in a folder of the cache; after that nothing but this machine is needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

key=$({ cat tools/site/requirements.txt; python3 --version; } | sha256sum | cut -c1-16)
home=${XDG_CACHE_HOME:-${HOME:?HOME or XDG_CACHE_HOME must say where to keep what makes the site}/.cache}/netdelta/site
folder=$home/$key
if [[ ! -d $folder ]]; then
	mkdir -p "$home"
	exec 9>"$home/.lock"
	flock 9
	if [[ ! -d $folder ]]; then
		trap 'rm -rf "$folder.fresh"' EXIT
		rm -rf "$folder.fresh"
		python3 -m venv "$folder.fresh" || { echo "site: install the package python3-venv" >&2 && exit 1; }
		"$folder.fresh/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r tools/site/requirements.txt
		mv -T "$folder.fresh" "$folder"
	fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pages=$work/pages
mkdir "$pages"
# The pages, and what they lead to.
find . \( -path ./.git -o -path ./.github -o -path ./bin -o -path ./dist -o -path ./runs -o -path ./site -o -name testdata -o -path './changelog/[0-9u]*' \) -prune -o \
	-type f \( -name '*.md' -o -path './docs/*' -o -path './schema/*' -o -path './deploy/*' -o -name iframe-worker.js \) -print0 | tar --null -T - -cf - | tar -xf - -C "$pages"

# list FOLDER TITLE writes a page with links to those of a folder.
list() {
	local file
	{
		printf '# %s\n\n' "$2"
		for file in "$1"/*; do
			case $file in
			*/README.md) ;;
			*.md) printf -- '- [%s](%s)\n' "$(sed -n 's/^# //p;T;q' "$file")" "${file##*/}" ;;
			*) printf -- '- [%s](%s)\n' "${file##*/}" "${file##*/}" ;;
			esac
		done
	} >"$work/list"
	mv "$work/list" "$1/README.md"
}
list "$pages/docs/adr" Decisions
list "$pages/docs/results" Results
list "$pages/docs/cni" 'Example configurations of CNI plugins'
list "$pages/changelog" 'Notes of changes'

rm -rf site
# A release of the theme that is to come is announced at each call: this one is pinned.
NO_MKDOCS_2_WARNING=true DISABLE_MKDOCS_2_WARNING=true NETDELTA_SITE_PAGES=$pages NETDELTA_SITE=$PWD/site PYTHONDONTWRITEBYTECODE=1 \
	"$folder/bin/python" -m mkdocs build --quiet --strict --config-file tools/site/mkdocs.yml

wrong=0
# complain PATTERN WHAT names the pages that have what they must not.
complain() {
	if grep -rlE --include='*.html' "$1" site; then
		echo "site: the pages above $2" >&2
		wrong=1
	fi
}
complain '<(script|img|iframe|source)[^>]+src="?(https?:)?//' 'load something from elsewhere'
complain '<link[^>]+rel="?(stylesheet|preconnect|preload|icon)[^>]+href="?(https?:)?//' 'load something from elsewhere'
complain '^(<p>)?\|[^|]*\|.*\|$' 'have a table that is none: it needs an empty line before it'
((wrong == 0)) || exit 1
echo "site/index.html and $(($(find site -name '*.html' | wc -l) - 1)) further pages"
