#!/usr/bin/env bash
# kubernetes.sh prints the folder of the programs of a Kubernetes cluster pinned in tools/kubernetes, and builds them first when
# they are not there yet: some twenty minutes of processor time, once on a machine.
#
# kubernetes.sh test brings a cluster up unless one is up, runs the tests that need one, and ends the cluster if it began it.
#
# The folder's name is a hash of everything that decides what the programs are, so that a change of a pin builds anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pins=tools/kubernetes
recipe=1 # another number here builds all programs anew
home=${XDG_CACHE_HOME:-${HOME:?HOME or XDG_CACHE_HOME must say where to keep the programs}/.cache}/netdelta

# build NAME MODULE PACKAGE CGO [LINKER FLAGS] builds one program of a module below tools/kubernetes.
build() {
	local tags=
	(($4 == 0)) || tags=netgo,osusergo # libraries that a static program can't have
	CGO_ENABLED=$4 nice -n 10 go build -C "$pins/$2" -tags "$tags" -trimpath -buildvcs=false -ldflags="-s -w ${5:-}" -o "$fresh/$1" "$3" >&2
}

# stamp are the linker flags that give Kubernetes its version: a build from modules does not know it.
stamp() {
	local version major minor at
	version=$(go list -C "$pins" -m -f '{{.Version}}' k8s.io/kubernetes)
	IFS=. read -r major minor _ <<<"${version#v}"
	for at in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		printf -- '-X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s ' "$at" "$version" "$at" "$major" "$at" "$minor"
	done
}

build_all() {
	local name flags
	flags=$(stamp)
	build etcd . go.etcd.io/etcd/server/v3 0
	for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
		build $name . k8s.io/kubernetes/cmd/$name 0 "$flags"
	done
	# One of flanneld's backends is written in C.
	build flanneld flannel github.com/flannel-io/flannel 1 '-extldflags=-static'
	build coredns dns . 0
	build kube-network-policies policy . 0
	build flannel cni github.com/containernetworking/plugins/plugins/meta/flannel 0
	build multus multus gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus 0
	build devices . ./devices 0
}

programs() {
	local key folder began
	key=$({ cat "$pins"/go.{mod,sum} "$pins"/*/go.{mod,sum} "$pins"/*/*.go; echo "$recipe"; go env GOVERSION GOOS GOARCH; } | sha256sum | cut -c1-16)
	folder=$home/kubernetes/$key
	if [[ ! -d $folder ]]; then
		mkdir -p "$home/kubernetes"
		# Two runs at once: the second waits for the first and finds its work.
		exec 9>"$home/kubernetes/.lock"
		flock 9
		if [[ ! -d $folder ]]; then
			fresh=$(mktemp -d "$home/kubernetes/.fresh.XXXXXX")
			trap 'rm -rf "$fresh"' EXIT
			echo "building Kubernetes into $folder (once; some twenty minutes of processor time)" >&2
			began=$SECONDS
			build_all
			chmod 755 "$fresh"
			mv -T "$fresh" "$folder"
			trap - EXIT
			echo "built Kubernetes in $((SECONDS - began)) s" >&2
		fi
		exec 9>&-
	fi
	echo "$folder"
}

# again runs tests by themselves that standard input names: a package and a pattern on each line.
again() {
	local package pattern status=0
	while read -r package pattern; do
		go test -json -count=1 -timeout 40m -run "$pattern" "$package" </dev/null || status=$?
	done
	return "$status"
}

# tests runs the tests that need a cluster: those with OnCluster in their names, in the packages that have such.
tests() {
	local work cluster packages began=$SECONDS status=0 mine=no
	NETDELTA_KUBERNETES=$(programs)
	export NETDELTA_KUBERNETES
	printf -- '--- programs of the cluster: %d s\n' $((SECONDS - began))
	work=$(mktemp -d)
	cluster=$work/cluster
	# shellcheck disable=SC2064 # the name is known now
	trap "rm -rf '$work'" EXIT
	go build -o "$work/" ./scripts/cluster ./scripts/testreport
	if ! "$cluster" status >/dev/null 2>&1; then
		mine=yes
		# shellcheck disable=SC2064 # the names are known now
		trap "'$cluster' down; rm -rf '$work'" EXIT
	fi
	began=$SECONDS
	NETDELTA_KUBECONFIG=$("$cluster" up --ipv6)
	export NETDELTA_KUBECONFIG
	printf -- '--- cluster up: %d s\n' $((SECONDS - began))
	began=$SECONDS
	"$cluster" programs # that workloads with daemons find in their pods
	printf -- '--- image of programs: %d s\n' $((SECONDS - began))
	readarray -t packages < <(grep -rl --include='*_test.go' 'func Test[A-Za-z0-9_]*OnCluster' . | xargs -n 1 dirname | sort -u)
	began=$SECONDS
	# The tests are sent to pods, which have no libraries.
	export CGO_ENABLED=0
	touch "$work/again"
	go test -json -count=1 -p 1 -timeout 40m -run OnCluster "${packages[@]}" |
		"$work/testreport" -again "$work/again" ${NETDELTA_SKIPS:+-skips "$NETDELTA_SKIPS/test-kubernetes"} || status=$?
	# As in test.sh: what fails beside other work and passes by itself is unsteady; what fails twice has failed.
	if ((status != 0)) && [[ -s $work/again ]]; then
		printf '\nOnce more, by themselves:\n'
		cat "$work/again"
		status=0
		again <"$work/again" | "$work/testreport" || status=$?
		((status != 0)) || printf '\nUnsteady: these failed beside the others and passed by themselves.\n'
	fi
	printf -- '--- tests: %d s\n' $((SECONDS - began))
	if [[ $mine == yes ]]; then
		began=$SECONDS
		"$cluster" down
		printf -- '--- cluster down: %d s\n' $((SECONDS - began))
	fi
	return "$status"
}

case ${1:-} in
"") programs ;;
test) tests ;;
*) echo "usage: kubernetes.sh [test]" >&2 && exit 2 ;;
esac
