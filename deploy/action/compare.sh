#!/usr/bin/env bash
# compare.sh is what the action does: it compares two runs, writes the table into the job's summary and annotations beside the change, and
# comments on the pull request that the job is for. A comment of an earlier job of the same title is replaced. The exit status is that of
# netdelta compare; a comment that can't be written is a warning, for it does not change what was measured.
#
# Its input is in variables: OLD, NEW, MARGIN, TITLE, COMMENT, NETDELTA of action.yml, and what GitHub sets in every job: GITHUB_TOKEN,
# GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_EVENT_PATH, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY.
set -euo pipefail

most=60000 # bytes of a comment: GitHub takes 65,536 characters

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compare=("${NETDELTA:-netdelta}" compare "${OLD:?the run folder to compare with}" "${NEW:?the run folder of this change}")
if [[ -n ${MARGIN:-} ]]; then compare+=(--margin "$MARGIN"); fi

status=0
"${compare[@]}" --format md >"$work/table" 2>"$work/complaint" || status=$?
cat "$work/complaint" >&2
# What is wrong is said where the table would be.
if [[ ! -s $work/table ]]; then { echo '```' && cat "$work/complaint" && echo '```'; } >"$work/table"; fi
"${compare[@]}" --format github 2>/dev/null || true # the same outcome, as annotations

title=${TITLE:-What this change does to the network\'s cost}
mark="<!-- netdelta compare: ${title//[^A-Za-z0-9 ]/} -->"
{
	printf '%s\n## %s\n\n' "$mark" "$title"
	head -c "$most" "$work/table"
	if (($(wc -c <"$work/table") > most)); then printf '\n\nThe table is longer: `netdelta compare` prints all of it.\n'; fi
} >"$work/body"

echo "status=$status" >>"${GITHUB_OUTPUT:-/dev/null}"
tail -n +2 "$work/body" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"

# api METHOD PATH [FILE] calls the interface of GitHub with a document, and prints the answer. The token is handed over where no list of
# processes shows it.
api() {
	curl --fail-with-body --silent --show-error --max-time 60 --retry 2 -X "$1" "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/$2" \
		-H 'Accept: application/vnd.github+json' -H 'X-GitHub-Api-Version: 2022-11-28' \
		-H @<(printf 'Authorization: Bearer %s\n' "$GITHUB_TOKEN") ${3:+-H 'Content-Type: application/json' --data-binary @"$3"}
}

# comment writes the comment, or replaces the one that an earlier job has left.
comment() {
	local number page found=''
	number=$(jq -r '.pull_request.number // empty' "$GITHUB_EVENT_PATH")
	if [[ -z $number ]]; then
		echo "netdelta: this job is for no pull request: the table is in its summary" >&2
		return
	fi
	for ((page = 1; page <= 10; page++)); do
		api GET "issues/$number/comments?per_page=100&page=$page" >"$work/comments" || return 1
		found=$(jq -r --arg mark "$mark" 'map(select(.body | startswith($mark))) | last | .id // empty' "$work/comments")
		if [[ -n $found || $(jq length "$work/comments") -lt 100 ]]; then break; fi
	done
	jq -n --rawfile body "$work/body" '{body: $body}' >"$work/document"
	if [[ -n $found ]]; then
		api PATCH "issues/comments/$found" "$work/document" >/dev/null
	else
		api POST "issues/$number/comments" "$work/document" >/dev/null
	fi
}

if [[ ${COMMENT:-true} == true ]]; then
	comment || echo "::warning title=netdelta compare::the comment could not be written (the token needs pull-requests: write); the table is in the job's summary"
fi
exit "$status"
