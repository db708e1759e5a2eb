#!/usr/bin/env bash
# lint.sh runs every checker, also after one has found something, and says for each what came of it. It fails when a checker
# finds something or breaks. One that could not look at all is shown as NOT RUN, by name and with the reason: only the
# database of known vulnerabilities, which is on the network, may be missing (unless NETDELTA_NEED_VULNDB is set).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A checker returns 0 (nothing found), notrun, or anything else (found something).
notrun=42
summary=()
failed=0

check() {
	local name=$1 began=$SECONDS status=0
	shift
	echo "== $name"
	"$@" || status=$?
	local took="$((SECONDS - began)) s"
	case $status in
	0) summary+=("ok       $name ($took)") ;;
	"$notrun") summary+=("NOT RUN  $name: $reason") ;;
	*)
		summary+=("FAILED   $name ($took)")
		failed=1
		;;
	esac
}

formatted() {
	local list
	list=$(find . -name '*.go' -not -path './.git/*' -print0 | xargs -0 gofmt -l)
	[[ -z $list ]] && return
	echo "not formatted, run gofmt -w on: $list"
	return 1
}

scripts() {
	local status=0 script
	for script in scripts/*.sh .ci/run; do bash -n "$script" || status=1; done
	return $status
}

# govulncheck exits with 3 when it found something. Everything else that is not 0 is an error of its own, and among these the
# one that is no fault of the program is that the database can't be reached.
vulnerabilities() {
	local output status=0
	output=$("$tools/govulncheck" ${GOVULNDB:+-db "$GOVULNDB"} ./... 2>&1) || status=$?
	echo "$output"
	((status == 0 || status == 3)) && return $status
	if [[ -z ${NETDELTA_NEED_VULNDB:-} ]] && grep -q 'fetching vulnerabilities' <<<"$output"; then
		reason="its database ${GOVULNDB:-https://vuln.go.dev} can't be reached; set GOVULNDB to a mirror (file:///...) to check"
		return $notrun
	fi
	return $status
}

tools=$(scripts/tools.sh)

check gofmt formatted
check "bash -n" scripts
# The loops of the load engines run on stacks that must not grow, which the linker counts for each processor apart.
check "links for arm64" env CGO_ENABLED=0 GOARCH=arm64 go build -o /dev/null ./cmd/...
check "go mod tidy" go mod tidy -diff
check "go mod verify" go mod verify
check golangci-lint env GOGC=400 "$tools/golangci-lint" run ./...
check govulncheck vulnerabilities

echo "== lint"
printf '%s\n' "${summary[@]}"
if [[ -n ${NETDELTA_SUMMARY:-} ]]; then printf '%s\n' "${summary[@]}" | grep '^NOT RUN' >"$NETDELTA_SUMMARY/lint.skipped" || true; fi
exit $failed
