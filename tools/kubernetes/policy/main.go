// Command policy enforces NetworkPolicy objects on a node: the engine of kube-network-policies decides, and what is decided about
// are the first packets of connections from and to the pods that policies select. Upstream leads them to its queue by a statement of
// nftables that not every kernel has; here iptables and a set of addresses do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	nfqueue "github.com/florianl/go-nfqueue/v2"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/api"
	"sigs.k8s.io/kube-network-policies/pkg/network"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
	"sigs.k8s.io/kube-network-policies/pkg/podinfo"
	"sigs.k8s.io/kube-network-policies/pkg/runner"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` by which the API server is reached")
	node := flag.String("hostname-override", "", "`name` of the node whose pods are guarded")
	health := flag.String("health", "127.0.0.1:10258", "`address` where /healthz answers once policies are in effect")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node, *health); err != nil {
		fmt.Fprintf(os.Stderr, "policy: %v\n", err)
		os.Exit(1)
	}
}

// run guards the node's pods until ctx ends, and leaves no rule behind.
func run(ctx context.Context, kubeconfig, node, health string) error {
	engine, err := newEngine(ctx, kubeconfig, node)
	if err != nil {
		return err
	}
	q, err := listen(ctx, engine)
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	g := &guard{}
	if err := g.begin(); err != nil {
		return errors.Join(err, g.end())
	}
	if err := g.sync(ctx, engine); err != nil {
		return errors.Join(err, g.end())
	}
	// As upstream: changes that come at once are one, and what failed is tried again.
	r := runner.NewBoundedFrequencyRunner("policy", func() error {
		err := g.sync(ctx, engine)
		if err != nil {
			fmt.Fprintf(os.Stderr, "policy: %v\n", err)
		}
		return err
	}, time.Second, time.Second, time.Hour)
	engine.SetDataplaneSyncCallbacks(r.Run)
	r.Run() // what changed since the first time
	go answer(health)
	r.Loop(ctx.Done())
	return g.end()
}

// newEngine is what decides, once it knows all pods and policies.
func newEngine(ctx context.Context, kubeconfig, node string) (*networkpolicy.PolicyEngine, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	pods, namespaces := factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	byAddress, err := podinfo.NewInformerResolver(pods.Informer())
	if err != nil {
		return nil, err
	}
	standard := networkpolicy.NewStandardNetworkPolicy(node, namespaces, pods, factory.Networking().V1().NetworkPolicies())
	known := podinfo.NewInformerProvider(pods, namespaces, nil, []podinfo.IPResolver{byAddress})
	factory.Start(ctx.Done())
	for kind, done := range factory.WaitForCacheSync(ctx.Done()) {
		if !done {
			return nil, fmt.Errorf("learn all %s from the API server: %w", kind, ctx.Err())
		}
	}
	return networkpolicy.NewPolicyEngine(known, []api.PolicyEvaluator{standard}), nil
}

// answer serves requests that ask whether policies are in effect.
func answer(address string) {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	s := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Second}
	fmt.Fprintf(os.Stderr, "policy: %v\n", s.ListenAndServe())
}

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
