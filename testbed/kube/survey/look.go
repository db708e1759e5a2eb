package survey

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/gather"
	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// Options say how far Look looks.
type Options struct {
	// Pods is how the pods of a run are to be made. With NodeAgent in it the pods that node agents take are tried as well. Without an
	// image there is a name that stands for it.
	Pods kube.Options
	// Inspect sees the devices of nodes, by their names: the work of a node agent. nil where there is none.
	Inspect func(ctx context.Context, nodes []string) (map[string][]testbed.Interface, error)
	// Try tries whether packets get from pods of each node to pods of the others: the work of a driver. nil where no pods are to be made.
	Try func(ctx context.Context, nodes []string) (kube.Ways, error)
}

// standIn is an image's name where none was given: none is pulled.
const standIn = "netdelta"

// patience is how long one question to the API server may take, and page how many objects are asked for at once.
const (
	patience = 15 * time.Second
	page     = 500
)

// Look asks the cluster. It changes nothing in it. What the user may not read is a gap in the survey; the error matches
// kube.ErrUnreachable where the API server does not answer at all, and is the context's where that ended.
func Look(ctx context.Context, cluster *kube.Cluster, options Options) (Survey, error) {
	l, err := begin(ctx, cluster, options)
	if err != nil {
		return Survey{}, err
	}
	for _, part := range []func(context.Context){
		l.readClock, l.readNodes, l.readPods, l.readLeases, l.readNetwork, l.readNamespace, l.readPolicies, l.askRights, l.tryPods, l.try, l.inspect,
	} {
		part(ctx)
		if ctx.Err() != nil {
			return Survey{}, ctx.Err()
		}
	}
	return l.survey, nil
}

// looker is a survey under way.
type looker struct {
	cluster  *kube.Cluster
	launcher *kube.Launcher
	options  Options
	survey   Survey
	evidence evidence
}

// begin is a survey of a cluster that answers.
func begin(ctx context.Context, cluster *kube.Cluster, options Options) (*looker, error) {
	if options.Pods.Image == "" && options.Pods.BaseImage == "" {
		options.Pods.Image = standIn
	}
	launcher, err := kube.NewLauncher(cluster, options.Pods)
	if err != nil {
		return nil, err
	}
	l := &looker{cluster: cluster, options: options, launcher: launcher, survey: Survey{
		Cluster: cluster.Name, NodeAgent: options.Pods.NodeAgent, BestEffort: -1, Pods: -1,
		Namespace: Namespace{Name: cluster.Namespace}, Services: Services{Count: -1},
	}}
	return l, l.meet(ctx)
}

// gap notes that something could not be read.
func (l *looker) gap(what, right, reason string) {
	g := Gap{What: what, Right: right, Reason: reason}
	l.survey.Gaps = gather.Once(l.survey.Gaps, g)
}

// ask puts one question, within patience. It says whether there was an answer; where the user may not ask, or the API server can't
// tell, it notes a gap. That something isn't there is an answer that says nothing.
func (l *looker) ask(ctx context.Context, what, right string, question func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := question(ctx)
	switch {
	case err == nil:
		return true
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		l.gap(what, right, "")
	default:
		l.gap(what, "", err.Error())
	}
	return false
}

// meet asks what all others depend on: whether the API server is there, and lets the user in.
func (l *looker) meet(ctx context.Context) error {
	version, err := l.cluster.Meet(ctx)
	if err != nil {
		return err
	}
	l.survey.Version = version
	who, err := Who(ctx, l.cluster)
	switch {
	case errors.Is(err, kube.ErrUnreachable):
		return err
	case err != nil:
		l.gap("who asks", "", err.Error())
	}
	l.survey.User = who
	l.ask(ctx, "the groups of the API", "", func(ctx context.Context) (err error) {
		l.evidence.groups, err = l.cluster.API.Groups(ctx)
		return err
	})
	return nil
}

// Who asks the API server who the user is. The error matches kube.ErrUnreachable where it does not answer, or does not let the user in;
// API servers before 1.28 may answer that they can't tell.
func Who(ctx context.Context, cluster *kube.Cluster) (User, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	who, err := cluster.API.SelfSubjectReviews.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return User{Name: who.Status.UserInfo.Username, Groups: who.Status.UserInfo.Groups}, nil
	case apierrors.IsUnauthorized(err) || !errors.As(err, &status):
		return User{}, cluster.Unreachable(err)
	}
	return User{}, err
}

// readNetwork gathers what plugins leave, and says what it means.
func (l *looker) readNetwork(ctx context.Context) {
	e := &l.evidence
	// Only the DaemonSets of network plugins matter, but vendors name them freely: all are read.
	if !l.ask(ctx, "DaemonSets: most network plugins are one", "list daemonsets.apps of the cluster", func(ctx context.Context) error {
		return each(ctx, l.cluster.API.DaemonSets(metav1.NamespaceAll), metav1.ListOptions{}, func(d *appsv1.DaemonSet) { e.daemons = append(e.daemons, *d) })
	}) {
		e.blind = true
	}
	e.configs = map[string]map[string]string{}
	for _, name := range configNames() {
		l.readConfig(ctx, systemNamespace, name)
	}
	l.readConfig(ctx, "kube-flannel", flannelConfig)
	if len(e.annotations("k8s.ovn.org/node-subnets")) > 0 {
		l.readConfig(ctx, "ovn-kubernetes", "ovn-config")
	}
	if e.groups[calicoGroup] {
		l.readCalico(ctx)
	}
	l.survey.Network = identify(*e)
	count := l.survey.Services.Count
	l.survey.Services = reached(*e, l.survey.Network)
	l.survey.Services.Count = count
	l.survey.Secondary.Multus = e.groups[multusGroup]
	for _, n := range l.survey.Nodes {
		for name := range n.Resources {
			if virtualFunction(name) && !slices.Contains(l.survey.Secondary.SRIOV, name) {
				l.survey.Secondary.SRIOV = append(l.survey.Secondary.SRIOV, name)
			}
		}
	}
	slices.Sort(l.survey.Secondary.SRIOV)
}

// virtualFunction says that a resource is named as resources of network cards usually are. Administrators choose the names.
func virtualFunction(name string) bool {
	name = strings.ToLower(name)
	words := []string{"sriov", "sr-iov", "_vf", "-vf", "/vf", "netdevice", "rdma"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) }) ||
		strings.HasPrefix(name, "openshift.io/") || strings.HasPrefix(name, "intel.com/intel_")
}

// readConfig reads a ConfigMap that may be there.
func (l *looker) readConfig(ctx context.Context, namespace, name string) {
	const what = "the configuration of the network plugin and of kube-proxy"
	right := "get configmaps in " + systemNamespace
	ok := l.ask(ctx, what, right, func(ctx context.Context) error {
		c, err := l.cluster.API.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			l.evidence.configs[namespace+"/"+name] = c.Data
		}
		return err
	})
	if !ok && slices.ContainsFunc(l.survey.Gaps, func(g Gap) bool { return g.What == what }) {
		l.evidence.blind = true
	}
}

// readCalico lists Calico's own objects.
func (l *looker) readCalico(ctx context.Context) {
	list := func(resource string, parse func([]byte) error) {
		l.ask(ctx, "Calico's "+resource, "list "+resource+"."+calicoGroup+" of the cluster", func(ctx context.Context) error {
			text, err := l.cluster.API.REST.Get().AbsPath("/apis/" + calicoGroup + "/v1/" + resource).DoRaw(ctx)
			if err != nil {
				return err
			}
			return parse(text)
		})
	}
	list("ippools", func(text []byte) (err error) {
		l.evidence.pools, err = parseItems[pool]("IPPools", text)
		return err
	})
	list("felixconfigurations", func(text []byte) (err error) {
		l.evidence.felix, err = parseItems[felixConfiguration]("FelixConfigurations", text)
		return err
	})
}
