package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netdelta/internal/gather"
	"netdelta/testbed/kube"
)

// Severity says what a finding is to a run.
type Severity string

// The severities, the gravest first.
const (
	// Missing: a run needs it.
	Missing Severity = "missing"
	// Warning: runs are possible, and what they find, or the cluster's own workloads, is worse for it.
	Warning Severity = "warning"
	// Note: good to know.
	Note Severity = "note"
)

// Finding is what the facts mean.
type Finding struct {
	Severity Severity `json:"severity"`
	Topic    string   `json:"topic"`
	Says     string   `json:"says"`
	// Why is what it does to a run, or to workloads.
	Why string `json:"why,omitempty"`
	// Fix is what to do.
	Fix string `json:"fix,omitempty"`
}

// findings gathers them: the topic of each, what it says, why it matters and the fix.
type findings []Finding

func (f *findings) add(severity Severity, topic, says, why, fix string) {
	*f = append(*f, Finding{Severity: severity, Topic: topic, Says: says, Why: why, Fix: fix})
}

func (f *findings) missing(topic, says, why, fix string) { f.add(Missing, topic, says, why, fix) }
func (f *findings) warn(topic, says, why, fix string)    { f.add(Warning, topic, says, why, fix) }
func (f *findings) note(topic, says, why, fix string)    { f.add(Note, topic, says, why, fix) }

// Judge says what a survey means: the gravest first, then as a run meets it. It sends no requests.
func Judge(s Survey) []Finding {
	var all findings
	for _, judge := range []func(Survey, *findings){
		judgeWays, judgeRights, judgeNamespace, judgeAdmission, judgeDenials, judgeNodes, judgeRoom, judgeQuota, judgeLimits,
		judgeVersions, judgeKernels, judgeClocks,
		judgeNetwork, judgeForeign, judgeHostRouting, judgeEncapsulation, judgeMTU, judgeBonds, judgeCards, judgeServices, judgeClasses,
		judgeSight, judgeGaps,
	} {
		judge(s, &all)
	}
	grave := []Severity{Missing, Warning, Note}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(grave, a.Severity), slices.Index(grave, b.Severity))
	})
	return all
}

// Lacks says how many of the findings are of something that a run needs.
func Lacks(findings []Finding) int {
	n := 0
	for _, f := range findings {
		if f.Severity == Missing {
			n++
		}
	}
	return n
}

// rbacCall prints what grants the rights that are missing.
const rbacCall = "netdelta doctor --testbed kubernetes --rbac prints what grants them, for kubectl apply -f - by who may (who prints it for you adds --for USER)"

// judgeRights: what is missing of them, and what that costs.
func judgeRights(s Survey, f *findings) {
	for _, c := range []struct {
		purpose  Purpose
		severity Severity
		why      string
	}{
		{ForRuns, Missing, "no run is possible without"},
		{ForServices, Warning, "the networks clusterip, nodeport and headless can't be measured without"},
		{ForPeers, Warning, "databases and storage that several pods serve can't be measured without"},
		{ForFleets, Warning, "many clients at once can't be started without"},
		{ForPolicies, Warning, "what NetworkPolicies cost can't be measured without"},
		{ForTargets, Warning, "it is not known where your own endpoints stand, so that no client can be put on their node, without"},
		{ForVolumes, Warning, "volumes of your own storage classes can't be measured without"},
		{ForMultus, Warning, "secondary networks can't be measured without"},
	} {
		missing := lacking(s.Rights, c.purpose)
		if len(missing) > 0 {
			f.add(c.severity, "rights", "you may not "+tell(missing), c.why, rbacCall)
		}
	}
	unknown := gather.Where(s.Rights, func(r Right) bool { return r.Unknown != "" })
	if len(unknown) > 0 {
		f.warn("rights", "the API server did not say whether you may "+tell(unknown)+": "+unknown[0].Unknown,
			"a run may fail for want of them", "ask again")
	}
}

// tell writes rights as people say them: "create, get pods in x; list nodes of the cluster".
func tell(rights []Right) string {
	var parts []string
	for i := 0; i < len(rights); {
		r := rights[i].Need
		verbs := []string{r.Verb}
		for i++; i < len(rights) && rights[i].Resource == r.Resource && rights[i].Group == r.Group && rights[i].Namespace == r.Namespace; i++ {
			verbs = append(verbs, rights[i].Verb)
		}
		r.Verb = strings.Join(verbs, ", ")
		parts = append(parts, r.String())
	}
	return strings.Join(parts, "; ")
}

// judgeNamespace: whether it is there.
func judgeNamespace(s Survey, f *findings) {
	if !s.Namespace.Missing {
		return
	}
	f.missing("namespace", "there is no namespace "+s.Namespace.Name,
		"pods are made in it", "kubectl create namespace "+s.Namespace.Name+", or choose another with --namespace")
}

// judgeAdmission: whether the pods of a run would be taken.
func judgeAdmission(s Survey, f *findings) {
	for _, a := range s.Admission {
		what, why := "plain pods", "every pod of a run but those of the baseline is one"
		switch a.Pod {
		case PodHost:
			what, why = "pods in their node's network", "the network host, the baseline that all others are held against, is made of them"
		case PodNodeAgent:
			what, why = "node agents", "with --node-agent they look at the nodes' devices; without, the path of packets is proved weakly"
		}
		fix := cmp.Or(kube.FlagsForQuota(a.Refusal), "the cluster's own words say who refused it: a quota, a limit or an admission webhook")
		if strings.Contains(a.Refusal, "violates PodSecurity") {
			fix = "in a namespace of its own for measurements: kubectl label namespace " + s.Namespace.Name +
				" pod-security.kubernetes.io/enforce=privileged --overwrite"
			if a.Pod == PodHost {
				fix += "; or another baseline: --baseline pod"
			}
		}
		switch {
		case s.Namespace.Missing || a.Admitted:
		case a.Untried == "":
			f.missing("admission", "the namespace does not take "+what+": "+a.Refusal, why, fix)
		case len(lacking(s.Rights, ForRuns)) == 0:
			f.warn("admission", "it could not be tried whether the namespace takes "+a.Pod+" pods: "+a.Untried, why, "")
		}
	}
}

// judgeNodes: how many can have pods.
func judgeNodes(s Survey, f *findings) {
	var unready []string
	open := 0
	for _, n := range s.Nodes {
		if !n.Ready {
			unready = append(unready, n.Name+" ("+n.Unready+")")
		}
		if n.open() {
			open++
		}
	}
	if len(unready) > 0 {
		f.warn("nodes", "not ready: "+strings.Join(unready, "; "), "no pods are measured there", "see kubectl describe node")
	}
	switch {
	case len(s.Nodes) == 0:
	case open == 0:
		f.missing("nodes", "no node is ready and open to pods", "pods of a run have nowhere to go", "uncordon a node, or take a taint away")
	case open == 1:
		f.warn("nodes", "only one node is ready and open to pods",
			"nothing can be measured across nodes", "uncordon a second node, or run with --placement same-node")
	}
}

// judgeRoom: whether processors are free on two nodes.
func judgeRoom(s Survey, f *findings) {
	known, pair, build := 0, 0, 0
	var rooms []string
	for _, n := range s.Nodes {
		if !n.open() || n.FreeMilliCPU < 0 {
			continue
		}
		known++
		rooms = append(rooms, fmt.Sprintf("%s %s", n.Name, cpus(n.FreeMilliCPU)))
		if n.FreeMilliCPU >= pairPods*s.Asks.MilliCPU {
			pair++
		}
		if n.FreeMilliCPU >= buildPods/2*s.Asks.MilliCPU {
			build++
		}
	}
	free := "free processors: " + strings.Join(rooms, ", ")
	const fix = "free processors on two nodes, or measure fewer networks at once with --networks"
	switch {
	case known == 0:
	case pair == 0:
		f.missing("room", "no node has room for a client and a server; "+free, "pods that are guaranteed their processors can't be scheduled", fix)
	case pair == 1 && known > 1:
		f.warn("room", "only one node has room for a client and a server; "+free, "nothing can be measured across nodes", fix)
	case build < min(2, known):
		f.warn("room", fmt.Sprintf("a build of all networks side by side asks for %s; %s", cpus(buildPods*s.Asks.MilliCPU), free),
			"some pods may not be scheduled", fix)
	}
}

// cpus writes thousandths of processors.
func cpus(milli int64) string { return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) }

// judgeQuota: whether what is left is enough.
func judgeQuota(s Survey, f *findings) {
	each := map[string]int64{
		"pods": 1, "count/pods": 1, "cpu": s.Asks.MilliCPU, "requests.cpu": s.Asks.MilliCPU, "limits.cpu": s.Asks.MilliCPU,
		"memory": s.Asks.Memory, "requests.memory": s.Asks.Memory, "limits.memory": s.Asks.Memory,
	}
	for _, q := range s.Namespace.Quota {
		left := max(0, q.Hard-q.Used)
		const fix = "have the quota raised, or choose another namespace with --namespace"
		says := fmt.Sprintf("quota %s leaves %s of %s", q.Name, quantity(q.Resource, left), q.Resource)
		pair, build := pairPods*each[q.Resource], buildPods*each[q.Resource]
		switch q.Resource {
		case "services", "count/services":
			build = buildServices
		case "services.nodeports":
			build = buildServices / 2
		case "count/jobs.batch":
			build = 1
		}
		switch takes := volumesTake(q.Resource); {
		case left < takes:
			f.warn("quota", says, "two networks with volumes of one storage class take "+quantity(q.Resource, takes), fix)
		case left < pair:
			f.missing("quota", says, "a client and a server take "+quantity(q.Resource, pair), fix)
		case left < build:
			f.warn("quota", says, "a build of all networks side by side takes "+quantity(q.Resource, build)+"; fewer can be measured with --networks", fix)
		}
	}
}

// volumesTake is how much of a resource the volumes of two networks of one storage class take, with the baseline's A/A control; 0 for resources
// that volumes do not take.
func volumesTake(resource string) int64 {
	const volumes, size = 3, 1 << 30
	switch {
	case strings.HasSuffix(resource, storageQuota):
		return volumes * size
	case strings.HasSuffix(resource, claimQuota):
		return volumes
	}
	return 0
}

// quantity writes an amount of a resource.
func quantity(resource string, amount int64) string {
	switch {
	case strings.HasSuffix(resource, "cpu"):
		return cpus(amount) + " processors"
	case strings.HasSuffix(resource, "memory"), strings.HasSuffix(resource, storageQuota):
		return fmt.Sprintf("%d MiB", amount>>20)
	}
	return fmt.Sprint(amount)
}

// judgeLimits: whether pods may ask for what they need.
func judgeLimits(s Survey, f *findings) {
	asked := map[string]int64{"cpu": s.Asks.MilliCPU, "memory": s.Asks.Memory}
	for _, l := range s.Namespace.Limits {
		if l.Bound == "max" && l.Value < asked[l.Resource] || l.Bound == "min" && l.Value > asked[l.Resource] {
			bound := quantity(l.Resource, l.Value)
			f.missing("limits", fmt.Sprintf("limit range %s: %s of %s is %s for each %s", l.Name, l.Bound, l.Resource, bound, strings.ToLower(l.Kind)),
				"each pod of a run asks for "+quantity(l.Resource, asked[l.Resource])+" of "+l.Resource,
				"have it changed, or choose another namespace with --namespace")
		}
	}
}
