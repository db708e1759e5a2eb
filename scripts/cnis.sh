#!/usr/bin/env bash
# cnis.sh FOLDER [CNI...] measures CNIs of the cluster for tests, all of them unless some are named: each on a fresh cluster, which is
# ended afterwards. What came out is in a folder of FOLDER for each: the steps of its start (up), its agents at rest (agents) and while pods come
# and go (churn), how long these took to be ready (ready), a run of docs/results/cnis.yaml (run), one with policies and without (policed), and how
# soon a policy is in force (policies.json). It ends with the tables of docs/results/cnis.md, and writes all deltas to cnis.csv.
set -euo pipefail
(($# > 0)) || { echo "usage: cnis.sh FOLDER [CNI...]" >&2; exit 2; }
mkdir -p "$1"
out=$(realpath "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cnis=("$@")
((${#cnis[@]} > 0)) || cnis=(bridge flannel-host-gw flannel-vxlan calico-routes calico-bgp calico-vxlan cilium-native cilium-vxlan cilium-ebpf)
rest=${REST:-60}       # seconds for which agents are watched at rest, and as many while pods come and go
budget=${BUDGET:-5m}   # of a run
policed=${POLICED:-90s} # of a run with policies and without
repeat=${REPEAT:-10}   # how often a policy is made

make --no-print-directory build
go build -o "$out/cluster" ./extras/cluster
cluster=$out/cluster
NETDELTA_KUBERNETES=${NETDELTA_KUBERNETES:-$(scripts/kubernetes.sh)}
NETDELTA_CALICO=${NETDELTA_CALICO:-$(scripts/kubernetes.sh calico)}
NETDELTA_CILIUM=${NETDELTA_CILIUM:-$(scripts/kubernetes.sh cilium)}
kubectl=$NETDELTA_KUBERNETES/kubectl
KUBECONFIG=${XDG_CACHE_HOME:-$HOME/.cache}/netdelta/cluster/kubeconfig
export NETDELTA_KUBERNETES NETDELTA_CALICO NETDELTA_CILIUM KUBECONFIG
if "$cluster" status >/dev/null 2>&1; then
	echo "cnis.sh: a cluster is up; end it first: make cluster-down" >&2
	exit 1
fi

# agents prints a line NAME KIB TICKS for each program of the CNI, and kube-proxy, of a node: its memory, and its processor time so far.
agents() {
	# shellcheck disable=SC2016 # the node expands it
	"$cluster" node "$1" sh -c 'for p in /proc/[0-9]*; do
		exe=$(readlink "$p/exe") || continue
		case $exe in
		/opt/netdelta/cni/*|*/flanneld|*/kube-proxy|*/kube-network-policies)
			echo "$(basename "$exe")/${p#/proc/} $(awk "/^VmRSS/ { print \$2 }" "$p/status") $(awk "{ print \$14 + \$15 }" "$p/stat")" ;;
		esac
	done' | sort
}

# churn has pods come and go on a node, one after the other, and prints how many milliseconds each took to be ready.
churn() {
	local end=$((SECONDS + rest)) began
	while ((SECONDS < end)); do
		began=$(date +%s%N)
		"$kubectl" run churn --image localhost/netdelta/base:1 --image-pull-policy Never --restart Never \
			--overrides '{"spec": {"nodeName": "w1", "terminationGracePeriodSeconds": 0}}' --command -- sleep 3600 >/dev/null
		"$kubectl" wait --for condition=Ready pod/churn --timeout 1m >/dev/null
		echo $((($(date +%s%N) - began) / 1000000))
		"$kubectl" delete pod churn --wait >/dev/null
	done
}

# watched FILE COMMAND... writes to FILE what the agents of a node take while a command runs for $rest seconds. A hundredth of a second of
# processor time is a tick.
watched() {
	local to=$1
	shift
	agents w1 >"$to.before"
	"$@"
	agents w1 >"$to.after"
	join "$to.before" "$to.after" |
		awk -v s="$rest" '{ sub("/.*", "", $1); printf "%s %.0f MiB, %.1f%%\n", $1, $4 / 1024, ($5 - $3) / s }' >"$to"
	rm "$to.before" "$to.after"
}

measure() {
	local cni=$1 folder=$out/$1
	rm -rf "$folder"
	mkdir "$folder"
	trap '"$cluster" down' EXIT
	"$cluster" up --cni "$cni" 2>&1 >/dev/null | tee "$folder/up"
	"$cluster" programs --netdelta bin/netdelta >/dev/null
	sleep 20 # what a start still does
	watched "$folder/agents" sleep "$rest"
	watched "$folder/churn" churn >"$folder/ready"
	bin/netdelta run docs/results/cnis.yaml --image localhost/netdelta/programs:1 --node-agent --quiet --time-budget "$budget" --out "$folder/run" >"$folder/run.txt" || true
	case $cni in bridge | flannel-*) "$cluster" switch --policy kube-network-policies ;; esac
	bin/netdelta run --testbed kubernetes --image localhost/netdelta/programs:1 --node-agent --quiet --networks pod --baseline pod --workloads tcp-rr,tcp-crr \
		--placement cross-node --factor message=300 --factor policy=none,kubernetes --factor policy.rules=10 --time-budget "$policed" --out "$folder/policed" >"$folder/policed.txt" || true
	bin/netdelta policies --image localhost/netdelta/programs:1 --fresh --rules 1 --repeat "$repeat" --every 5ms --json --out "$folder/policies" >"$folder/policies.json" || true
	"$cluster" down
	trap - EXIT
}

# delta has jq print a delta in percent, with its interval.
delta='def pct: (. - 1) * 1000 | round / 10 | if . > 0 then "+\(.)" else "\(.)" end;
	def delta: if . == null then "-" else "\(.ratio | pct)% [\(.ratio_low | pct), \(.ratio_high | pct)]" end;'

# table WORKLOAD prints the costs of a workload under all CNIs: across nodes, and in the last two columns on one node.
table() {
	local cni
	printf '\n### %s\n\n| CNI | host | pod | pod against host | clusterip against host | on one node: pod | clusterip |\n| --- | --: | --: | --: | --: | --: | --: |\n' "$1"
	for cni in "${cnis[@]}"; do
		jq -r --arg cni "$cni" --arg workload "$1" "$delta"'
			def amount($unit): if $unit == "ns" then "\(. / 100 | round / 10) µs" elif $unit == "bit/s" then "\(. / 1e8 | round / 10) Gbit/s" else "\(round)/s" end;
			def of($placement): [.deltas[] | select(.headline and .workload == $workload and .placement == $placement)] | INDEX(.network);
			of("cross-node") as $across | of("same-node") as $one | $across.pod | select(. != null) |
			"| `\($cni)` | \(.baseline_value | amount($across.pod.unit)) | \(.value | amount($across.pod.unit)) | \(delta) | \($across.clusterip | delta) | \($one.pod | delta) | \($one.clusterip | delta) |"
		' "$out/$cni/run/result.json"
	done
}

# processors prints how much processor time both ends of a way between nodes take: for a transaction of tcp-rr, and for a gigabyte of a stream.
processors() {
	local cni
	printf '\n### Processor time across nodes\n\n| CNI | a round trip: host | pod | pod against host | a gigabyte: host | pod | pod against host |\n| --- | --: | --: | --: | --: | --: | --: |\n'
	for cni in "${cnis[@]}"; do
		jq -r --arg cni "$cni" "$delta"'
			def amount: if .unit == "ns" then [.baseline_value, .value | "\(. / 100 | round / 10) µs"] else [.baseline_value, .value | "\(. * 1000 | round / 1000) s"] end;
			[.deltas[] | select(.metric == "cpu" and .placement == "cross-node" and .network == "pod")] | INDEX(.workload) |
			"| `\($cni)` | " + ([."tcp-rr", ."tcp-stream" | if . == null then "-", "-", "-" else amount[], delta end] | join(" | ")) + " |"
		' "$out/$cni/run/result.json"
	done
}

# proved says of how many trials the path was proved.
proved() {
	local cni
	for cni in "${cnis[@]}"; do cat "$out/$cni/run/result.json"; done |
		jq -rs '[.[].paths[]] | "\nThe path of \([.[].proved] | add) of \([.[].trials] | add) trials was proved."'
}

# tables prints what came out for all CNIs.
tables() {
	local cni workload
	for workload in tcp-rr udp-rr tcp-crr tcp-stream http; do table "$workload"; done
	processors
	proved
	printf '\n### Agents\n\n| CNI | in force after | a pod is ready after, median (at most) | memory and processor time at rest, of each program of a node | while pods come and go |\n| --- | --: | --: | --- | --- |\n'
	for cni in "${cnis[@]}"; do
		printf '| `%s` | %s | %s | %s | %s |\n' "$cni" "$(sed -n 's/^ *\([0-9.]* s\)  network by .*/\1/p' "$out/$cni/up")" \
			"$(sort -n "$out/$cni/ready" | awk '{ all[NR] = $1 } END { printf "%d ms (%d), %d pods", all[int((NR + 1) / 2)], all[NR], NR }')" \
			"$(paste -sd';' "$out/$cni/agents" | sed 's/;/; /g')" "$(paste -sd';' "$out/$cni/churn" | sed 's/;/; /g')"
	done
	printf '\n### What ten policies cost\n\n| CNI | a round trip without | with ten | a connection without | with ten |\n| --- | --: | --: | --: | --: |\n'
	for cni in "${cnis[@]}"; do
		jq -r --arg cni "$cni" "$delta"'
			[.effects[] | select(.headline and .factor == "policy" and .network == "pod")] | INDEX(.workload) |
			"| `\($cni)` | " + ([."tcp-rr", ."tcp-crr" | if . == null then "-", "-" else "\(.from_value / 100 | round / 10) µs", "\(delta), \(.verdict)" end] | join(" | ")) + " |"
		' "$out/$cni/policed/result.json"
	done
	printf '\n### Policies, p50 [95%% interval] (at most)\n\n| CNI | refused after a policy was made | passing after it was deleted | passing after a fresh pod began that it lets in |\n| --- | --: | --: | --: |\n'
	for cni in "${cnis[@]}"; do
		jq -r --arg cni "$cni" 'def ms: . / 1e5 | round / 10;
			(INDEX(.latencies[]; .change)) as $l |
			"| `\($cni)` | " + ([$l.refused, $l.passing, $l.admitted] | map(if . == null then "-" else "\(.p50_ns | ms) ms\(if .low_ns then " [\(.low_ns | ms), \(.high_ns | ms)]" else "" end) (\(.max_ns | ms))" end) | join(" | ")) + " |"' "$out/$cni/policies.json"
	done
}

# rows writes all deltas as rows for a spreadsheet, times in nanoseconds and rates in bit/s or requests/s.
rows() {
	local cni
	echo cni,workload,placement,network,unit,host,value,ratio,ratio_low,ratio_high,builds,verdict
	for cni in "${cnis[@]}"; do
		jq -r --arg cni "$cni" '.deltas[] | select(.headline) | [$cni, .workload, .placement, .network, .unit, (.baseline_value, .value | round), (.ratio, .ratio_low, .ratio_high | . * 10000 | round / 10000), .blocks, .verdict] | @csv' "$out/$cni/run/result.json"
	done
}

for cni in "${cnis[@]}"; do measure "$cni"; done
rows >"$out/cnis.csv"
tables
