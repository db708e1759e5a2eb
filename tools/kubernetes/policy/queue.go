package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	nfqueue "github.com/florianl/go-nfqueue/v2"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/kube-network-policies/pkg/network"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

const (
	queueNumber = 100
	// headers is how much of a packet is looked at.
	headers = 128
	// waiting is how many packets may wait for a verdict, and room the bytes for them on their way here: on a busy machine this program
	// may be kept from judging for seconds, and what finds no room passes.
	waiting = 8192
	room    = 16 << 20
)

// listen has the engine judge the packets of the queue.
func listen(ctx context.Context, engine *networkpolicy.PolicyEngine) (*nfqueue.Nfqueue, error) {
	q, err := nfqueue.Open(&nfqueue.Config{
		NfQueue: queueNumber, MaxPacketLen: headers, MaxQueueLen: waiting, Copymode: nfqueue.NfQnlCopyPacket,
		// Packets that the card will segment are judged whole; if the queue has no reader, they pass.
		Flags: nfqueue.NfQaCfgFlagGSO | nfqueue.NfQaCfgFlagFailOpen,
	})
	if err != nil {
		return nil, fmt.Errorf("open queue %d of netfilter: %w", queueNumber, err)
	}
	if err := q.Con.SetReadBuffer(room); err != nil {
		return nil, errors.Join(fmt.Errorf("have room for %d packets: %w", waiting, err), q.Close())
	}
	judge := func(a nfqueue.Attribute) int {
		verdict := nfqueue.NfAccept
		if packet, err := network.ParsePacket(*a.Payload); err == nil {
			if passes, err := engine.EvaluatePacket(ctx, &packet); err == nil && !passes {
				verdict = nfqueue.NfDrop
			}
		}
		if err := q.SetVerdict(*a.PacketID, verdict); err != nil {
			fmt.Fprintf(os.Stderr, "policy: give a verdict: %v\n", err)
		}
		return 0
	}
	failed := func(err error) int {
		// A packet whose pod has gone meanwhile takes no verdict.
		if t := net.Error(nil); !errors.Is(err, unix.ENOENT) && (!errors.As(err, &t) || !t.Timeout()) {
			fmt.Fprintf(os.Stderr, "policy: read the queue: %v\n", err)
		}
		return 0
	}
	if err := q.RegisterWithErrorFunc(ctx, judge, failed); err != nil {
		return nil, errors.Join(fmt.Errorf("read queue %d of netfilter: %w", queueNumber, err), q.Close())
	}
	return q, nil
}
