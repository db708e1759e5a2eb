package kube

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"netdelta/internal/gather"
	"netdelta/internal/machine"
	"netdelta/internal/suggest"
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
	// Ports is how many ports the servers of a pod can listen on; 0 is 40.
	Ports int
	// NodeAgent allows a pod in the namespace of each node, which looks at the devices there.
	NodeAgent bool
	// Within is how long a pod may take to start; 0 is two minutes.
	Within time.Duration
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
	if err := o.checkAmounts(); err != nil {
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
