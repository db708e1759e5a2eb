package change

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
