package ceph

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/require"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
	"netdelta/workload/tool/fio"
)

// startPatience is for a busy machine.
const startPatience = 3 * time.Minute

// cluster is a Ceph cluster in a lab, with the agents of its pods and of a client's.
type cluster struct {
	testbed  testbed.Testbed
	pods     []*agent.Agent
	sessions []int
	client   *agent.Agent
	place    workload.Member
}

// launch opens a lab with a node for each pod and the client, and starts the cluster. All ends with the test.
func launch(t *testing.T, spec testbed.Spec, osds int) *cluster {
	t.Helper()
	require.Namespaces(t)
	for _, p := range append(Programs(), workload.Program{Name: fio.Program}) {
		_, err := daemon.Look(p.Name)
		require.Need(t, "the program "+p.Name, err == nil)
	}
	spec.Nodes, spec.PodsPerNode, spec.PodsOutlive, spec.Link.MTU = osds+1, 1, true, 1500
	tb, agents := probetest.Lab(t, spec)
	c := &cluster{testbed: tb, place: workload.Member{Pod: -1, CPU: -1}, pods: agents[:osds], client: agents[osds]}
	for _, pod := range tb.Pods()[:osds] {
		c.place.Peers = append(c.place.Peers, pod.Address())
	}
	c.serve(t)
	return c
}

// serve starts the daemons, pod 0 first.
func (c *cluster) serve(t *testing.T) {
	t.Helper()
	began := time.Now()
	c.sessions = make([]int, len(c.pods))
	start := func(i int) (err error) {
		at := c.place
		at.Pod = i
		c.sessions[i], err = c.pods[i].ServeCluster(t.Context(), "blocks", result.Params{}, at, startPatience)
		t.Logf("pod %d is up after %v", i, time.Since(began))
		return err
	}
	if err := start(0); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for i := 1; i < len(c.pods); i++ {
		go func() { done <- start(i) }()
	}
	for i := 1; i < len(c.pods); i++ {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// health is a pod's health.
func (c *cluster) health(t *testing.T, pod int) workload.Health {
	t.Helper()
	h, err := c.pods[pod].Health(t.Context(), c.sessions[pod], time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// well waits until the whole cluster is well.
func (c *cluster) well(t *testing.T) {
	t.Helper()
	require.NoError(t, require.Await(time.Minute, "the cluster is well", func() error {
		for pod := range c.pods {
			if h := c.health(t, pod); h.Unwell != "" {
				return errors.New(h.Unwell)
			}
		}
		return nil
	}))
}

// ended waits until a pod says that a daemon of its has ended.
func (c *cluster) ended(t *testing.T, pod int) (h workload.Health) {
	t.Helper()
	require.Eventually(t, time.Minute, "a daemon has ended", func() bool {
		h = c.health(t, pod)
		return h.Ended
	})
	return h
}

// restart starts a pod's daemons again that have ended.
func (c *cluster) restart(t *testing.T, pod int) {
	t.Helper()
	if err := c.pods[pod].Restart(t.Context(), c.sessions[pod], startPatience); err != nil {
		t.Fatal(err)
	}
}

// burst has the client read or write for a while.
func (c *cluster) burst(t *testing.T, p result.Params) engine.Burst {
	t.Helper()
	session, err := c.client.DialCluster(t.Context(), "blocks", p, c.place, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.client.Burst(t.Context(), session, engine.BurstSpec{Duration: time.Second, Warmup: 100 * time.Millisecond, Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if b.Transactions == 0 || b.Errors != 0 {
		t.Errorf("%+v: %d blocks, %d errors", p, b.Transactions, b.Errors)
	}
	if err := c.client.Drop(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	return b
}

// pid is the number of the process of a daemon, a descendant of a pod's agent.
func (c *cluster) pid(t *testing.T, pod int, program string) int {
	t.Helper()
	todo := []int{c.pods[pod].PID()}
	for len(todo) > 0 {
		pid := strconv.Itoa(todo[0])
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(name)) == program {
			return todo[0]
		}
		todo = append(todo[1:], children(t, pid)...)
	}
	t.Fatalf("pod %d has no %s", pod, program)
	return 0
}

// children are the children of all threads of a process.
func children(t *testing.T, pid string) []int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/" + pid + "/task/" + task.Name() + "/children")
		if err != nil {
			continue // a thread that ended
		}
		for _, f := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
	}
	return all
}
