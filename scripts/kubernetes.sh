#!/usr/bin/env bash
# kubernetes.sh [--quick] [SET...] prints the folders of sets of programs, a line each, and builds a set first when it is not there yet,
# once on a machine:
#
#   kubernetes  a cluster, pinned in tools/kubernetes: some ten minutes of processor time (the default)
#   calico      the CNI Calico, pinned in tools/cni/calico: some four minutes
#   cilium      the CNI Cilium, pinned in tools/cni/cilium: some twelve minutes
#
# With --quick the CNIs are built sooner, for tests, which do not measure the processor time of their agents.
#
# A folder's name is a hash of everything that decides what its programs are, so that a change of a pin builds its set anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
home=${XDG_CACHE_HOME:-${HOME:?HOME or XDG_CACHE_HOME must say where to keep the programs}/.cache}/netdelta

# build MODULE FLAGS PACKAGE... builds programs of a module below tools/kubernetes, which agree on versions so that they share what is
# compiled. With -trimpath they would not: it takes the version that is asked for into account, and not only the one that is used.
# What debuggers need, which programs here go without, takes a tenth of the compiler's time, and collecting its garbage less often saves a
# sixth. Inlining calls takes three tenths: only Go's own packages and what studies measure are compiled with it.
build() {
	local packages module=$1 flags=$2 inlined=(std netdelta/... sigs.k8s.io/kube-network-policies/...) compiler=(-gcflags=all='-dwarf=false -l')
	shift 2
	if [[ $pins == tools/cni/* && -z $quick ]]; then inlined=(all); fi
	for packages in "${inlined[@]}"; do compiler+=("-gcflags=$packages=-dwarf=false"); done
	CGO_ENABLED=0 GOGC=400 nice -n 10 go build -C "$pins/$module" -trimpath=false -buildvcs=false "${compiler[@]}" \
		-ldflags="-s -w $flags" -o "$fresh/" "$@" >&2
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

# build_flanneld builds flannel's daemon without two backends by which no cluster here is joined: udp is written in C, with which all
# that it shares with Kubernetes would be compiled once more, and that of a cloud takes as long to compile as all else of flannel. It does
# without an option of its log, too, that is newer than Kubernetes' own.
build_flanneld() {
	local source copy=$fresh/.flannel module=github.com/flannel-io/flannel
	go mod download -C "$pins/flannel" $module >&2 # on a fresh machine it stands nowhere yet
	source=$(go list -C "$pins/flannel" -m -f '{{.Dir}}' $module)
	mkdir "$copy"
	cp -r --no-preserve=mode "$source" "$copy/source"
	rm -r "$copy/source/pkg/backend/"{udp,tencentvpc}
	sed -i -e '/pkg\/backend\/\(udp\|tencentvpc\)"/d' -e '/Set("legacy_stderr_threshold_behavior"/,/^\t}/d' "$copy/source/main.go"
	cp "$pins/flannel/go.mod" "$pins/flannel/go.sum" "$copy/"
	go mod edit -replace "$module=$copy/source" "$copy/go.mod"
	build flannel '' -modfile="$copy/go.mod" $module
	mv "$fresh/flannel" "$fresh/flanneld"
	rm -r "$copy"
}

# build_kubernetes builds what takes longest first, and all that can be built at once in one go, so that no processor waits.
build_kubernetes() {
	local kubernetes=k8s.io/kubernetes/cmd
	build . "$(stamp)" $kubernetes/kube-{apiserver,controller-manager,scheduler,proxy} $kubernetes/kube{let,ctl}
	build . '' go.etcd.io/etcd/server/v3
	mv "$fresh/server" "$fresh/etcd"
	build_flanneld
	build dns '' .
	mv "$fresh/dns" "$fresh/coredns"
	build policy '' .
	mv "$fresh/policy" "$fresh/kube-network-policies"
	build cni '' github.com/containernetworking/plugins/plugins/meta/flannel
	build multus '' gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus
	build . '' ./devices
}

# build_calico builds Calico's programs, beside its kinds of objects and the templates of what its routers are told by BGP.
build_calico() {
	local module=github.com/projectcalico/calico version=v3.28.5 # which its module's version does not tell
	build . "-X main.VERSION=$version -X $module/node/buildinfo.GitVersion=$version" $module/node/cmd/calico-node $module/cni-plugin/cmd/calico
	cp --no-preserve=mode "$(go list -C "$pins" -m -f '{{.Dir}}' $module)/manifests/crds.yaml" "$fresh/"
	cp -r --no-preserve=mode "$(go list -C "$pins" -m -f '{{.Dir}}' $module)/confd/etc/calico/confd" "$fresh/confd"
	# For the distribution's BIRD: without IPv6, without an option for tunnels that Calico's own has, and with signals of its own.
	rm "$fresh/confd/conf.d/bird6"*
	sed -i '/^    krt_tunnel = /d' "$fresh/confd/templates/bird_ipam.cfg.template"
	sed -i 's|sv hup bird|kill -HUP $(cat /run/bird.pid)|' "$fresh/confd/conf.d/"*
}

# build_cilium builds Cilium's programs, beside the sources that its agent compiles for each device.
build_cilium() {
	local module=github.com/cilium/cilium version
	version=$(go list -C "$pins" -m -f '{{.Version}}' $module)
	# Its version is read as three words: the number, the commit and its date, which a module does not have.
	build . "-X '$module/pkg/version.ciliumVersion=${version#v} $version -'" -tags=osusergo,ipam_provider_operator \
		$module/{daemon,operator,cilium-dbg,plugins/cilium-cni}
	mv "$fresh/daemon" "$fresh/cilium-agent"
	mv "$fresh/operator" "$fresh/cilium-operator"
	cp -r --no-preserve=mode "$(go list -C "$pins" -m -f '{{.Dir}}' $module)/bpf" "$fresh/bpf"
}

# programs SET prints the folder of a set, and builds it first when it is not there yet.
programs() {
	local key folder began pins recipe # another recipe's number builds all programs of a set anew
	case $1 in
	kubernetes) pins=tools/kubernetes recipe=5 ;;
	calico) pins=tools/cni/calico recipe=4$quick ;;
	cilium) pins=tools/cni/cilium recipe=3$quick ;;
	*)
		echo "kubernetes.sh: unknown set $1: it is one of kubernetes, calico, cilium" >&2
		return 2
		;;
	esac
	key=$(
		shopt -s nullglob # not every set has modules below its own
		{ cat "$pins"/go.{mod,sum} "$pins"/*/go.{mod,sum} "$pins"/*/*.go; echo "$recipe"; go env GOVERSION GOOS GOARCH; } | sha256sum | cut -c1-16
	)
	folder=$home/$1/$key
	if [[ ! -d $folder ]]; then
		mkdir -p "$home/$1"
		# Two runs at once: the second waits for the first and finds its work.
		exec 9>"$home/$1/.lock"
		flock 9
		if [[ ! -d $folder ]]; then
			fresh=$(mktemp -d "$home/$1/.fresh.XXXXXX")
			trap 'rm -rf "$fresh"' EXIT
			echo "building $1 into $folder (once on a machine)" >&2
			began=$SECONDS
			"build_$1"
			chmod 755 "$fresh"
			mv -T "$fresh" "$folder"
			trap - EXIT
			echo "built $1 in $((SECONDS - began)) s" >&2
		fi
		exec 9>&-
	fi
	echo "$folder"
}

quick=
if [[ ${1:-} == --quick ]]; then quick=$1 && shift; fi
for set in "${@:-kubernetes}"; do programs "$set"; done
