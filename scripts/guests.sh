#!/usr/bin/env bash
# guests.sh [basic|boots|inside] runs the tests that boot guests (boots: those with InGuest in their names; basic: only those that also begin
# with TestBasic), then, in guests, those of what this machine's kernel may lack (inside): each network that needs another kernel, the
# conditions of links, encryption, and cards with virtual functions. A guest is slow, and so what any kernel can do is not repeated there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
# boots PATTERN runs the tests that boot guests, one package after another.
boots() {
	local packages
	mapfile -t packages < <(grep -rlE --include='*_test.go' "func $1" . | sed 's|/[^/]*$||' | sort -u)
	NETDELTA_GUESTS=yes scripts/summary.sh guest-boots \
		go test -json -vet=off -count=1 -ldflags=-w -timeout 40m -p 1 -run "^$1" "${packages[@]}" || failed=1
}
case ${1:-boots} in
basic) boots 'TestBasic.*InGuest' ;;
boots) scripts/arm64.sh && boots 'Test.*InGuest' || failed=1 ;;
esac
if [[ ${1:-inside} != inside ]]; then exit $failed; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -o "$work/netdelta" ./cmd/netdelta
export NETDELTA=$work/netdelta

# suite NAME PATTERN PACKAGE... runs tests of packages in a guest.
suite() {
	local began=$SECONDS
	printf '\n--- in a guest: %s\n' "$1"
	scripts/summary.sh "guest-${1// /-}" scripts/guest.sh --events "${@:3}" -run "$2" || failed=1
	printf -- '--- %s: %d s\n' "$1" $((SECONDS - began))
}

suite networks '^TestNetworks$/^(ipip|gre|geneve|netkit|ovs|wireguard|ipsec|ipvlan-l2|ipvlan-l3)$' ./testbed/lab
# One after another: the pods of an emulated machine wait for one another for as long as they may.
suite conditions OnEachKernel ./testbed/lab -test.parallel=1
NETDELTA_GUEST="--cards 2 --memory 2GiB" suite cards '^TestNetworks$/^sriov$' ./testbed/lab
exit $failed
