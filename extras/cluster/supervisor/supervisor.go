// Package supervisor brings a whole Kubernetes cluster up on this machine, in namespaces, and ends it.
//
// One process, the supervisor, is process 1 of a namespace of process numbers and holds everything else: the network namespaces
// have no names, mounts are not seen outside, and when it ends, however it does, the kernel ends all processes of the
// cluster with it. What outlives it are control groups, which the next up or down removes, and files below its folder.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"netdelta/extras/cluster/image"
	"netdelta/extras/cluster/node"
	"netdelta/extras/cluster/pki"
	"netdelta/internal/netns"
	"netdelta/testbed/kube/client"
)

// NodeVerb is the argument by which the supervisor starts its own program as process 1 of a node. The node's name follows.
const NodeVerb = "node-init"

// supervisor is what holds a cluster.
type supervisor struct {
	folder Folder
	config Config
	parts  string
	// product is the folder with the programs of the CNI's product; "" where it has none.
	product string
	tell    func(format string, arguments ...any)

	// adrift says that a change of the CNI failed, and the way back too, so that none is surely in effect.
	adrift bool

	secrets *secrets
	members []*member // the first is the control plane's
	api     *client.API
}

// member is a node of the cluster.
type member struct {
	name    string
	number  int // 0 is the control plane's
	address netip.Addr
	space   *netns.Namespace
	node    *node.Node
	pods    *net.IPNet // prefix of its pods, known once it is registered
	pods6   *net.IPNet // nil without IPv6
}

// bringUp brings everything up, and returns when pods can be made.
func (s *supervisor) bringUp(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"nodes", s.makeNodes},
		{"API server", s.startControlPlane},
		{"kubelets", s.register},
		{"name server", s.startDNS},
		{"network by " + string(s.config.CNI), func(ctx context.Context) error { return s.enterNetwork(ctx, s.config.CNI) }},
		{"kube-proxy by " + string(s.config.Proxy), s.startProxies},
		{"policies by " + string(s.config.Policy), func(ctx context.Context) error { return s.enterPolicy(ctx, s.config.Policy) }},
		{"ready", s.awaitReady},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		s.tell("%5.1f s  %s", time.Since(began).Seconds(), step.name)
	}
	return nil
}

// makeNodes makes the nodes, connected to each other, with a container runtime that has the base image.
func (s *supervisor) makeNodes(ctx context.Context) error {
	authority, err := pki.New(time.Now())
	if err != nil {
		return err
	}
	if s.secrets, err = newSecrets(authority); err != nil {
		return err
	}
	f, err := newFabric(s.config.IPv6)
	if err != nil {
		return err
	}
	if err := s.writeImage(); err != nil {
		return err
	}
	for number := range s.config.Workers + 1 {
		m := &member{name: nodeName(number), number: number, address: nodeAddress(number)}
		if m.space, err = f.attach(m.name, number); err != nil {
			return err
		}
		s.members = append(s.members, m)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range s.members {
		group.Go(func() error { return s.startNode(ctx, m) })
	}
	return group.Wait()
}

// writeImage writes the base image to where the nodes see it.
func (s *supervisor) writeImage() error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("%w: 'make setup' installs it", err)
	}
	folder := s.folder.path("nodes", "images")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return image.Write(filepath.Join(folder, "base.tar"), busybox)
}

// imagesFolder is where nodes see the archives of images.
const imagesFolder = "/opt/netdelta/images"

func (s *supervisor) startNode(ctx context.Context, m *member) error {
	cgroup, err := makeGroups(s.folder.Mark(), m.name)
	if err != nil {
		return err
	}
	files, err := s.secrets.nodeFiles(m.name, cgroup, s.config)
	if err != nil {
		return err
	}
	if m == s.members[0] {
		more, err := s.secrets.controlFiles()
		if err != nil {
			return err
		}
		files = append(files, more...)
	}
	binds := []node.Bind{
		{From: s.parts, To: node.PartsFolder, ReadOnly: true},
		{From: s.folder.path("nodes", "images"), To: imagesFolder, ReadOnly: true},
		{From: s.folder.path("nodes", "addresses"), To: sharedFolder},
	}
	for name, to := range map[string]string{
		"containerd": "/var/lib/containerd", "kubelet": "/var/lib/kubelet", "etcd": "/var/lib/etcd",
	} {
		binds = append(binds, node.Bind{From: s.folder.path("nodes", m.name, name), To: to})
	}
	binds = append(binds, node.Bind{From: s.folder.path("logs", m.name), To: node.LogFolder})
	for _, b := range binds {
		if err := os.MkdirAll(b.From, 0o700); err != nil {
			return err
		}
	}
	links, err := plugins(s.parts)
	if err != nil {
		return err
	}
	root := s.folder.path("nodes", m.name, "root")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	spec := node.Spec{
		Name: m.name, Root: root, Binds: binds, Links: links, Files: files,
		Memory: []string{"/var/lib/cni", "/var/log/pods", "/var/log/containers"},
	}
	if err := s.equip(m, &spec); err != nil {
		return err
	}
	m.node, err = node.Start(m.space, "/proc/self/exe", []string{NodeVerb, m.name}, os.Stderr, spec)
	if err != nil {
		return err
	}
	if err := s.start(m, serviceContainerd); err != nil {
		return err
	}
	if err := until(ctx, "containerd of "+m.name, func(context.Context) error {
		_, err := m.node.Run("ctr", "version")
		return err
	}); err != nil {
		return err
	}
	return m.load("base.tar")
}

// plugins are the links by which a node sees the CNI plugins of the machine, and those that were built.
func plugins(parts string) (map[string]string, error) {
	const machine = "/usr/lib/cni"
	entries, err := os.ReadDir(machine)
	if err != nil {
		return nil, fmt.Errorf("%w: 'make setup' installs the CNI plugins", err)
	}
	links := map[string]string{}
	for _, e := range entries {
		links[filepath.Join(cniPlugins, e.Name())] = filepath.Join(machine, e.Name())
	}
	for _, name := range []string{"flannel", "multus"} {
		if _, err := os.Stat(filepath.Join(parts, name)); err != nil {
			return nil, err
		}
		links[filepath.Join(cniPlugins, name)] = filepath.Join(node.PartsFolder, name)
	}
	return links, nil
}

// load has the node's container runtime take the images of an archive in imagesFolder.
func (m *member) load(archive string) error {
	_, err := m.node.Run("ctr", "-n", "k8s.io", "images", "import", filepath.Join(imagesFolder, archive))
	return err
}

// startControlPlane starts what decides, and has the API server reached from the machine.
func (s *supervisor) startControlPlane(ctx context.Context) error {
	control := s.members[0]
	if err := s.start(control, serviceEtcd, serviceAPI); err != nil {
		return err
	}
	at, err := forward(control.space, apiAddress())
	if err != nil {
		return err
	}
	file, err := s.secrets.authority.Kubeconfig("https://"+at, s.secrets.admin)
	if err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(file)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 100
	if s.api, err = client.New(config, nil); err != nil {
		return err
	}
	if err := until(ctx, "the API server", func(ctx context.Context) error {
		return s.api.REST.Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return err
	}
	if err := s.start(control, serviceManager, serviceScheduler); err != nil {
		return err
	}
	// It must not be found before the cluster answers.
	fresh := s.folder.Kubeconfig() + ".new"
	return errors.Join(os.WriteFile(fresh, file, 0o600), os.Rename(fresh, s.folder.Kubeconfig()))
}

// register starts the kubelets and waits until each node knows the prefix of its pods.
func (s *supervisor) register(ctx context.Context) error {
	if err := s.each(func(m *member) error { return s.start(m, serviceKubelet) }); err != nil {
		return err
	}
	return s.await(ctx, "node %s to be registered", func(ctx context.Context, m *member) error {
		n, err := s.api.Nodes.Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if n.Spec.PodCIDR == "" {
			return errors.New("it has no prefix for pods")
		}
		if _, m.pods, err = net.ParseCIDR(n.Spec.PodCIDR); err != nil || !s.config.IPv6 {
			return err
		}
		_, m.pods6, err = net.ParseCIDR(n.Spec.PodCIDRs[len(n.Spec.PodCIDRs)-1])
		return err
	})
}

// startProxies starts kube-proxy in each node and returns when services are in effect.
func (s *supervisor) startProxies(ctx context.Context) error {
	if s.config.Proxy == NoProxy {
		return nil
	}
	if err := s.each(func(m *member) error { return s.start(m, serviceProxy) }); err != nil {
		return err
	}
	return s.awaitProxies(ctx, s.config.Proxy)
}

// awaitReady waits until pods can be made.
func (s *supervisor) awaitReady(ctx context.Context) error {
	if err := s.await(ctx, "node %s to be ready", s.ready); err != nil {
		return err
	}
	return until(ctx, "the account of pods", func(ctx context.Context) error {
		_, err := s.api.ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// keepMounts has what is mounted from here on stay unseen by the machine, and shows process numbers as the supervisor counts them.
func keepMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to the cluster: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

const (
	// pause is how long until something is looked at again.
	pause = 100 * time.Millisecond
	// patience is how long anything may take to happen.
	patience = 2 * time.Minute
)

// each calls do for each node in turn, up to the first error.
func (s *supervisor) each(do func(*member) error) error {
	for _, m := range s.members {
		if err := do(m); err != nil {
			return err
		}
	}
	return nil
}

// await waits for check to find nothing missing on any node. What is waited for has %s in place of the node's name.
func (s *supervisor) await(ctx context.Context, what string, check func(context.Context, *member) error) error {
	return s.each(func(m *member) error {
		return until(ctx, strings.ReplaceAll(what, "%s", m.name), func(ctx context.Context) error { return check(ctx, m) })
	})
}

// until waits for check to find nothing missing. The error says what was waited for and what was missing last.
func until(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", time.Since(began).Round(time.Second), what, err)
		case <-time.After(pause):
		}
	}
}
