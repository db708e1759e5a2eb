package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"netdelta/testbed"
)

// Locate is testbed.Targets.Locate: it looks for services and pods, in other namespaces too.
func (d *Driver) Locate(ctx context.Context, host string) (testbed.Site, error) {
	d.mu.Lock()
	site, known := d.sites[host]
	d.mu.Unlock()
	if known {
		return site, nil
	}
	found, err := d.find(ctx, host)
	if err == nil {
		site, err = d.siteOf(ctx, found)
	}
	if err != nil {
		return site, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sites == nil {
		d.sites = map[string]testbed.Site{}
	}
	d.sites[host] = site
	return site, nil
}

// find finds out where an endpoint is now.
func (d *Driver) find(ctx context.Context, host string) (located, error) {
	found, err := fetch(ctx, func() (located, error) {
		return d.cluster.locate(ctx, host)
	})
	if err != nil {
		return found, fmt.Errorf("look for the endpoint %s in cluster %s: %w", host, d.cluster.Name, err)
	}
	slices.SortFunc(found.servers, func(a, b server) int { return cmp.Compare(a.pod, b.pod) })
	return found, nil
}

// located is where an endpoint was found: the names of nodes, or why they are not known. servers are its pods, with their nodes, and their
// names that no pod after them has.
type located struct {
	nodes   []string
	servers []server
	unknown string
}

// server is a pod behind an endpoint; again says how its containers were started again, "" where they never were.
type server struct{ pod, node, uid, again string }

// moved says how an endpoint stands otherwise than where it was found, "" where it does not.
func (was located) moved(now located) string {
	words := func(all, others []server) string {
		var names []string
		for _, s := range all {
			if !slices.Contains(others, s) {
				names = append(names, fmt.Sprintf("pod %s on node %s", s.pod, s.node))
			}
		}
		return strings.Join(names, ", ")
	}
	for _, s := range now.servers {
		if s.again != "" && slices.ContainsFunc(was.servers, func(o server) bool { return o.uid == s.uid && o.again != s.again }) {
			return fmt.Sprintf("pod %s on node %s is there still, but %s", s.pod, s.node, s.again)
		}
	}
	switch gone, come := words(was.servers, now.servers), words(now.servers, was.servers); {
	case gone != "" && come != "":
		return fmt.Sprintf("it was moved: %s served it first, and %s in the end", gone, come)
	case gone != "":
		return gone + " no longer serves it"
	case come != "":
		return come + " has begun to serve it"
	}
	return ""
}

// Moved is an error where the endpoint of a testbed stands otherwise than when the testbed was opened: another pod behind a
// service is another server, and may be on another node than clients expect; what was started again has lost its connections and caches.
func (t *Testbed) Moved(ctx context.Context) error {
	host := t.Spec().Target
	if host == "" || len(t.found.servers) == 0 {
		return nil
	}
	now, err := t.driver.find(ctx, host)
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the caller no longer waits
	case err != nil:
		return err
	}
	if what := t.found.moved(now); what != "" {
		return fmt.Errorf("the endpoint %s is not as it was when the build began: %s", host, what)
	}
	return nil
}

// siteOf says what an endpoint's nodes mean for the clients of a run.
func (d *Driver) siteOf(ctx context.Context, found located) (testbed.Site, error) {
	slices.Sort(found.nodes)
	site := testbed.Site{Nodes: slices.Compact(found.nodes)}
	if len(site.Nodes) == 0 {
		site.NoSameNode = "it is not known which node it is on: " + found.unknown
		site.MaybeSameNode = site.NoSameNode
		return site, nil
	}
	able, err := d.usable(ctx, 1)
	if err != nil {
		return site, err
	}
	free := slices.ContainsFunc(able, func(name string) bool { return !slices.Contains(site.Nodes, name) })
	switch {
	case len(site.Nodes) > 1:
		site.NoSameNode = fmt.Sprintf("it stands on %d nodes (%s), and which one answers is not the client's to choose; name one of its pods", len(site.Nodes), strings.Join(site.Nodes, ", "))
	case !slices.Contains(able, site.Nodes[0]):
		site.NoSameNode = fmt.Sprintf("no pod of the run can be put on node %s, where it stands", site.Nodes[0])
	}
	if !free {
		site.MaybeSameNode = fmt.Sprintf("it stands on all nodes that the run may use (%s)", strings.Join(able, ", "))
	}
	return site, nil
}

// locate finds the nodes of an endpoint.
func (c *Cluster) locate(ctx context.Context, host string) (located, error) {
	if at, err := netip.ParseAddr(host); err == nil {
		return c.locateAddress(ctx, at)
	}
	parts := strings.Split(host, ".")
	service, namespace, pod, sure := parts[0], c.Namespace, "", false
	switch at := slices.Index(parts, "svc"); {
	case at == 2:
		namespace, sure = parts[1], true
	case at == 3:
		pod, service, namespace, sure = parts[0], parts[1], parts[2], true
	case at >= 0 || len(parts) > 2:
		return located{unknown: "its name does not name a service (NAME.NAMESPACE.svc)"}, nil
	case len(parts) == 2:
		namespace = parts[1]
	}
	s, err := c.API.Services(namespace).Get(ctx, service, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && (sure || len(parts) == 1):
		return located{}, c.noService(ctx, namespace, service)
	case apierrors.IsNotFound(err):
		return located{unknown: fmt.Sprintf("there is no service %s in namespace %s", service, namespace)}, nil
	case apierrors.IsForbidden(err):
		return located{unknown: withFix(err).Error()}, nil
	case err != nil:
		return located{}, err
	}
	return c.locateService(ctx, s, pod)
}

// noService is the error of a service that is not there, with those that are.
func (c *Cluster) noService(ctx context.Context, namespace, name string) error {
	list, err := c.API.Services(namespace).List(ctx, metav1.ListOptions{Limit: mostListed})
	if err != nil || len(list.Items) == 0 {
		return fmt.Errorf("there is no service %q in namespace %q, and no other; is it the right namespace?", name, namespace)
	}
	return fmt.Errorf("there is no service %q in namespace %q%s", name, namespace, others(name, list.Items, func(s corev1.Service) string { return s.Name }))
}

// mostListed is how many names an error has at most.
const mostListed = 20

// locateService finds the nodes behind a service, or behind one pod of it.
func (c *Cluster) locateService(ctx context.Context, s *corev1.Service, pod string) (located, error) {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return located{unknown: fmt.Sprintf("service %s leads out of the cluster, to %q", s.Name, s.Spec.ExternalName)}, nil
	}
	list, err := c.API.EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name})
	if apierrors.IsForbidden(err) {
		return located{unknown: withFix(err).Error()}, nil
	}
	if err != nil {
		return located{}, err
	}
	var found located
	ready, placeless := 0, 0
	pods := c.behind(ctx, s)
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready || pod != "" && (e.Hostname == nil || *e.Hostname != pod) {
				continue
			}
			ready++
			if e.NodeName == nil {
				placeless++
				continue
			}
			found.nodes = append(found.nodes, *e.NodeName)
			if e.TargetRef != nil {
				found.servers = append(found.servers, server{e.TargetRef.Name, *e.NodeName, string(e.TargetRef.UID), again(pods[e.TargetRef.UID])})
			}
		}
	}
	switch {
	case ready == 0:
		return located{}, fmt.Errorf("service %s in namespace %s has no endpoint that is ready%s%s; look with kubectl -n %s get pods,endpointslices", s.Name, s.Namespace, ofPod(pod), failures(pods), s.Namespace)
	case placeless > 0:
		return located{unknown: fmt.Sprintf("service %s has endpoints that are no pods", s.Name)}, nil
	}
	return found, nil
}

// behind are the pods that a service selects, none where this user may not look.
func (c *Cluster) behind(ctx context.Context, s *corev1.Service) map[types.UID]*corev1.Pod {
	if len(s.Spec.Selector) == 0 {
		return nil
	}
	list, err := c.API.Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.FormatLabels(s.Spec.Selector)})
	if err != nil {
		return nil
	}
	all := map[types.UID]*corev1.Pod{}
	for i := range list.Items {
		all[list.Items[i].UID] = &list.Items[i]
	}
	return all
}

// again says how containers of a pod were started again, "" where none was.
func again(pod *corev1.Pod) string {
	var all []string
	if pod != nil {
		for _, s := range pod.Status.ContainerStatuses {
			if t := s.LastTerminationState.Terminated; t != nil {
				all = append(all, fmt.Sprintf("%s ended with %s and was started again, %d times in all", s.Name, cmp.Or(t.Reason, "exit status "+strconv.Itoa(int(t.ExitCode))), s.RestartCount))
			}
		}
	}
	return strings.Join(all, ", ")
}

// failures say how pods of an endpoint have failed.
func failures(pods map[types.UID]*corev1.Pod) string {
	var all []string
	for _, p := range pods {
		if what := podFailure(p); what != "" {
			all = append(all, fmt.Sprintf(", and of pod %s on node %s: %s", p.Name, p.Spec.NodeName, what))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

func ofPod(pod string) string {
	if pod == "" {
		return ""
	}
	return fmt.Sprintf(" by the name of pod %q", pod)
}

// locateAddress finds out whose an address is: a node's, a pod's or a service's.
func (c *Cluster) locateAddress(ctx context.Context, at netip.Addr) (located, error) {
	nodes, err := c.API.Nodes.List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return located{}, err
	}
	if err == nil {
		for _, n := range nodes.Items {
			if slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == at.String() }) {
				return located{nodes: []string{n.Name}}, nil
			}
		}
	}
	pods, err := c.API.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "status.podIP=" + at.String()})
	if apierrors.IsForbidden(err) {
		return located{unknown: withFix(err).Error()}, nil
	}
	if err != nil {
		return located{}, err
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName != "" && p.Status.Phase == corev1.PodRunning {
			return located{nodes: []string{p.Spec.NodeName}, servers: []server{{p.Name, p.Spec.NodeName, string(p.UID), again(&p)}}}, nil
		}
	}
	services, err := c.API.Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.clusterIP=" + at.String()})
	switch {
	case apierrors.IsForbidden(err):
		return located{unknown: withFix(err).Error()}, nil
	case err != nil:
		return located{}, err
	case len(services.Items) == 1:
		return c.locateService(ctx, &services.Items[0], "")
	}
	return located{unknown: "the address is of no node, pod or service"}, nil
}

// chooseFor is Choose for the clients of an endpoint, and says where that is now: its own node comes first, then those on which it is not.
func (d *Driver) chooseFor(ctx context.Context, count int, host string) ([]string, located, error) {
	ordered, err := d.usable(ctx, count)
	if err != nil {
		return nil, located{}, err
	}
	found, err := d.find(ctx, host)
	if err != nil {
		return nil, found, err
	}
	nodes := slices.Sorted(slices.Values(found.nodes))
	rank := func(name string) int {
		switch {
		case len(nodes) > 0 && name == nodes[0]:
			return 0
		case slices.Contains(nodes, name):
			return 2
		}
		return 1
	}
	slices.SortStableFunc(ordered, func(a, b string) int { return rank(a) - rank(b) })
	return ordered[:count], found, nil
}

// serverless says what can't be had where the server, called what, is none of netdelta's: a target, or a volume's storage.
func serverless(spec testbed.Spec, what, fix string) error {
	switch {
	case spec.Network != Host && spec.Network != Pod:
		return &testbed.UnsupportedError{Feature: "network " + spec.Network + " with a " + what, Need: "a server of netdelta's own behind it", Fix: fix}
	case spec.Conditions.Plain().Policy != "":
		return &testbed.UnsupportedError{
			Feature: "policy with a " + what, Need: "a server of netdelta's own, which it may guard",
			Fix: "leave policy out, or have a network apply your policies (docs/kubernetes-changes.md)",
		}
	case spec.PodsOutlive:
		return &testbed.UnsupportedError{Feature: "a " + what + " in blocks", Need: "pods that move into another namespace", Fix: "measure it without --blocks"}
	}
	return nil
}
