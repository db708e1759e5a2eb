package survey

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"netdelta/internal/gather"
	"netdelta/testbed/kube"
)

// skew is how many minor releases a kubelet may be older than the API server, as Kubernetes' version skew policy has it.
const skew = 3

// judgeVersions: whether kubelets and API server fit together.
func judgeVersions(s Survey, f *findings) {
	server, err := version.ParseGeneric(s.Version)
	if err != nil {
		f.note("versions", "the API server's version is not a version: "+s.Version, "", "")
		return
	}
	var newer, older, kubelets []string
	for _, n := range s.Nodes {
		kubelets = gather.Once(kubelets, n.Kubelet)
		kubelet, err := version.ParseGeneric(n.Kubelet)
		switch {
		case err != nil:
		case kubelet.Major() != server.Major() || kubelet.Minor() > server.Minor():
			newer = append(newer, n.Name+" "+n.Kubelet)
		case server.Minor()-kubelet.Minor() > skew:
			older = append(older, n.Name+" "+n.Kubelet)
		}
	}
	if len(newer) > 0 {
		f.warn("versions", "kubelets newer than the API server's "+s.Version+": "+strings.Join(newer, ", "),
			"Kubernetes does not support that", "upgrade the API server")
	}
	if len(older) > 0 {
		f.warn("versions", fmt.Sprintf("kubelets more than %d minor releases older than the API server's %s: %s", skew, s.Version, strings.Join(older, ", ")),
			"Kubernetes does not support that", "upgrade them")
	}
	if slices.Sort(kubelets); len(kubelets) > 1 && len(newer)+len(older) == 0 {
		f.note("versions", "kubelets differ: "+strings.Join(kubelets, ", "),
			"nodes set up pods by different code; builds on different nodes vary for it", "")
	}
}

// judgeKernels: whether all nodes forward packets by the same code.
func judgeKernels(s Survey, f *findings) {
	nodes := map[string][]string{}
	var kernels []string
	for _, n := range s.Nodes {
		if !n.open() {
			continue
		}
		if nodes[n.Kernel] == nil {
			kernels = append(kernels, n.Kernel)
		}
		nodes[n.Kernel] = append(nodes[n.Kernel], n.Name)
	}
	if len(kernels) < 2 {
		return
	}
	slices.Sort(kernels)
	parts := gather.Each(kernels, func(k string) string { return fmt.Sprintf("%s on %s", k, some(nodes[k])) })
	f.warn("kernels", "nodes run different kernels: "+strings.Join(parts, "; "),
		"each build's pods are scheduled afresh: what differs between kernels widens every interval", "choose nodes of one kernel")
}

// few is how many names are written out.
const few = 5

// some writes a few names, and how many more there are.
func some(names []string) string { return kube.Some(names, ", ", few) }

// tolerance is how far apart clocks may be: what the readings can't tell from agreement is no finding anyway.
const tolerance = time.Second

// judgeClocks: whether clocks agree. Only an offset that is certain is a finding.
func judgeClocks(s Survey, f *findings) {
	var off []string
	for _, n := range s.Nodes {
		if n.Clock != nil && n.Clock.apart() {
			off = append(off, n.Name+" "+n.Clock.String())
		}
	}
	if len(off) > 0 {
		f.warn("clocks", "clocks of nodes differ from the API server's: "+some(off),
			"logs of nodes and times in records don't fit together; leases are taken for stale too early or too late", "let the nodes keep time by NTP")
	}
	if s.Clock != nil && s.Clock.apart() {
		f.warn("clocks", "the API server's clock differs from this machine's: "+s.Clock.String(),
			"times in records of this machine and of the cluster don't fit together", "let both keep time by NTP")
	}
}

// apart says that clocks certainly disagree.
func (o Offset) apart() bool { return o.Low > tolerance || o.High < -tolerance }

// String is the offset with what it is known to: "+2.5 s (within 1.0 s)".
func (o Offset) String() string {
	middle, half := (o.Low+o.High)/2, (o.High-o.Low)/2
	return fmt.Sprintf("%+.1f s (within %.1f s)", middle.Seconds(), half.Seconds())
}

// judgeClasses: whether pods compete for processors.
func judgeClasses(s Survey, f *findings) {
	if s.BestEffort <= 0 {
		return
	}
	f.warn("best-effort", fmt.Sprintf("%d of %d pods outside of %s ask for no processor and no memory", s.BestEffort, s.Pods, systemNamespace),
		"a database on best-effort pods was found lower and erratic, with requests equal to limits stable; here they also disturb what is measured",
		"give what matters requests equal to limits; to see what it costs: netdelta run database --factor qos=guaranteed,best-effort")
}

// judgeGaps: what could not be read.
func judgeGaps(s Survey, f *findings) {
	for _, g := range s.Gaps {
		if g.Right != "" {
			f.note("not known", g.What, "", "it takes the right to "+g.Right)
		} else {
			f.note("not known", g.What+": "+g.Reason, "", "")
		}
	}
}
