package change

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An agent that ends again and again is named also while it runs once more; one that ended long ago is not.
func TestEnding(t *testing.T) {
	ended := func(ago time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 255, Message: "no such mode", FinishedAt: metav1.NewTime(time.Now().Add(-ago))}}
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, c := range map[string]struct {
		now, last corev1.ContainerState
		want      string
	}{
		"it has ended":       {ended(0), corev1.ContainerState{}, "agent ended 3 times, last with status 255: no such mode"},
		"it runs once more":  {runs, ended(time.Second), "agent ended 2 times, last with status 255: no such mode"},
		"it ended long ago":  {runs, ended(time.Hour), ""},
		"it runs":            {runs, corev1.ContainerState{}, ""},
		"it will be started": {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, ended(time.Hour), "agent ended 3 times, last with status 255: no such mode"},
	} {
		got := (&carrier{}).ending(t.Context(), corev1.Pod{}, corev1.ContainerStatus{Name: "agent", State: c.now, LastTerminationState: c.last, RestartCount: 2})
		if strings.TrimSpace(got) != c.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
