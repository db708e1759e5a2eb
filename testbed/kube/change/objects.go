package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/client"
)

// fieldManager is who sets the fields of objects that are applied.
const fieldManager = "netdelta"

// objects applies and deletes objects of any kind.
type objects struct {
	dynamic   dynamic.Interface
	api       *client.API
	namespace string // of objects that name none
}

func newObjects(cluster *kube.Cluster) (*objects, error) {
	anything, err := dynamic.NewForConfig(cluster.REST)
	if err != nil {
		return nil, fmt.Errorf("prepare to change objects of the cluster: %w", err)
	}
	return &objects{dynamic: anything, api: cluster.API, namespace: cluster.Namespace}, nil
}

// parseObjects reads the objects of a manifest: YAML documents, or JSON.
func parseObjects(name string, data []byte) ([]unstructured.Unstructured, error) {
	const ahead = 4096 // bytes that tell JSON from YAML
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), ahead)
	var all []unstructured.Unstructured
	for n := 1; ; n++ {
		var o unstructured.Unstructured
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: its document %d is no object of Kubernetes: %w", name, n, err)
		}
		if len(o.Object) == 0 {
			continue // nothing but comments
		}
		switch {
		case o.GetAPIVersion() == "" || o.GetKind() == "":
			return nil, fmt.Errorf("read %s: its document %d has no apiVersion or no kind", name, n)
		case o.IsList():
			return nil, fmt.Errorf("read %s: its document %d is a list; write its objects as documents of their own, parted by ---", name, n)
		case o.GetName() == "":
			return nil, fmt.Errorf("read %s: its document %d, a %s, has no metadata.name", name, n, o.GetKind())
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read %s: it has no object", name)
	}
	return all, nil
}

// apply has the API server take over the fields of all objects of a manifest, in the order of the file.
func (o *objects) apply(ctx context.Context, name string, data []byte) error {
	all, err := parseObjects(name, data)
	if err != nil {
		return err
	}
	for _, object := range all {
		client, err := o.clientOf(ctx, &object)
		if err == nil {
			_, err = client.Apply(ctx, object.GetName(), &object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		}
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// delete removes all objects of a manifest, the last first, and returns when they are gone.
func (o *objects) delete(ctx context.Context, name string, data []byte) error {
	all, err := parseObjects(name, data)
	if err != nil {
		return err
	}
	for i := len(all) - 1; i >= 0; i-- {
		client, err := o.clientOf(ctx, &all[i])
		if err == nil {
			err = gone(ctx, client, all[i].GetName())
		}
		if err != nil {
			return fmt.Errorf("delete %s %s: %w", all[i].GetKind(), all[i].GetName(), err)
		}
	}
	return nil
}

// gone deletes an object and waits until it is gone.
func gone(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	background := metav1.DeletePropagationBackground
	err := client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err == nil {
		for range kube.Polling(ctx, again/2) {
			if _, err = client.Get(ctx, name, metav1.GetOptions{}); err != nil {
				break
			}
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("it is still there: %w", context.Cause(ctx))
	}
	return err
}

// clientOf speaks of the objects of one's kind, for which the server is asked each time: a manifest may bring kinds with it.
func (o *objects) clientOf(ctx context.Context, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	resource, namespaced, err := o.api.Find(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("find the kind %s: %w", kind, err)
	}
	client := o.dynamic.Resource(resource)
	switch {
	case !namespaced:
		return client, nil
	case object.GetNamespace() != "":
		return client.Namespace(object.GetNamespace()), nil
	}
	return client.Namespace(o.namespace), nil
}

// agentsWithin bounds how long agents are looked for, and agentsMost how many are named. One that runs, and ended longer ago than recently, has
// outlived that: Kubernetes starts it again at once, then after 10 and 20 seconds.
const (
	agentsWithin = 5 * time.Second
	agentsMost   = 3
	recently     = 30 * time.Second
)

// because adds to the reason why a change is not in effect which agents of the cluster end or do not start, with the last line of what each
// said, or the last that tells of an error: pods of DaemonSets, and those in their nodes' network. Where this user may not look, nothing is added.
func (c *carrier) because(ctx context.Context, reason error) error {
	ctx, cancel := context.WithTimeout(ctx, agentsWithin)
	defer cancel()
	pods, err := c.cluster.API.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return reason
	}
	var all []string
	for _, p := range pods.Items {
		if !p.Spec.HostNetwork && !slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" }) {
			continue
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if why := c.ending(ctx, p, s); why != "" && len(all) < agentsMost {
				all = append(all, fmt.Sprintf("pod %s in %s on %s: %s", p.Name, p.Namespace, p.Spec.NodeName, why))
			}
		}
	}
	if len(all) == 0 {
		return reason
	}
	return fmt.Errorf("%w; %s", reason, strings.Join(all, "; "))
}

// ending says why a container of an agent does not run, "" where it does or is starting. One that ended a short time ago and runs again is
// about to end once more, as far as anybody knows.
func (c *carrier) ending(ctx context.Context, p corev1.Pod, s corev1.ContainerStatus) string {
	ended, last, times := s.State.Terminated, s.LastTerminationState.Terminated, s.RestartCount+1
	if s.State.Running != nil && last != nil && time.Since(last.FinishedAt.Time) < recently {
		ended, times = last, s.RestartCount
	}
	if w := s.State.Waiting; w != nil {
		ended = last
		if ended == nil && (w.Reason == "ContainerCreating" || w.Reason == "PodInitializing") {
			return ""
		}
		if ended == nil {
			return onOneLine(strings.TrimSpace(w.Reason + " " + w.Message))
		}
	}
	if ended == nil || ended.ExitCode == 0 {
		return ""
	}
	said := ended.Message
	if said == "" {
		log, err := c.cluster.API.REST.Get().AbsPath("/api/v1/namespaces/"+p.Namespace+"/pods/"+p.Name+"/log").
			Param("container", s.Name).Param("tailLines", "20").Param("previous", fmt.Sprint(s.State.Terminated == nil)).DoRaw(ctx)
		if err == nil {
			said = telling(string(log))
		}
	}
	return onOneLine(fmt.Sprintf("%s ended %d times, last with status %d: %s", s.Name, times, ended.ExitCode, strings.TrimSpace(said)))
}

// telling is the last line of a log that tells of an error, else its last: many programs say goodbye after they have said why.
func telling(log string) (line string) {
	all := strings.Split(strings.TrimSpace(log), "\n")
	for _, l := range slices.Backward(all) {
		lower := strings.ToLower(l)
		// The logs of Kubernetes begin such lines with E or F and the date.
		if strings.HasPrefix(lower, "e1") || strings.HasPrefix(lower, "e0") || strings.HasPrefix(lower, "f1") || strings.HasPrefix(lower, "f0") ||
			slices.ContainsFunc([]string{"error", "fatal", "panic", "fail"}, func(w string) bool { return strings.Contains(lower, w) }) {
			return l
		}
	}
	return all[len(all)-1]
}

// goneWithin is how long agents may take to remove what is theirs once a change is undone.
const goneWithin = 3 * time.Second

// namedMost is how many names a sentence has.
const namedMost = 6

// Watch reads what stands on the nodes, once, before anything is changed, and says what of it is another product's.
func (c *Changer) Watch(ctx context.Context) {
	if c.options.Standing == nil || c.stood != nil {
		return
	}
	var err error
	if c.stood, err = c.options.Standing(ctx); err != nil && ctx.Err() == nil {
		c.leave(fmt.Sprintf("whether changes of the cluster leave something behind is not seen on all nodes: %v", err))
	}
	if c.stood == nil {
		c.stood = map[string][]string{}
	}
	if c.options.Foreign != nil && len(c.stood) > 0 {
		c.leave(c.options.Foreign(ctx, c.stood)...)
	}
}

// hold holds what stands on the nodes once a change is undone against what stood there before. What is said once is not said again.
func (c *Changer) hold(ctx context.Context, network string) {
	if len(c.stood) == 0 {
		return
	}
	var now map[string][]string
	for waited := range kube.Polling(ctx, again) {
		now, _ = c.options.Standing(ctx) // nodes that could not be read are left out
		maps.DeleteFunc(now, func(node string, names []string) bool {
			return c.stood[node] == nil || slices.Equal(c.stood[node], names)
		})
		if len(now) == 0 {
			return
		}
		if waited > goneWithin {
			break
		}
	}
	for _, node := range slices.Sorted(maps.Keys(now)) {
		for _, part := range []struct {
			is    string
			names []string
		}{{"now", without(now[node], c.stood[node])}, {"no longer", without(c.stood[node], now[node])}} {
			if len(part.names) > 0 {
				c.leave(fmt.Sprintf("the cluster is not as it was before %s, though that was undone: there is %s on node %s: %s",
					testbed.ChangedFor(network), part.is, node, kube.Some(part.names, "; ", namedMost)))
			}
		}
		c.stood[node] = now[node]
	}
}

// leave keeps sentences for Left, and says them at once.
func (c *Changer) leave(sentences ...string) {
	for _, s := range sentences {
		say(c.options.Log, "  %s\n", s)
	}
	c.left = append(c.left, sentences...)
}

// Left says what changes that were undone have left on the nodes, and what other products have.
func (c *Changer) Left() []string { return slices.Clone(c.left) }

// without are the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
