package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"netdelta/network"
)

// Joining are the programs that join sockets of the processes in a control group.
type Joining struct {
	tables   *loader
	programs Attached
}

// JoinSockets attaches the programs to a control group of version 2, by its folder. Its error is an *testbed.UnsupportedError where
// this can't be had.
func JoinSockets(op network.JoinSockets, group string) (*Joining, error) {
	l := load(loadSockets, nil, nil)
	for _, p := range op.Pods {
		l.put(socketsMapNodes, p.Address, socketsAddress{Word: words(p.Address)}, uint32(p.Node))
	}
	j := &Joining{tables: l}
	if l.err == nil {
		l.err = j.attach(group)
	}
	_, err := l.done()
	return j, err
}

func (j *Joining) attach(group string) error {
	sockets := link.RawAttachProgramOptions{
		Target: j.tables.maps[socketsMapSockets].FD(), Program: j.tables.programs[socketsProgSent], Attach: ebpf.AttachSkMsgVerdict,
	}
	if err := link.RawAttachProgram(sockets); err != nil {
		return refusal("attach an eBPF program to a table of sockets", err)
	}
	l, err := link.AttachCgroup(link.CgroupOptions{
		Path: group, Attach: ebpf.AttachCGroupSockOps, Program: j.tables.programs[socketsProgEstablished],
	})
	if err != nil {
		return refusal("attach an eBPF program to a control group", err)
	}
	j.programs.hold(l)
	return nil
}

// End has no further socket joined, and those that are go over to TCP with their next message. What a socket has not read
// yet it can read still: so the tables stay until Close.
func (j *Joining) End() error {
	if err := j.tables.variables[socketsVarOver].Set(uint32(1)); err != nil {
		return fmt.Errorf("end joining sockets: %w", err)
	}
	return j.programs.Close()
}

// Close takes all away; it may be called twice. Sockets that are joined still may lose bytes: their processes have to end first.
func (j *Joining) Close() error {
	if err := j.programs.Close(); err != nil {
		return err
	}
	return j.tables.Close()
}
