// Command cluster brings a real Kubernetes cluster up on this machine, for tests and for trying things out, and ends it: a control
// plane and workers in namespaces, see docs/cluster.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"netdelta/extras/cluster/image"
	"netdelta/extras/cluster/node"
	"netdelta/extras/cluster/supervisor"
	"netdelta/internal/suggest"
)

const usage = `usage: cluster VERB
  up [--cni bridge|flannel-vxlan|flannel-host-gw|calico-vxlan|calico-routes|calico-bgp|
      cilium-vxlan|cilium-native|cilium-ebpf]
     [--proxy iptables|nftables] [--workers N] [--ipv6] [--multus on|off] [--policy none|kube-network-policies]
                                   bring it up; prints the kubeconfig's path
  down                             end it
  status                           say what it is
  switch [--cni C] [--proxy P] [--multus M] [--policy E]
                                   change it; returns when the change is in effect
  load ARCHIVE                     give the images of an archive to all nodes
  programs [--netdelta PATH] [ARCHIVE]
                                   give all nodes an image of the programs that workloads run, of this machine's packages, and of a
                                   netdelta; or only write it
  service stop|kill|start|restart NODE SERVICE
                                   what faults are made of
  node NODE COMMAND...             run a command in a node
`

func main() { os.Exit(exit()) }

// exit runs the program and returns its exit status.
func exit() int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer cancel()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, errUsage) {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %v\n", err)
		return 1
	}
	return 0
}

var errUsage = errors.New("wrong arguments")

// superviseVerb is the argument by which this program starts itself as a supervisor.
const superviseVerb = "supervise"

func run(ctx context.Context, arguments []string, out, complaints io.Writer) error {
	if len(arguments) == 0 {
		return errUsage
	}
	verb, arguments := arguments[0], arguments[1:]
	if verb == supervisor.NodeVerb {
		return node.Main(os.Stdin, os.Stdout)
	}
	if verb == superviseVerb {
		if len(arguments) != 4 {
			return errUsage
		}
		return supervisor.Run(supervisor.Folder(arguments[0]), arguments[1], arguments[2], arguments[3], os.NewFile(3, "told"))
	}
	folder, err := supervisor.Own()
	if err != nil {
		return err
	}
	verbs := map[string]func() error{
		"up":       func() error { return up(ctx, folder, arguments, out, complaints) },
		"down":     func() error { return supervisor.Down(folder) },
		"status":   func() error { return status(folder, out) },
		"switch":   func() error { return change(folder, arguments, complaints) },
		"load":     func() error { return exactly(1, arguments, func(a []string) error { return folder.Load(a[0]) }) },
		"programs": func() error { return programs(folder, arguments, out, complaints) },
		"service": func() error {
			return exactly(3, arguments, func(a []string) error { return folder.Service(a[0], a[1], a[2]) })
		},
		"node": func() error { return enter(folder, arguments) },
	}
	do, ok := verbs[verb]
	if !ok {
		if near, ok := suggest.Nearest(verb, slices.Sorted(maps.Keys(verbs))); ok {
			return fmt.Errorf("unknown verb %q: did you mean %s?", verb, near)
		}
		return errUsage
	}
	return do()
}

// flags reads what a cluster shall be; "" and 0 where nothing is said.
func flags(verb string, arguments []string, complaints io.Writer) (supervisor.Config, error) {
	set := flag.NewFlagSet("cluster "+verb, flag.ContinueOnError)
	set.SetOutput(complaints)
	c := supervisor.Flags(set)
	if err := set.Parse(arguments); err != nil || set.NArg() > 0 {
		return *c, errUsage
	}
	return *c, c.Known()
}

// partsVariable is the environment variable with the folder of the cluster's programs; scripts/kubernetes.sh prints it.
const partsVariable = "NETDELTA_KUBERNETES"

// productVariable is the environment variable with the folder of a product's programs.
func productVariable(p supervisor.Product) string { return "NETDELTA_" + strings.ToUpper(string(p)) }

func up(ctx context.Context, f supervisor.Folder, arguments []string, out, complaints io.Writer) error {
	c, err := flags("up", arguments, complaints)
	if err != nil {
		return err
	}
	parts := os.Getenv(partsVariable)
	if parts == "" {
		return fmt.Errorf("%s does not say where the programs of a cluster are: use 'make cluster-up'", partsVariable)
	}
	product := ""
	if p := c.CNI.Product(); p != supervisor.NoProduct {
		if product = os.Getenv(productVariable(p)); product == "" {
			return fmt.Errorf("%s does not say where the programs of %s are: use 'make cluster-up CNI=%s'", productVariable(p), p, c.CNI)
		}
	}
	if err := supervisor.Up(ctx, f, c, []string{superviseVerb, string(f), parts, product}, complaints); err != nil {
		return err
	}
	fmt.Fprintln(out, f.Kubeconfig())
	return nil
}

func status(f supervisor.Folder, out io.Writer) error {
	c, err := f.Status()
	if err != nil {
		return err
	}
	policy := string(c.Policy)
	if p := c.CNI.Product(); p != supervisor.NoProduct {
		policy = "of " + string(p)
	}
	fmt.Fprintf(out, "up: cni %s, kube-proxy %s, workers %d, IPv6 %t, Multus %s, policy %s\nkubeconfig: %s\n", c.CNI, c.Proxy, c.Workers, c.IPv6, c.Multus, policy, f.Kubeconfig())
	return nil
}

func change(f supervisor.Folder, arguments []string, complaints io.Writer) error {
	c, err := flags("switch", arguments, complaints)
	if err != nil {
		return err
	}
	if c.Workers != 0 || c.IPv6 || c == (supervisor.Config{}) {
		return errUsage
	}
	return f.Switch(c)
}

// exactly calls do with the arguments, of which there must be so many.
func exactly(count int, arguments []string, do func([]string) error) error {
	if len(arguments) != count {
		return errUsage
	}
	return do(arguments)
}

// enter becomes a command in a node.
func enter(f supervisor.Folder, arguments []string) error {
	if len(arguments) < 2 {
		return errUsage
	}
	pid, err := f.NodeProcess(arguments[0])
	if err != nil {
		return err
	}
	program, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	command := append([]string{"nsenter", "--target", strconv.Itoa(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--"}, arguments[1:]...)
	if err := syscall.Exec(program, command, os.Environ()); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return nil
}

// programs makes the image of the programs that workloads run, and gives it to all nodes, or leaves it in an archive.
func programs(f supervisor.Folder, arguments []string, out, complaints io.Writer) (err error) {
	set := flag.NewFlagSet("cluster programs", flag.ContinueOnError)
	set.SetOutput(complaints)
	netdelta := set.String("netdelta", "", "a netdelta that the image holds, too")
	if err := set.Parse(arguments); err != nil || set.NArg() > 1 {
		return errUsage
	}
	arguments = set.Args()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("find busybox: %w; 'make setup' installs it", err)
	}
	var archive string
	if len(arguments) == 1 {
		archive = arguments[0]
	} else {
		if _, err := f.Status(); err != nil {
			return err
		}
		folder, err := os.MkdirTemp("", "netdelta-programs-*")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		archive = filepath.Join(folder, "programs.tar")
	}
	lacking, err := image.WritePrograms(archive, busybox, *netdelta)
	if err != nil {
		return err
	}
	if len(lacking) > 0 {
		fmt.Fprintf(out, "without %s, which this machine lacks: 'make setup' installs them\n", strings.Join(lacking, " "))
	}
	if len(arguments) == 0 {
		if err := f.Load(archive); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, image.ProgramsReference)
	return nil
}
