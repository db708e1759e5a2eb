// Command policy enforces NetworkPolicy objects on a node: the engine of kube-network-policies decides, and what is decided about
// are the first packets of connections from and to the pods that policies select. Upstream leads them to its queue by a statement of
// nftables that not every kernel has; here iptables and a set of addresses do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-network-policies/pkg/api"
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
