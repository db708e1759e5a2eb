package network

// The needs of operations that load eBPF programs. Each is tried with the very programs that the operation loads.
const (
	NeedRedirection Need = 100 + iota
	NeedGuard
	NeedBalance
	NeedJoinedSockets
	NeedXDPRedirection
)

// ebpfRequirement puts such a need in words.
func ebpfRequirement(n Need) Requirement {
	switch n {
	case NeedRedirection:
		return Requirement{What: "eBPF redirection at devices (tcx)", Option: "CONFIG_BPF_SYSCALL, CONFIG_NET_XGRESS"}
	case NeedGuard:
		return Requirement{What: "eBPF guards at devices (tcx)", Option: "CONFIG_BPF_SYSCALL, CONFIG_NET_XGRESS"}
	case NeedBalance:
		return Requirement{What: "eBPF address translation at devices (tcx)", Option: "CONFIG_BPF_SYSCALL, CONFIG_NET_XGRESS"}
	case NeedJoinedSockets:
		return Requirement{What: "eBPF socket maps and a control group of its own", Option: "CONFIG_BPF_STREAM_PARSER, CONFIG_CGROUP_BPF"}
	case NeedXDPRedirection:
		return Requirement{What: "XDP redirection between veth links", Option: "CONFIG_BPF_SYSCALL, CONFIG_VETH"}
	}
	return Requirement{}
}

// ebpfNeedOf tells what an operation that loads programs needs.
func ebpfNeedOf(op Op) (Need, bool) {
	switch op.(type) {
	case Redirection:
		return NeedRedirection, true
	case Guard:
		return NeedGuard, true
	case Balance:
		return NeedBalance, true
	case JoinSockets:
		return NeedJoinedSockets, true
	case XDPRedirection:
		return NeedXDPRedirection, true
	}
	return 0, false
}
