package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"netdelta/extras/cluster/image"
	"netdelta/extras/cluster/supervisor"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/kube/kubetest"
)

// guarded lets only pods reach the server that have a label which none has.
const guarded = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: guarded}
spec:
  podSelector: {matchLabels: {app: server}}
  policyTypes: [Ingress]
  ingress: [{from: [{podSelector: {matchLabels: {app: friend}}}]}]
`

// cluster is a cluster of a test's own, and how it is spoken to.
type cluster struct {
	t      *testing.T
	folder supervisor.Folder
	call   func(...string) (string, error)
}

// product begins a test of a cluster whose CNI is of a product, or skips it where its programs are missing.
func product(t *testing.T, p supervisor.Product) cluster {
	t.Helper()
	folder, call := own(t)
	require.Need(t, "the programs of "+string(p)+" (scripts/kubernetes.sh "+string(p)+", "+productVariable(p)+")", os.Getenv(productVariable(p)) != "")
	return cluster{t, folder, call}
}

// kubectl runs it to its end and returns what it printed.
func (c cluster) kubectl(input string, arguments ...string) string {
	c.t.Helper()
	cmd := exec.Command(filepath.Join(parts(c.t), "kubectl"), append([]string{"--kubeconfig", c.folder.Kubeconfig()}, arguments...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// reaches says whether the client reaches the server at an address, HOST PORT.
func (c cluster) reaches(at string) bool {
	c.t.Helper()
	return c.kubectl("", "exec", "client", "--", "sh", "-c",
		`exec 2>/dev/null; printf 'GET /cgi-bin/who HTTP/1.0\r\n\r\n' | timeout 1 nc `+at+` | grep -q reached && echo yes || echo no`) == "yes"
}

// becomes waits for the client to reach the server, or to be refused.
func (c cluster) becomes(at string, want bool) {
	c.t.Helper()
	require.Eventually(c.t, 30*time.Second, fmt.Sprintf("that the client reaches %s is %t", at, want), func() bool { return c.reaches(at) == want })
}

// answers waits for the API server.
func (c cluster) answers() {
	c.t.Helper()
	require.NoError(c.t, require.Await(time.Minute, "the API server answers", func() error {
		return exec.Command(filepath.Join(parts(c.t), "kubectl"), "--kubeconfig", c.folder.Kubeconfig(), "get", "--raw", "/readyz").Run()
	}))
}

// inMode tests what a mode of a product does for pods, which it leaves: they reach each other across nodes and by a service, and the
// product itself enforces policies.
func (c cluster) inMode() {
	c.t.Helper()
	c.kubectl(pods, "apply", "-f", "-")
	c.kubectl("", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s")
	pod := c.kubectl("", "get", "pod", "server", "-o", "jsonpath={.status.podIP}") + " 8080"
	c.becomes(pod, true)
	c.becomes("10.96.100.1 80", true)
	c.kubectl(guarded, "apply", "-f", "-")
	c.becomes(pod, false)
	c.becomes("10.96.100.1 80", false)
	c.kubectl(guarded, "delete", "-f", "-")
	c.becomes(pod, true)
}

// changing is a study whose last network replaces the agents of the product by ones that end. Its words are kubectl and the product.
const changing = `study: product
testbed: {kind: kubernetes}
baseline: pod
networks:
  - host
  - pod
  - clusterip
  - name: crashing
    apply:
      - {manifest: crashing.yaml}
      - [sh, -c, "until %[1]s get pods -l app=%[2]s -o yaml | grep -q exitCode; do sleep 0.2; done"]
      - %[1]s rollout status ds/%[2]s --timeout=1s
    restore: [{delete: crashing.yaml}]
placement: [cross-node]
workloads: [tcp-rr: {message: 300}]
design: {blocks: 1, rounds: 2, time_budget: 4m}
`

// measured runs netdelta for a short time, and returns what it printed. An agent of the product that ends again and again fails what it has
// part in, by its last words, and is gone afterwards; all else is measured.
func (c cluster) measured(p supervisor.Product) string {
	c.t.Helper()
	program := os.Getenv("NETDELTA_TESTED")
	require.Need(c.t, "a netdelta (NETDELTA_TESTED)", program != "")
	dir := c.t.TempDir()
	kubectl := filepath.Join(parts(c.t), "kubectl") + " --kubeconfig " + c.folder.Kubeconfig()
	manifest, says := kubetest.Crashing(string(p))
	for name, text := range map[string]string{"study.yaml": fmt.Sprintf(changing, kubectl, p), "crashing.yaml": manifest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "run", "study.yaml", "--kubeconfig", c.folder.Kubeconfig(), "--base-image", image.Reference, "--node-agent", "--trust", "--out", "run")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_STATE_HOME="+dir)
	out, err := cmd.CombinedOutput() // its status says that trials have failed
	contents, errRead := result.LoadTrials(filepath.Join(dir, "run"))
	if errRead != nil {
		c.t.Fatalf("netdelta run: %v, %v\n%s", err, errRead, out)
	}
	count := map[bool]int{}
	for _, tr := range contents.Trials {
		crashing := strings.HasPrefix(tr.Cell, "crashing/")
		count[crashing]++
		words := []string{"pod " + string(p) + "-", " on w", string(p) + " ended", says}
		if (tr.Failed != "") != crashing || crashing && slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(tr.Failed, w) }) {
			c.t.Errorf("%s failed: %q", tr.ID(), tr.Failed)
		}
	}
	if left := c.kubectl("", "get", "daemonsets", "--output=name"); count[true] == 0 || count[false] == 0 || left != "" {
		c.t.Errorf("%d trials are of an agent that ends, %d are others, and there is left %s\n%s", count[true], count[false], left, out)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

// loaded are the eBPF programs of Cilium that this machine's kernel holds, by their numbers.
func loaded(t *testing.T) map[ebpf.ProgramID]string {
	t.Helper()
	names := map[ebpf.ProgramID]string{}
	for id := ebpf.ProgramID(0); ; {
		var err error
		if id, err = ebpf.ProgramGetNextID(id); errors.Is(err, fs.ErrNotExist) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // it has ended this moment
		}
		info, err := p.Info()
		_ = p.Close()
		if err == nil && (strings.HasPrefix(info.Name, "cil_") || strings.HasPrefix(info.Name, "tail_")) {
			names[id] = info.Name
		}
	}
}

// connects are the programs of a control group of version 2 that decide where its processes connect to.
func connects(t *testing.T, group string) int {
	t.Helper()
	f, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found, err := link.QueryPrograms(link.QueryOptions{Target: int(f.Fd()), Attach: ebpf.AttachCGroupInet4Connect})
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Programs)
}

// untouched says how the machine differs from what it was: also its file system of eBPF, and the root of its control groups.
func (c cluster) untouched(when string, before leak.Snapshot, restless []string) {
	c.t.Helper()
	if found := changes(c.t, c.folder, before, restless); len(found) > 0 {
		c.t.Errorf("%s: %s", when, strings.Join(found, "\n"))
	}
	if pinned, err := filepath.Glob("/sys/fs/bpf/*"); err != nil || slices.ContainsFunc(pinned, func(p string) bool { return strings.Contains(p, "cilium") || strings.Contains(p, "tc") }) {
		c.t.Errorf("%s: /sys/fs/bpf has %q, %v", when, pinned, err)
	}
	if n := connects(c.t, unified(c.t)); n > 0 {
		c.t.Errorf("%s: %d programs stand before the connections of the whole machine", when, n)
	}
}

// unified is where this machine's control groups of version 2 are.
func unified(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[2] == "cgroup2" {
			return fields[1]
		}
	}
	t.Fatal("no control groups of version 2 are mounted")
	return ""
}

// Calico serves pods in each of its modes, between which a cluster changes while it is up, and netdelta knows it.
func TestCalicoOnCluster(t *testing.T) {
	c := product(t, supervisor.Calico)
	before := snapshot(t, c.folder)
	must(t, c.call, "up", "--cni", "calico-vxlan")
	c.inMode()
	must(t, c.call, "switch", "--cni", "calico-routes", "--proxy", "nftables")
	c.inMode()
	if got := c.kubectl("", "-n", "kube-system", "get", "configmap", "kube-proxy", "-o", "yaml"); !strings.Contains(got, "mode: nftables") {
		t.Errorf("the cluster says of its kube-proxy %s", got)
	}
	if got := c.measured(supervisor.Calico); !strings.Contains(got, "calico (VXLAN CrossSubnet, encapsulated in vxlan between subnets only)") || !strings.Contains(got, "path proved in") {
		t.Errorf("netdelta says %s", got)
	}
	// A change that fails is taken back, and can be asked for again once what it needs is there.
	must(t, c.call, "service", "stop", "cp", "kube-apiserver")
	if _, err := c.call("switch", "--cni", "calico-vxlan"); err == nil || !strings.Contains(err.Error(), "calico-routes") {
		t.Errorf("a change without an API server gives %v", err)
	}
	must(t, c.call, "service", "start", "cp", "kube-apiserver")
	c.answers()
	must(t, c.call, "switch", "--cni", "calico-routes")
	c.becomes("10.96.100.1 80", true)
	if _, err := c.call("switch", "--cni", "bridge"); err == nil || !strings.Contains(err.Error(), "make cluster-up CNI=bridge") {
		t.Errorf("a change to another product gives %v", err)
	}
	c.untouched("while Calico is up", before, append(counted(), "control group "))
	must(t, c.call, "down")
	c.untouched("after the cluster was ended", before, counted())
}

// Cilium serves pods with and without encapsulation and kube-proxy, between which a cluster changes while it is up, and what it has in the
// kernel is the cluster's and ends with it.
func TestCiliumOnCluster(t *testing.T) {
	c := product(t, supervisor.Cilium)
	before, others := snapshot(t, c.folder), loaded(t)
	// held are the programs that were loaded since: another cluster may have its own.
	held := func() map[ebpf.ProgramID]string {
		all := loaded(t)
		for id := range others {
			delete(all, id)
		}
		return all
	}
	restless := append(counted(), "control group ")
	must(t, c.call, "up", "--cni", "cilium-vxlan")
	c.inMode()
	must(t, c.call, "switch", "--cni", "cilium-ebpf")
	c.inMode()
	if got := c.measured(supervisor.Cilium); !strings.Contains(got, "cilium (native)") || !strings.Contains(got, "path proved in") {
		t.Errorf("netdelta says %s", got)
	}
	if got := must(t, c.call, "status"); !strings.Contains(got, "kube-proxy none") || !strings.Contains(got, "policy of cilium") {
		t.Errorf("the status is %q", got)
	}
	groups, err := filepath.Glob(filepath.Join(unified(t), "netdelta-cluster-*", "w1"))
	if err != nil || !slices.ContainsFunc(groups, func(g string) bool { return connects(t, g) > 0 }) {
		t.Errorf("no program stands before the connections of w1's pods in %q, %v", groups, err)
	}
	c.untouched("while Cilium is up", before, restless)

	init, err := c.folder.NodeProcess("w1")
	if err != nil {
		t.Fatal(err)
	}
	parent, _ := processes(t)
	all := descendants(t, parent[init])
	if len(held()) == 0 {
		t.Error("the kernel holds no program of Cilium while it is up")
	}
	if err := unix.Kill(parent[init], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, require.Await(30*time.Second, "nothing of a supervisor that was killed is left", func() error {
		if processes, programs := left(t, all), held(); len(processes)+len(programs) > 0 {
			return fmt.Errorf("processes %v and programs %v are left", processes, programs)
		}
		return nil
	}))
	c.untouched("after the supervisor was killed", before, restless)
	must(t, c.call, "down")
	c.untouched("after the cluster was ended", before, counted())
}
