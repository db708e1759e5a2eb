// Package kube measures a Kubernetes cluster: a testbed whose nodes are nodes of the cluster that a kubeconfig names, and whose pods
// the cluster schedules. Nothing but the measured traffic crosses the pod network: agents are spoken to through the API server's
// exec streams, and no port is opened for them.
package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"netdelta/internal/gather"
	"netdelta/internal/machine"
	"netdelta/internal/suggest"
	"netdelta/testbed"
	"netdelta/testbed/kube/client"
	"netdelta/testbed/kube/inside"
)

// QoS is the class of service that pods ask for.
type QoS string

// The classes of service.
const (
	// Burstable pods ask for little and may use what is free: the zero value means this.
	Burstable QoS = "burstable"
	// Guaranteed pods have processors and memory of their own, as much as Options.CPU and Options.Memory say.
	Guaranteed QoS = "guaranteed"
	// BestEffort pods ask for nothing.
	BestEffort QoS = "best-effort"
)

// Options are how the pods of a run are made.
type Options struct {
	// Run is what the objects are labelled with; "" draws one.
	Run RunID
	// Image is one that holds netdelta at /netdelta. Without it BaseImage is any image that the nodes can run and that has a
	// shell, cat and chmod: the program is streamed into its pods.
	Image, BaseImage string
	// Binary is the program that is streamed; "" is machine.SentProgram.
	Binary string
	// PullPolicy is when nodes pull the image; "" is IfNotPresent.
	PullPolicy corev1.PullPolicy
	// QoS is the class of service of all pods.
	QoS QoS
	// CPU and Memory are what a guaranteed pod gets, as Kubernetes writes quantities ("2", "500m", "256Mi"); Memory is the limit of
	// others, too, where it is given.
	CPU, Memory string
	// Nodes are the names of those that pods are put on, in this order; Zones are the zones of which one node each is taken. Without
	// either, any nodes that take pods are.
	Nodes, Zones []string
	// PodSpec is what the cluster may ask of pods.
	PodSpec
	// Ports is how many ports the servers of a pod can listen on; 0 is 40.
	Ports int
	// NodeAgent allows a pod in the namespace of each node, which looks at the devices there.
	NodeAgent bool
	// Within is how long a pod may take to start; 0 is two minutes.
	Within time.Duration
	// Waiting is told what is waited for, and for how long at most, once that takes long; it may be nil.
	Waiting func(line string)
	// Log is told what takes time; it may be nil.
	Log func(format string, args ...any)
}

const (
	defaultPorts  = 40
	mostPorts     = 1000
	defaultWithin = 2 * time.Minute
	// What a pod asks for unless it is told otherwise: enough that a quota which wants requests takes it.
	defaultCPU           = "500m"
	defaultMemory        = "256Mi"
	requestedCPU         = "10m"
	requestedMemory      = "32Mi"
	programInImage       = "/netdelta"
	folderOfStreamed     = "/opt/netdelta"
	programStreamed      = folderOfStreamed + "/netdelta"
	folderOfHomes        = "/run/netdelta"
	containerName        = "netdelta"
	unprivileged         = int64(65532)
	terminationGrace     = int64(1)
	firstPort            = 20000
	firstHostPort        = 21000
	lastHostPort         = 29999
	annotationPorts      = "netdelta.dev/ports"
	annotationNetworks   = "k8s.v1.cni.cncf.io/networks"
	annotationStatus     = "k8s.v1.cni.cncf.io/network-status"
	annotationOfResource = "k8s.v1.cni.cncf.io/resourceName"
)

// Check says what is wrong with the options.
func (o Options) Check() error {
	_, err := o.complete()
	return err
}

// complete checks the options and fills in what is not given.
func (o Options) complete() (Options, error) {
	o.Run = cmp.Or(o.Run, NewRunID())
	if _, err := ParseRunID(string(o.Run)); err != nil {
		return o, err
	}
	if o.Image != "" && o.BaseImage != "" {
		return o, errors.New("an image and a base image: give one of --image and --base-image")
	}
	if o.Image == "" && o.BaseImage == "" {
		return o, errors.New("no image for the pods: give --image REF (netdelta image --push makes one), or --base-image REF, any image with a shell, into which netdelta is streamed")
	}
	o.QoS = cmp.Or(o.QoS, Burstable)
	if err := errors.Join(o.checkAmounts(), o.check()); err != nil {
		return o, err
	}
	o.Ports = cmp.Or(o.Ports, defaultPorts)
	if o.Ports < 1 || o.Ports > mostPorts {
		return o, fmt.Errorf("%d ports for each pod: need 1 to %d", o.Ports, mostPorts)
	}
	o.Within = cmp.Or(o.Within, defaultWithin)
	o.PullPolicy = cmp.Or(o.PullPolicy, corev1.PullIfNotPresent)
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Binary == "" {
		var err error
		if o.Binary, err = machine.SentProgram(); err != nil {
			return o, err
		}
	}
	if o.BaseImage != "" {
		return o, machine.CheckStatic(o.Binary)
	}
	return o, nil
}

// checkAmounts checks what pods ask for.
func (o Options) checkAmounts() error {
	if known := []string{string(Burstable), string(Guaranteed), string(BestEffort)}; !slices.Contains(known, string(o.QoS)) {
		return fmt.Errorf("class of service %q: need %s, %s or %s%s", o.QoS, Burstable, Guaranteed, BestEffort, meant(string(o.QoS), known))
	}
	for _, q := range []struct{ what, text string }{{"processors", o.CPU}, {"memory", o.Memory}} {
		if q.text == "" {
			continue
		}
		if amount, err := resource.ParseQuantity(q.text); err != nil || amount.Sign() <= 0 {
			return fmt.Errorf("%s of pods %q: need an amount as Kubernetes writes it: 2, 500m, 256Mi", q.what, q.text)
		}
	}
	return nil
}

// meant is the ending of an error about a word that may be a slip.
func meant(word string, known []string) string {
	if near, is := suggest.Nearest(word, known); is {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// others names what there is in place of a name that there is not.
func others[T any](name string, all []T, nameOf func(T) string) string {
	names := gather.Each(all, nameOf)
	slices.Sort(names)
	return meant(name, names) + "; there are: " + strings.Join(names, ", ")
}

// Config says which cluster is spoken to, and with which credentials.
type Config struct {
	// Kubeconfig is the path of a file; "" is what kubectl would read: KUBECONFIG, or .kube/config in the home folder. Inside a
	// pod, where there is neither, the pod's own account is used.
	Kubeconfig string
	// Context is one of the kubeconfig's; "" is its current one.
	Context string
	// Namespace is where pods are made; "" is the context's.
	Namespace string
}

// Cluster is a cluster that can be spoken to. It holds no connection that would have to be closed.
type Cluster struct {
	// API speaks to the API server, by the types of its objects.
	API *client.API
	// REST is how it is reached: for exec streams, and for objects of other types.
	REST *rest.Config
	// Name is the name of the context, or "in-cluster".
	Name string
	// Namespace is where pods are made.
	Namespace string
}

// ErrNoCluster is matched by the error of Connect where no kubeconfig names a cluster.
var ErrNoCluster = errors.New("no cluster")

// Limits of requests to the API server. A build makes tens of pods at once, and then asks little.
const (
	requestsPerSecond = 100
	requestsAtOnce    = 200
)

// Connect reads the kubeconfig. It does not ask the API server anything. The error matches ErrNoCluster where there is no
// kubeconfig, or none with a cluster in it.
func Connect(c Config) (*Cluster, error) {
	files := newKubeconfig(c.Kubeconfig, c.Context)
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context}
	overrides.Context.Namespace = c.Namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(files, overrides)

	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: no kubeconfig names one: looked at %s; give --kubeconfig or set KUBECONFIG", ErrNoCluster, strings.Join(files.GetLoadingPrecedence(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	// The library would print warnings of the API server to standard error, as they are: Pod Security of level "warn" for each pod.
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	files.secure(config)
	err = wrapPlugin(config)
	var web *http.Client
	if err == nil {
		web, err = rest.HTTPClientFor(config)
	}
	var api *client.API
	if err == nil {
		web.Transport = abandoning{web.Transport}
		api, err = client.New(config, web)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare to speak to the cluster at %s: %w", config.Host, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the namespace of the kubeconfig's context: %w", err)
	}
	name := c.Context
	if raw, err := loader.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	name = cmp.Or(name, inCluster)
	return &Cluster{API: api, REST: config, Name: name, Namespace: namespace}, nil
}

// inCluster is the name of the cluster whose pod netdelta runs in.
const inCluster = "in-cluster"

// InKubeconfig says whether Name is a context of a kubeconfig.
func (c *Cluster) InKubeconfig() bool { return c.Name != inCluster }

// ErrUnreachable is matched by the errors of an API server that does not answer, or does not let the user in.
var ErrUnreachable = errors.New("the cluster can't be asked")

// meetWithin is how long an API server may take for its first answer.
const meetWithin = 15 * time.Second

// Meet asks the API server for its version: v1.34.4, "" where this user may not know it. The error matches ErrUnreachable where it does not answer. It is not asked
// again: one that was there and is away for a while is waited for, one that never answered is the wrong one.
func (c *Cluster) Meet(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, meetWithin)
	defer cancel()
	about, err := c.API.Version(ctx)
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", c.Unreachable(err)
	}
	return about.GitVersion, nil
}

// Unreachable is the error of a cluster that can't be asked: why, and what to do about it.
func (c *Cluster) Unreachable(err error) error {
	fix := "see whether it runs, and whether its address can be reached from here"
	var refused *net.OpError
	switch {
	case apierrors.IsUnauthorized(err):
		fix = "the kubeconfig's credentials are not, or no longer, taken: get new ones"
	case strings.Contains(err.Error(), "x509:"):
		fix = "the kubeconfig's authority is not the cluster's: get the kubeconfig anew"
	case errors.As(err, &refused) && refused.Op == "dial":
		fix = "nothing answers there: start the cluster, or choose another with --context"
	}
	return fmt.Errorf("%w: ask the API server of %s at %s: %w; %s", ErrUnreachable, c.Name, c.REST.Host, err, fix)
}

// Capabilities implements testbed.Provider.
func (d *Driver) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{
		Networks: Networks(), Lacking: d.Lacking, Stored: d.Stored,
		// Pods are scheduled and started, once for several builds, and each exchange with an agent goes through the cluster's own server.
		Costs: &testbed.Costs{
			Start: 9 * time.Second, Build: 2 * time.Second, Cell: 30 * time.Millisecond, Exchange: 4 * time.Millisecond,
			Opens: 16, Ground: "the cluster",
		},
		Targets: &testbed.Targets{Locate: d.Locate, From: Pod},
		Usual:   []string{Host, Pod, ClusterIP}, Nodes: d.Able, Places: d.Places, Fleet: d.OpenFleet, Policies: d.OpenPolicyTarget,
	}
}

// Lacking is testbed.Capabilities.Lacking: it looks into a pod of the run's image, which it makes for the purpose. What was found once is
// taken to hold for the run.
func (d *Driver) Lacking(ctx context.Context, names []string) ([]string, error) {
	d.equipping.Lock()
	defer d.equipping.Unlock()
	if !slices.ContainsFunc(names, func(n string) bool { _, known := d.equipped[n]; return !known }) {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return d.equipped[n] }), nil
	}
	found, err := d.look(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("look which programs there are in the pods' image: %w", err)
	}
	for _, n := range names {
		d.equipped[n] = !slices.Contains(found, n)
	}
	return found, nil
}

// look makes a pod and looks there for programs.
func (d *Driver) look(ctx context.Context, names []string) (lacking []string, err error) {
	if err := d.lease.hold(ctx); err != nil {
		return nil, err
	}
	pod, err := d.launcher.Launch(ctx, Wish{Name: "look", Role: RoleServer})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pod.Delete()) }()
	found, err := ask[inside.Lacks](ctx, d.cluster, pod.place, inside.Lacking, names)
	if err == nil && found.Error != "" {
		err = errors.New(found.Error)
	}
	return found.Names, err
}
