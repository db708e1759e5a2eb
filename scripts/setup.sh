#!/usr/bin/env bash
# setup.sh SET installs what a set of targets needs and this machine lacks. It looks for the commands and headers themselves, so
# that it is done at once where they are, whoever put them there; only what is missing is asked of apt.
#
#   run    the program: nothing but the Go toolchain
#   test   compared tools, the daemons and clients of real workloads, the compiler of the race detector, the tools that look at a
#          namespace from outside, a browser, and what installs packages and makes the site
#   bench  the same
#   all    everything
#
# Of the daemons only the programs are wanted: no package may start a service of this machine, now or at its next boot.
set -euo pipefail

# Where packages put tools for root; an ordinary user's PATH often lacks them.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
patience=600 # seconds to wait for another program that holds apt's lock
policy=/usr/sbin/policy-rc.d
aside=$policy.before-netdelta # what was there before

fail() {
	echo "setup: $*" >&2
	exit 1
}

# needs prints the lines "PROOF PACKAGES..." of a set: a command, or a file where it has a slash, that shows the packages to be there.
needs() {
	case $1 in
	run) ;;
	test | bench | all)
		echo make make
		echo gcc gcc libc6-dev
		echo /usr/include/stdio.h libc6-dev
		echo sockperf sockperf
		echo iperf3 iperf3
		services
		kubernetes
		echo rpm rpm
		echo curl curl
		echo jq jq
		echo python3 python3 python3-venv
		echo nft nftables
		echo iptables-restore iptables
		echo ip iproute2
		echo /usr/sbin/sshd openssh-server
		echo ssh openssh-client
		echo /usr/lib/cni/bridge containernetworking-plugins
		echo chromium chromium
		echo prometheus prometheus
		echo dockerd docker.io
		echo podman podman
		echo /usr/lib/podman/netavark netavark
		# The compiler of the eBPF programs, whose output is compared with what is committed.
		echo clang-14 clang-14
		echo llvm-strip-14 llvm-14
		echo /usr/include/bpf/bpf_helpers.h libbpf-dev
		echo /usr/include/linux/bpf.h linux-libc-dev
		;;
	*) fail "unknown set $1: it is one of run, test, bench, all" ;;
	esac
}

# services are the programs of workloads with daemons: see docs/workloads.md.
services() {
	echo nginx nginx-light
	echo wrk wrk
	echo fio fio
	echo nbd-server nbd-server
	echo ceph-mon ceph-mon
	echo ceph-osd ceph-osd
	echo rbd ceph-common
	echo mariadbd mariadb-server-core
	echo mariadb mariadb-client-core
	echo /usr/lib/galera/libgalera_smm.so galera-4
	echo sysbench sysbench
	echo haproxy haproxy
}

# kubernetes are the programs that the cluster of 'make cluster-up' needs beside its own: see docs/cluster.md.
kubernetes() {
	echo containerd containerd
	echo runc runc
	echo busybox busybox-static
	echo ipset ipset
	echo bird bird
}

there() {
	if [[ $1 == */* ]]; then [[ -e $1 ]]; else command -v "$1" >/dev/null; fi
}

# as_root runs a command as root.
as_root() {
	if ((EUID == 0)); then
		"$@"
		return
	fi
	command -v sudo >/dev/null || fail "installing packages takes root: run 'make setup' as root, or install sudo"
	# Without a terminal nobody can type a password.
	if [[ -t 0 && -t 2 ]]; then sudo "$@"; else sudo -n "$@"; fi
}

# forbid_services has every package ask us before it starts a service, and answers no. allow_services takes that back, also what
# a killed setup left.
forbid_services() {
	allow_services
	trap allow_services EXIT
	if [[ -e $policy ]]; then as_root mv "$policy" "$aside"; fi
	# shellcheck disable=SC2016 # the words are written as they are
	as_root sh -c 'printf "#!/bin/sh\n# written by setup.sh of netdelta while it installs packages\nexit 101\n" >"$1" && chmod 755 "$1"' sh "$policy"
}

allow_services() {
	if grep -qs 'setup.sh of netdelta' "$policy"; then as_root rm -f "$policy"; fi
	if [[ -e $aside ]]; then as_root mv "$aside" "$policy"; fi
}

# units lists the services of this machine that its next boot would start.
units() {
	command -v systemctl >/dev/null || return 0
	{ systemctl list-unit-files --state=enabled --no-legend --no-pager 2>/dev/null || true; } | awk '{ print $1 }' | sort
}

# keep_asleep takes back that packages had services started at the next boot; BEFORE is what units said before them.
keep_asleep() {
	local new
	readarray -t new < <(comm -13 <(echo "$1") <(units))
	((${#new[@]} == 0)) || as_root systemctl -q disable "${new[@]}"
}

# apt runs apt-get as root, and waits while another program holds a lock.
apt() {
	local log began=$SECONDS
	log=$(mktemp)
	# shellcheck disable=SC2064 # the name is known now
	trap "rm -f '$log'" RETURN
	while true; do
		if as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=$patience -o Acquire::Retries=3 "$@" \
			>"$log" 2>&1; then
			return
		fi
		# DPkg::Lock::Timeout does not cover the lock of the package lists.
		if ! grep -q 'Could not get lock\|Unable to lock\|Unable to acquire' "$log" || ((SECONDS - began >= patience)); then
			cat "$log" >&2
			return 1
		fi
		sleep 2
	done
}

main() {
	(($# == 1)) || fail "usage: setup.sh run|test|bench|all"
	local list proof packages missing=() absent=()
	list=$(needs "$1")
	command -v go >/dev/null || fail "the Go toolchain is missing: install it from https://go.dev/dl and put it on PATH"
	while read -r proof packages; do
		[[ -n $proof ]] || continue
		there "$proof" && continue
		absent+=("$proof")
		read -ra packages <<<"$packages"
		missing+=("${packages[@]}")
	done <<<"$list"
	if ((${#missing[@]} == 0)); then
		echo "setup: nothing to do"
		return
	fi
	command -v apt-get >/dev/null ||
		fail "${absent[*]} missing and this machine has no apt-get: install them with its own package manager"
	readarray -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
	echo "setup: installing ${missing[*]}"
	apt update || fail "apt-get update failed (see above)"
	local enabled
	enabled=$(units)
	forbid_services
	apt install -y --no-install-recommends "${missing[@]}" || fail "apt-get could not install ${missing[*]} (see above)"
	keep_asleep "$enabled"
	allow_services
	for proof in "${absent[@]}"; do
		there "$proof" || fail "$proof is still missing after its packages were installed"
	done
	echo "setup: done"
}

main "$@"
