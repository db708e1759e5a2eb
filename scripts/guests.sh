#!/usr/bin/env bash
# guests.sh runs, in guests, what this machine's kernel may lack: each network that needs a kernel of its own, the conditions of
# links, encryption, and cards with virtual functions. A guest is slow, and so what any kernel can do is not repeated there. A
# test that fails gets a second try by itself; what fails twice has failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -o "$work/netdelta" ./cmd/netdelta
export NETDELTA=$work/netdelta
failed=0

# failing makes of the log of a run the pattern that finds the tests that failed in it, by their first two names if it is one
# test, nothing where none did.
failing() {
	local tops
	tops=$(sed -n 's/^--- FAIL: \([A-Za-z0-9_]*\).*/\1/p' "$1" | sort -u | paste -sd '|')
	[[ -n $tops ]] || return 0
	if [[ $tops == *"|"* ]]; then
		echo "^($tops)\$"
		return
	fi
	local subs
	subs=$(sed -n "s/^    --- FAIL: $tops\/\([^ /]*\).*/\1/p" "$1" | sort -u | paste -sd '|')
	echo "^$tops\$${subs:+/^($subs)\$}"
}

# suite NAME PATTERN PACKAGE... runs tests of packages.
suite() {
	local name=$1 pattern=$2 began=$SECONDS again
	shift 2
	printf '\n--- in a guest: %s\n' "$name"
	if ! scripts/guest.sh "$@" -run "$pattern" 2>&1 | tee "$work/log"; then
		again=$(failing "$work/log")
		if [[ -z $again ]]; then
			failed=1
		else
			printf '\nOnce more, by themselves: %s\n' "$again"
			if scripts/guest.sh "$@" -run "$again"; then
				echo "Unsteady: they failed beside the others and passed by themselves."
			else
				failed=1
			fi
		fi
	fi
	printf -- '--- %s: %d s\n' "$name" $((SECONDS - began))
}

suite "networks that need a kernel of their own" \
	'^TestNetworks$/^(ipip|gre|geneve|netkit|ovs|wireguard|ipsec|ipvlan-l2|ipvlan-l3)$' ./testbed/lab
suite "links, bonds, encryption, services" \
	'^(TestBondHashes|TestBondModes|TestLACPDoesNotConverge|TestDelay|TestLoss|TestDelayAndRate|TestEncryptionIsPossible|TestNothingIsReadable)$' ./testbed/lab
NETDELTA_GUEST="--cards 2 --memory 2GiB" suite "cards with virtual functions" '^TestNetworks$/^sriov$' ./testbed/lab
exit $failed
