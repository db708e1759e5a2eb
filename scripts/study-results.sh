#!/usr/bin/env bash
# study-results.sh RUN NAME [COMMAND...] writes docs/results/NAME.md anew from the folder of a run: what was asked, how the run was
# made (the commands are those that went on with it), what came out, and the claims with their verdicts. What the study can't show
# here is in docs/studies.md, to which the page leads. A study that is not built in is docs/results/NAME.yaml; one of clusters was
# run on that of `make cluster-up`.
set -euo pipefail

if (($# < 2)) || [[ ! -f $1/trials.jsonl || ! $2 =~ ^[a-z0-9-]+$ ]]; then
	echo "usage: study-results.sh RUN NAME [COMMAND...], a folder that netdelta run has written, the name of a page (storage), and what it was resumed with" >&2
	exit 2
fi
run=$(realpath "$1") name=$2
shift 2
cd "$(dirname "${BASH_SOURCE[0]}")/.."
make --no-print-directory build # an older program may not know all that the run has
mkdir -p docs/results

study=$(sed -n 's/^study: *//p' "$run/study.yaml")
budget=$(sed -n 's/.*time_budget: *\([^,}]*\).*/\1/p' "$run/study.yaml")
own=docs/results/$name.yaml
if [[ -f $own ]] && grep -q 'kind: kubernetes' "$own"; then
	made="make setup build cluster-up
export KUBECONFIG=~/.cache/netdelta/cluster/kubeconfig
bin/netdelta run $own --base-image localhost/netdelta/base:1 --node-agent --time-budget $budget --out runs/$name"
	told="What a cluster on one machine can't show: [the cluster](../cluster.md)."
else
	[[ -f $own ]] || own=$study
	made="make setup build
bin/netdelta run $own --time-budget $budget --out runs/$name"
	part=${study%%-*}
	grep -qx "## $part" docs/studies.md || part=what-cant-be-had-here
	told="What stands for what, and what one machine can't show: [the studies](../studies.md#$part)."
fi
{
	printf '# %s\n\n' "What a run of the study $study found"
	printf 'Made by these commands, in a clone of this repository:\n\n'
	printf '```\n'
	printf '%s\n' "$made" "$@"
	printf 'scripts/study-results.sh runs/%s %s\n```\n\n' "$name" "$name"
	printf '%s\n\n' "$told"
	bin/netdelta report "$run" --format md --out -
} >"docs/results/$name.md.new"
mv "docs/results/$name.md.new" "docs/results/$name.md"
if (($(wc -c <"docs/results/$name.md") > 20000)); then
	scripts/raw-tables.sh "docs/results/$name.md"
fi
wc -l "docs/results/$name.md"
