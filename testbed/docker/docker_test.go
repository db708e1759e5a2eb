package docker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/docker"
	"netdelta/testbed/docker/dockertest"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

func TestMain(m *testing.M) {
	os.Exit(testbedtest.Main(m, map[string]func() int{"holder": holder}))
}

// heldVariable names the program that containers are made of to a process of the test's.
const heldVariable = "NETDELTA_TEST_HELD"

// held builds the program that containers are made of.
func held(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "netdelta-agent")
	require.Program(t, "netdelta-agent", path)
	return path
}

// open is a driver on the daemon of the test.
func open(t *testing.T, program string) *docker.Driver {
	t.Helper()
	d, err := docker.New(t.Context(), lab.NewDriver(network.Catalogue()), docker.Options{Held: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := d.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	return d
}

// TestTestbed: an engine's networks pass the suite of all testbeds, each reaches its servers, and nothing is left of them: no container,
// no image, no device, rule or address of the machine.
func TestTestbed(t *testing.T) {
	program, before := held(t), devices(t)
	dockertest.Start(t)
	dockertest.Docker(t, "network", "create", "--ipv6", "--subnet", "fd00:77::/64", "six")
	dockertest.Docker(t, "network", "create", "--driver", "macvlan", "--opt", "parent=eth0", "--subnet", "10.9.0.0/24", "mine")
	dockertest.Docker(t, "swarm", "init", "--advertise-addr", "127.0.0.1")
	t.Cleanup(func() { dockertest.Docker(t, "swarm", "leave", "--force") })
	dockertest.Docker(t, "network", "create", "--driver", "overlay", "--attachable", "over")
	t.Run("suite", func(t *testing.T) {
		testbedtest.Run(t, testbedtest.Suite{
			Driver: open(t, program), Networks: []string{docker.Bridge, docker.Host, docker.Prefix + "six"}, OneNode: true,
		})
	})
	t.Run("networks", func(t *testing.T) {
		d := open(t, program)
		for _, n := range []string{docker.Host, docker.Bridge, docker.Published, docker.Proxied, docker.Prefix + "six", docker.Prefix + "mine", docker.Prefix + "over"} {
			reaches(t, d, testbed.Spec{Network: n})
		}
		reaches(t, d, testbed.Spec{Network: docker.Host, Family: result.IPv6})
		reaches(t, d, testbed.Spec{Network: docker.Prefix + "six", Family: result.IPv6})
		err := d.Supports(t.Context(), testbed.Spec{Network: docker.Bridge, Family: result.IPv6})
		if !errors.Is(err, testbed.ErrUnsupported) {
			t.Errorf("a network without IPv6: %v", err)
		}
		reaches(t, d, testbed.Spec{Network: "bridge"}) // a lab's
	})
	t.Run("refusals", func(t *testing.T) { refuses(t, open(t, program)) })
	if left := dockertest.Docker(t, "images", "--quiet"); left != "" {
		t.Errorf("images are left: %s", left)
	}
	if after := devices(t); !slices.Equal(before, after) {
		t.Errorf("the machine has the devices %q, and had %q before", after, before)
	}
}

// devices are the machine's own.
func devices(t *testing.T) (names []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

// reaches has a client exchange something with a server on a network, by UDP and TCP.
func reaches(t *testing.T, d *docker.Driver, spec testbed.Spec) {
	t.Helper()
	if err := d.Supports(t.Context(), spec); err != nil {
		t.Errorf("%s: %v", spec.Network, err)
		return
	}
	spec.Nodes, spec.PodsPerNode = 1, 2
	tb, err := d.Open(t.Context(), spec)
	if err != nil {
		t.Errorf("%s: %v", spec.Network, err)
		return
	}
	defer func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	}()
	pods := tb.Pods()
	client, server := testbedtest.StartPeer(t, pods[0]), testbedtest.StartPeer(t, pods[1])
	port, _ := pods[1].Ports()
	for _, protocol := range []string{"tcp", "udp"} {
		if err := server.Serve(protocol, port); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Exchange(protocol, tb.Endpoint(pods[0], pods[1], port), 64, 3); err != nil {
			t.Errorf("%s %s by %s: %v", spec.Network, spec.Family, protocol, err)
		}
	}
}

// refuses holds what the driver says of what can't be had.
func refuses(t *testing.T, d *docker.Driver) {
	for says, spec := range map[string]testbed.Spec{
		`did you mean "docker:mine"`: {Network: "docker:min"},
		"network in the container":   {Network: "docker:none"},
		"under a condition":          {Network: docker.Bridge, Conditions: result.Conditions{Policy: result.PolicyNFTables, PolicyRules: 10}},
		"under live swaps":           {Network: docker.Bridge, PodsOutlive: true},
		"a second machine":           {Network: docker.Bridge, Nodes: 2, PodsPerNode: 1},
		"links that netdelta has":    {Network: docker.Bridge, Nodes: 1, PodsPerNode: 1, Link: testbed.Link{Rate: 1e9}},
	} {
		err := d.Supports(t.Context(), spec)
		if spec.Nodes > 0 {
			_, err = d.Open(t.Context(), spec)
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: got error %v, want one that says %q", spec, err, says)
		}
	}
}

// TestPodman: Podman takes the same commands. It has no proxy, which is said.
func TestPodman(t *testing.T) {
	program := held(t)
	d, err := docker.New(t.Context(), lab.NewDriver(network.Catalogue()), docker.Options{Held: program, Program: dockertest.Podman(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{docker.Host, docker.Bridge, docker.Published} {
		reaches(t, d, testbed.Spec{Network: n})
	}
	if err := d.Supports(t.Context(), testbed.Spec{Network: docker.Proxied}); !errors.Is(err, testbed.ErrUnsupported) || !strings.Contains(err.Error(), "userland-proxy") {
		t.Errorf("a proxy: %v", err)
	}
	if err := d.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestNoEngine: where there is no engine to speak to, the error says which and what to do.
func TestNoEngine(t *testing.T) {
	labs := lab.NewDriver(network.Catalogue())
	_, err := docker.New(t.Context(), labs, docker.Options{Program: "/nonexistent/docker"})
	if err == nil || !strings.Contains(err.Error(), "--docker") {
		t.Errorf("without a program: %v", err)
	}
	silent := filepath.Join(t.TempDir(), "docker")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\necho 'Cannot connect to the Docker daemon at unix:///x. Is it running?' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = docker.New(t.Context(), labs, docker.Options{Program: silent})
	if err == nil || !strings.Contains(err.Error(), "start the daemon") {
		t.Errorf("without a daemon: %v", err)
	}
}

// holder opens a testbed and says so; then it waits to be killed.
func holder() int {
	d, err := docker.New(context.Background(), lab.NewDriver(network.Catalogue()), docker.Options{Held: os.Getenv(heldVariable)})
	if err == nil {
		_, err = d.Open(context.Background(), testbed.Spec{Network: docker.Bridge, Nodes: 1, PodsPerNode: 2})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("up")
	select {}
}

// TestKilled: of a program that is killed no container is left, without anybody's doing.
func TestKilled(t *testing.T) {
	program := held(t)
	dockertest.Start(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), testbedtest.Role("holder"), heldVariable+"="+program)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 200)
	if n, _ := out.Read(said); string(said[:n]) != "up\n" {
		t.Fatalf("the holder said %q", said[:n])
	}
	if n := len(strings.Fields(dockertest.Docker(t, "ps", "--quiet"))); n != 3 {
		t.Errorf("%d containers run, want one for each pod and one on the host", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	require.Eventually(t, 20*time.Second, "the containers of a program that was killed are gone", func() bool { return dockertest.Docker(t, "ps", "--all", "--quiet") == "" })
	dockertest.Docker(t, "image", "prune", "--all", "--force")
}
