package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/extras/cluster/image"
	"netdelta/extras/cluster/supervisor"
	"netdelta/internal/leak"
	"netdelta/internal/require"
)

func TestMain(m *testing.M) {
	// The tests start this program as a supervisor and as nodes, as the program starts itself.
	if len(os.Args) > 1 && (os.Args[1] == superviseVerb || os.Args[1] == supervisor.NodeVerb) {
		main()
		return
	}
	os.Exit(leak.Main(m))
}

// parts skips the test unless the programs of a cluster are there.
func parts(t *testing.T) string {
	t.Helper()
	require.Namespaces(t)
	folder := os.Getenv(partsVariable)
	require.Need(t, "the programs of a cluster (scripts/kubernetes.sh, "+partsVariable+")", folder != "")
	return folder
}

// patience is how long anything may take on a busy machine.
const patience = 5 * time.Minute

// own begins a test of a cluster of its own, next to whatever cluster is up: the folder, and a call of this program for it.
func own(t *testing.T) (supervisor.Folder, func(arguments ...string) (string, error)) {
	t.Helper()
	parts(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	folder, err := supervisor.Own()
	if err != nil {
		t.Fatal(err)
	}
	call := func(arguments ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var out, complaints bytes.Buffer
		err := run(ctx, arguments, &out, &complaints)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, complaints.String())
		}
		return out.String(), err
	}
	t.Cleanup(func() {
		if _, err := call("down"); err != nil {
			t.Error(err)
		}
	})
	return folder, call
}

// must calls the program and fails the test if that fails.
func must(t *testing.T, call func(...string) (string, error), arguments ...string) string {
	t.Helper()
	out, err := call(arguments...)
	if err != nil {
		t.Fatalf("cluster %s: %v", strings.Join(arguments, " "), err)
	}
	return out
}

// snapshot is the state of the machine that no cluster may change: what leak.Host looks at, mounts, settings, and the control groups of
// a cluster of the test's own.
func snapshot(t *testing.T, own supervisor.Folder) leak.Snapshot {
	t.Helper()
	s, err := leak.Host()
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		s["mount "+line] = ""
	}
	groups, err := filepath.Glob("/sys/fs/cgroup/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if info, err := os.Stat(g); err == nil && info.IsDir() && strings.Contains(g, own.Mark()) {
			s["control group "+g] = ""
		}
	}
	for _, part := range []string{"kernel", "vm", "fs"} {
		files, err := filepath.Glob("/proc/sys/" + part + "/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if value, err := os.ReadFile(f); err == nil {
				s["setting "+f] = strings.TrimSpace(string(value))
			}
		}
	}
	return s
}

// changes lists how the machine differs from what it was, but for what changes by itself.
func changes(t *testing.T, own supervisor.Folder, before leak.Snapshot, restless []string) []string {
	t.Helper()
	return slices.DeleteFunc(leak.Diff(before, snapshot(t, own)), func(line string) bool {
		return slices.ContainsFunc(restless, func(r string) bool { return strings.HasPrefix(line, r) })
	})
}

// counted are settings that count something.
func counted() []string {
	var all []string
	for _, name := range []string{"fs/file-nr", "fs/inode-nr", "fs/inode-state", "fs/dentry-state", "fs/aio-nr", "kernel/ns_last_pid", "kernel/perf_event_max_sample_rate"} {
		all = append(all, "setting /proc/sys/"+name)
	}
	return all
}

// descendants are the processes below a process, itself among them, by when they started: a number alone can become another's.
func descendants(t *testing.T, pid int) map[int]string {
	t.Helper()
	parent, started := processes(t)
	all := map[int]string{pid: started[pid]}
	for grown := true; grown; {
		grown = false
		for p, above := range parent {
			if _, known := all[p]; known {
				continue
			}
			if _, below := all[above]; below {
				all[p], grown = started[p], true
			}
		}
	}
	return all
}

func processes(t *testing.T) (parent map[int]int, started map[int]string) {
	t.Helper()
	parent, started = map[int]int{}, map[int]string{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if parent[pid], err = strconv.Atoi(fields[1]); err != nil {
			t.Fatal(err)
		}
		started[pid] = fields[19]
	}
	return parent, started
}

// left lists the given processes that still run.
func left(t *testing.T, of map[int]string) []int {
	t.Helper()
	_, started := processes(t)
	var all []int
	for pid, since := range of {
		if now, ok := started[pid]; ok && now == since {
			all = append(all, pid)
		}
	}
	return all
}

// A cluster leaves the machine as it was, while it is up, when it is ended, and when its supervisor is killed.
func TestMachineIsLeftAloneOnCluster(t *testing.T) {
	folder, call := own(t)
	before := snapshot(t, folder)
	// A cluster that is up has control groups; nothing else of the machine may differ meanwhile.
	restless := append(counted(), "control group ")

	must(t, call, "up")
	if found := changes(t, folder, before, restless); len(found) > 0 {
		t.Errorf("while the cluster is up: %s", strings.Join(found, "\n"))
	}
	if _, err := os.Stat(folder.Kubeconfig()); err != nil {
		t.Error(err)
	}
	init, err := folder.NodeProcess("w1")
	if err != nil {
		t.Fatal(err)
	}
	parent, _ := processes(t)
	all := descendants(t, parent[init])
	if len(all) < 15 {
		t.Fatalf("the supervisor has only %d processes below it", len(all))
	}
	if err := unix.Kill(parent[init], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, require.Await(30*time.Second, "nothing of a supervisor that was killed is left", func() error {
		if processes := left(t, all); len(processes) > 0 {
			return fmt.Errorf("processes %v are left", processes)
		}
		return nil
	}))
	if found := changes(t, folder, before, restless); len(found) > 0 {
		t.Errorf("after the supervisor was killed: %s", strings.Join(found, "\n"))
	}
	if _, err := call("status"); !errors.Is(err, supervisor.ErrDown) {
		t.Errorf("the status of a killed cluster is %v", err)
	}

	// A new one takes away what the killed one left, and down takes away its own.
	must(t, call, "up", "--workers", "1", "--cni", "flannel-vxlan", "--proxy", "nftables", "--policy", "kube-network-policies")
	if got := must(t, call, "status"); !strings.Contains(got, "cni flannel-vxlan, kube-proxy nftables, workers 1") || !strings.Contains(got, "policy kube-network-policies") {
		t.Errorf("the status is %q", got)
	}
	must(t, call, "switch", "--policy", "none")
	if got := must(t, call, "status"); !strings.Contains(got, "policy none") {
		t.Errorf("the status is %q", got)
	}
	must(t, call, "down")
	if found := changes(t, folder, before, counted()); len(found) > 0 {
		t.Errorf("after the cluster was ended: %s", strings.Join(found, "\n"))
	}
	if names, err := filepath.Glob(string(folder) + "/*"); err != nil || len(names) != 2 {
		t.Errorf("the folder has %q, want the lock and the logs (%v)", names, err)
	}
	must(t, call, "down") // of nothing
}

// pods are two that speak to each other, and a service.
const pods = `
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  nodeName: w1
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "` + image.Reference + `", imagePullPolicy: Never}]
---
apiVersion: v1
kind: Pod
metadata: {name: server, labels: {app: server}}
spec:
  nodeName: w2
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: "` + image.Reference + `"
    imagePullPolicy: Never
    args:
    - sh
    - -c
    - |
      mkdir /tmp/cgi-bin
      printf '#!/bin/sh\necho\necho reached by $REMOTE_ADDR\n' > /tmp/cgi-bin/who
      chmod +x /tmp/cgi-bin/who
      exec httpd -f -p 8080 -h /tmp
---
apiVersion: v1
kind: Service
metadata: {name: server}
spec: {type: NodePort, clusterIP: 10.96.100.1, selector: {app: server}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
`

// Pods reach each other and services under every CNI and every kube-proxy, as themselves but by way of another node's port; a node's programs can be stopped and started.
func TestNetworksOnCluster(t *testing.T) {
	folder, call := own(t)
	must(t, call, "up")
	kubectl := func(arguments ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(parts(t), "kubectl"), append([]string{"--kubeconfig", folder.Kubeconfig()}, arguments...)...)
		cmd.Stdin = strings.NewReader(pods)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, c := range []struct{ cni, proxy, mtu string }{
		{"bridge", "iptables", "1500"},
		{"flannel-vxlan", "iptables", "1450"},
		{"flannel-host-gw", "nftables", "1500"},
		{"flannel-vxlan", "nftables", "1450"},
		{"bridge", "iptables", "1500"},
	} {
		t.Run(c.cni+"/"+c.proxy, func(t *testing.T) {
			must(t, call, "switch", "--cni", c.cni, "--proxy", c.proxy)
			kubectl("apply", "-f", "-")
			kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s")
			if got := kubectl("exec", "client", "--", "cat", "/sys/class/net/eth0/mtu"); got != c.mtu {
				t.Errorf("the MTU of a pod is %s, want %s", got, c.mtu)
			}
			// The server listens for both families, and writes addresses so.
			client := kubectl("get", "pod", "client", "-o", "jsonpath={.status.podIP}")
			for _, c := range []struct{ at, want string }{
				{kubectl("get", "pod", "server", "-o", "jsonpath={.status.podIP}") + " 8080", "reached by [::ffff:" + client + "]"},
				{"10.96.100.1 80", "reached by [::ffff:" + client + "]"},
				{"10.77.0.11 30080", "reached by "},
			} {
				// A shell says of what it waits for that it was terminated.
				const ask = `exec 2>/dev/null
for i in $(seq 100); do
	printf 'GET /cgi-bin/who HTTP/1.0\r\n\r\n' | timeout 5 nc %s | grep reached && exit
	sleep 0.1
done; exit 1`
				if got := kubectl("exec", "client", "--", "sh", "-c", fmt.Sprintf(ask, c.at)); !strings.HasPrefix(got, c.want) {
					t.Errorf("%s answers %q, want %q", c.at, got, c.want)
				}
			}
			kubectl("delete", "-f", "-")
		})
	}
	must(t, call, "service", "restart", "cp", "kube-apiserver")
	must(t, call, "service", "stop", "w2", "kubelet")
	if _, err := call("service", "stop", "w2", "kubelet"); err == nil {
		t.Error("a kubelet was stopped twice")
	}
	must(t, call, "service", "start", "w2", "kubelet")
	if _, err := call("service", "stop", "w2", "kublet"); err == nil || !strings.Contains(err.Error(), " kubelet?") {
		t.Errorf("a service that is none gives %v", err)
	}
	if _, err := call("node", "w7", "true"); err == nil || !strings.Contains(err.Error(), "w7") {
		t.Errorf("a node that is none gives %v", err)
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		arguments, want string
	}{
		{"", "wrong arguments"},
		{"swich --cni bridge", "did you mean switch?"},
		{"switch", "wrong arguments"},
		{"switch --cni brige", "did you mean bridge?"},
		{"switch --policy calico", "it is one of none, kube-network-policies"},
		{"switch --proxy ipvs", "it is one of iptables, nftables, none"},
		{"up --cni cilium-native", "NETDELTA_CILIUM does not say where the programs of cilium are: use 'make cluster-up CNI=cilium-native'"},
		{"switch --cni bridge", "make cluster-up"},
		{"up --workers 99", "from 1 to 9"},
		{"service stop w1", "wrong arguments"},
		{"service halt w1 kubelet", "unknown order"},
		{"node w1", "wrong arguments"},
		{"node w1 true", "make cluster-up"},
		{"status", "make cluster-up"},
	} {
		t.Run(c.arguments, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv(partsVariable, "/nowhere")
			t.Setenv(productVariable(supervisor.Cilium), "")
			var out, complaints bytes.Buffer
			err := run(context.Background(), strings.Fields(c.arguments), &out, &complaints)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
