package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"netdelta/network"
)

// Joining are the programs that join sockets of the processes in a control group.
type Joining struct {
	programs, tables Attached
	over             *ebpf.Variable
}

// JoinSockets attaches the programs to a control group of version 2, by its folder. Its error is an *testbed.UnsupportedError where
// this can't be had.
func JoinSockets(op network.JoinSockets, group string) (j *Joining, err error) {
	j = &Joining{}
	defer j.programs.closeAfter(&err)
	defer j.tables.closeAfter(&err)
	spec, err := loadSockets()
	if err != nil {
		return nil, err
	}
	c, err := j.tables.collected(spec)
	if err != nil {
		return nil, err
	}
	j.over = c.Variables[socketsVarOver]
	for _, p := range op.Pods {
		if err := c.Maps[socketsMapNodes].Put(socketsAddress{Word: words(p.Address)}, uint32(p.Node)); err != nil {
			return nil, fmt.Errorf("enter %s: %w", p.Address, err)
		}
	}
	sockets := link.RawAttachProgramOptions{
		Target: c.Maps[socketsMapSockets].FD(), Program: c.Programs[socketsProgSent], Attach: ebpf.AttachSkMsgVerdict,
	}
	if err := link.RawAttachProgram(sockets); err != nil {
		return nil, refusal("attach an eBPF program to a table of sockets", err)
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: group, Attach: ebpf.AttachCGroupSockOps, Program: c.Programs[socketsProgEstablished]})
	if err != nil {
		return nil, refusal("attach an eBPF program to a control group", err)
	}
	j.programs.hold(l)
	return j, nil
}

// End has no further socket joined, and those that are go over to TCP with their next message. What a socket has not read
// yet it can read still: so the tables stay until Close.
func (j *Joining) End() error {
	if err := j.over.Set(uint32(1)); err != nil {
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
