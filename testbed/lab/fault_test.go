package lab_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

const nobody = 65534

// asNobody runs this binary in a role as a user without rights.
func asNobody(t *testing.T, role string, attr *syscall.SysProcAttr) (string, error) {
	t.Helper()
	require.Need(t, "root, in order to become another user", os.Geteuid() == 0)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "lab-test-*") //nolint:usetesting // nobody may not pass through a test's own directory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary := filepath.Join(dir, "lab.test")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(binary, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}
	cmd := exec.Command(binary)
	cmd.Env, cmd.SysProcAttr, cmd.Dir = []string{testbedtest.Role(role)}, attr, "/"
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestWithoutRights(t *testing.T) {
	out, err := asNobody(t, "reach", &syscall.SysProcAttr{})
	if err == nil {
		t.Fatalf("an ordinary user opened a lab: %s", out)
	}
	for _, want := range []string{"operation not permitted", "CAP_SYS_ADMIN", "run it as root"} {
		if !strings.Contains(out, want) {
			t.Errorf("the error %q does not say %q", out, want)
		}
	}
}

// An ordinary user has all rights needed in a user namespace of his own.
func TestUserNamespace(t *testing.T) {
	allowed, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	require.Need(t, "user namespaces (CONFIG_USER_NS)", err == nil && strings.TrimSpace(string(allowed)) != "0")
	out, err := asNobody(t, "reach", &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: nobody, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: nobody, Size: 1}},
		AmbientCaps: []uintptr{12, 21}, // CAP_NET_ADMIN, CAP_SYS_ADMIN
	})
	if err != nil || !strings.Contains(out, "networks") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestUnsupported(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	err := driver.Supports(t.Context(), testbed.Spec{Network: "ipvlan-l2", Family: result.IPv4})
	require.Need(t, "a kernel without ipvlan", err != nil)
	for range 2 {
		var unsupported *testbed.UnsupportedError
		if !errors.As(err, &unsupported) || !errors.Is(err, testbed.ErrUnsupported) {
			t.Fatalf("got error %v, want an UnsupportedError", err)
		}
		if unsupported.Feature != "network ipvlan-l2" || !strings.Contains(unsupported.Need, "CONFIG_IPVLAN") || !unsupported.InGuest || unsupported.Remedy() == "" {
			t.Errorf("got %+v", unsupported)
		}
		_, err = driver.Open(t.Context(), testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: "ipvlan-l2"})
	}
	for _, peers := range []int{0, 3} {
		err := driver.Supports(t.Context(), testbed.Spec{Network: "ipvlan-l2", Peers: testbed.Peers{Count: peers}})
		if err == nil || strings.Contains(err.Error(), "--testbed vm") != (peers == 0) || strings.Contains(err.Error(), "no database and no Ceph") != (peers > 0) && !strings.Contains(err.Error(), "modprobe") {
			t.Errorf("for %d pods that serve together: %v", peers, err)
		}
	}
	var unknown *network.UnknownError
	if err := driver.Supports(t.Context(), testbed.Spec{Network: "vxlna", Family: result.IPv4}); !errors.As(err, &unknown) || unknown.Nearest != "vxlan" {
		t.Errorf("an unknown network: got error %v", err)
	}
}

func TestOpenInterrupted(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	random := rand.New(rand.NewPCG(3, 4))
	interrupted := 0
	for range 60 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(12*time.Millisecond))))
		tb, err := driver.Open(ctx, testbed.Spec{Nodes: 3, PodsPerNode: 3, Network: "vxlan-routed"})
		cancel()
		if err != nil {
			interrupted++
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("interrupted: got error %v", err)
			}
			continue
		}
		if err := tb.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if interrupted == 0 {
		t.Error("not one of the openings was interrupted: the test shows nothing")
	}
	if found := leak.Own(); len(found) > 0 {
		t.Errorf("left behind: %q", found)
	}
}

// broken is a network whose plan can't be carried out to its end.
func broken() network.Network {
	n, err := network.Find(network.Catalogue(), "vxlan")
	if err != nil {
		panic(err)
	}
	base := n.Build
	n.Name = "broken"
	n.Build = func(t network.Topology) network.Plan {
		p := base(t)
		p.Ops = append(p.Ops, network.Enslave{Device: network.Device{In: network.InNode(0), Name: "nothing"}, Bridge: "br0"})
		return p
	}
	return n
}

func TestOpenFailsMidway(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver([]network.Network{broken()})
	_, err := driver.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: "broken"})
	if err == nil || !strings.Contains(err.Error(), "device nothing ") || !strings.Contains(err.Error(), "node0") {
		t.Errorf("got error %v", err)
	}
	if found := leak.Own(); len(found) > 0 {
		t.Errorf("left behind: %q", found)
	}
}

func TestSwapFailsAndIsMended(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(append(network.Catalogue(), broken()))
	tb, err := driver.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: "bridge", PodsOutlive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	witness := testbedtest.StartPeer(t, tb.Pods()[1])
	if err := tb.Swap(t.Context(), "broken"); err == nil {
		t.Fatal("swapped to a broken network")
	}
	if _, err := witness.Environment(); err != nil {
		t.Fatalf("the processes did not live through a swap that failed: %v", err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tb.Swap(interrupted, "routed"); !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted swap: got error %v", err)
	}
	if err := tb.Swap(t.Context(), "routed"); err != nil {
		t.Fatal(err)
	}
	if err := carry(t.Context(), tb); err != nil {
		t.Fatal(err)
	}
}

func TestPermissionErrorIsOne(t *testing.T) {
	err := error(&testbed.PermissionError{Doing: "x", Need: "y", Fix: "z", Err: syscall.EPERM})
	if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, syscall.EPERM) {
		t.Errorf("%v is no permission error", err)
	}
}

// The rate of the links bounds what goes through, in each direction.
func TestRate(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	const (
		rate  = 20e6 // bit/s
		size  = 100_000
		count = 25
	)
	tb, err := shared().Open(t.Context(), testbed.Spec{
		Nodes: 2, PodsPerNode: 1, Network: "bridge", Link: testbed.Link{Rate: rate},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	client, server := testbedtest.StartPeer(t, tb.Pods()[0]), testbedtest.StartPeer(t, tb.Pods()[1])
	port, _ := server.Pod.Ports()
	if err := server.Serve("tcp", port); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := client.Exchange("tcp", tb.Endpoint(client.Pod, server.Pod, port), size, count); err != nil {
		t.Fatal(err)
	}
	// Each direction carries count messages, of which the first one's worth may be saved up in the bucket.
	least := time.Duration(float64(size*(count-1)*8) / rate * float64(time.Second))
	if took := time.Since(began); took < least || took > 10*least {
		t.Errorf("%d messages of %d bytes took %s, want %s to %s", count, size, took, least, 10*least)
	}
}
