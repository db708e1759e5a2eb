// Command cluster brings a real Kubernetes cluster up on this machine, for tests and for trying things out, and ends it: a control
// plane and workers in namespaces, see docs/cluster.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"netdelta/internal/suggest"
	"netdelta/extras/cluster/node"
	"netdelta/extras/cluster/supervisor"
)

const usage = `usage: cluster VERB
  up [--cni bridge|flannel-vxlan|flannel-host-gw] [--proxy iptables|nftables] [--workers N] [--ipv6]
     [--multus on|off] [--policy none|kube-network-policies]
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
		return supervise(arguments)
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
		"load":     func() error { return load(folder, arguments) },
		"programs": func() error { return programs(folder, arguments, out, complaints) },
		"service":  func() error { return service(folder, arguments) },
		"node":     func() error { return enter(folder, arguments) },
	}
	do, ok := verbs[verb]
	if !ok {
		var names []string
		for name := range verbs {
			names = append(names, name)
		}
		if near, ok := suggest.Nearest(verb, names); ok {
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
	cni := set.String("cni", "", "how pods reach each other: bridge, flannel-vxlan, flannel-host-gw")
	proxy := set.String("proxy", "", "how services reach pods: iptables, nftables")
	workers := set.Int("workers", 0, "nodes beside the control plane's")
	policy := set.String("policy", "", "what enforces NetworkPolicy objects: none, kube-network-policies")
	multus := set.String("multus", "", "secondary networks of pods: on, off")
	six := set.Bool("ipv6", false, "addresses of both families (with the CNI bridge)")
	if err := set.Parse(arguments); err != nil || set.NArg() > 0 {
		return supervisor.Config{}, errUsage
	}
	c := supervisor.Config{Workers: *workers, IPv6: *six}
	var err error
	if *cni != "" {
		if c.CNI, err = supervisor.ParseCNI(*cni); err != nil {
			return c, err
		}
	}
	if *proxy != "" {
		if c.Proxy, err = supervisor.ParseProxy(*proxy); err != nil {
			return c, err
		}
	}
	if *multus != "" {
		if c.Multus, err = supervisor.ParseMultus(*multus); err != nil {
			return c, err
		}
	}
	if *policy != "" {
		c.Policy, err = supervisor.ParsePolicy(*policy)
	}
	return c, err
}

// Defaults of a cluster.
const (
	defaultCNI     = supervisor.Bridge
	defaultProxy   = supervisor.IPTables
	defaultMultus  = supervisor.MultusOff
	defaultPolicy  = supervisor.NoPolicy
	defaultWorkers = 2
)

// partsVariable is the environment variable with the folder of the cluster's programs; scripts/kubernetes.sh prints it.
const partsVariable = "NETDELTA_KUBERNETES"

func up(ctx context.Context, f supervisor.Folder, arguments []string, out, complaints io.Writer) error {
	c, err := flags("up", arguments, complaints)
	if err != nil {
		return err
	}
	if c.Workers == 0 {
		c.Workers = defaultWorkers
	}
	parts := os.Getenv(partsVariable)
	if parts == "" {
		return fmt.Errorf("%s does not say where the programs of a cluster are: use 'make cluster-up'", partsVariable)
	}
	if _, err := f.Status(); errors.Is(err, supervisor.ErrDown) {
		c.CNI, c.Proxy = supervisor.CNI(or(string(c.CNI), string(defaultCNI))), supervisor.Proxy(or(string(c.Proxy), string(defaultProxy)))
		c.Multus = supervisor.Multus(or(string(c.Multus), string(defaultMultus)))
		c.Policy = supervisor.Policy(or(string(c.Policy), string(defaultPolicy)))
	}
	self := []string{superviseVerb, string(f), string(c.CNI), string(c.Proxy), strconv.Itoa(c.Workers), parts, strconv.FormatBool(c.IPv6), string(c.Multus), string(c.Policy)}
	if err := supervisor.Up(ctx, f, c, self, complaints); err != nil {
		return err
	}
	fmt.Fprintln(out, f.Kubeconfig())
	return nil
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func supervise(arguments []string) error {
	if len(arguments) != 8 {
		return errUsage
	}
	workers, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	six, err := strconv.ParseBool(arguments[5])
	if err != nil {
		return err
	}
	c := supervisor.Config{CNI: supervisor.CNI(arguments[1]), Proxy: supervisor.Proxy(arguments[2]), Workers: workers, IPv6: six, Multus: supervisor.Multus(arguments[6]), Policy: supervisor.Policy(arguments[7])}
	return supervisor.Run(supervisor.Folder(arguments[0]), c, arguments[4], os.NewFile(3, "told"))
}

func status(f supervisor.Folder, out io.Writer) error {
	c, err := f.Status()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "up: cni %s, kube-proxy %s, workers %d, IPv6 %t, Multus %s, policy %s\nkubeconfig: %s\n", c.CNI, c.Proxy, c.Workers, c.IPv6, c.Multus, c.Policy, f.Kubeconfig())
	return nil
}

func change(f supervisor.Folder, arguments []string, complaints io.Writer) error {
	c, err := flags("switch", arguments, complaints)
	if err != nil {
		return err
	}
	if c.Workers != 0 || c.IPv6 || c.CNI == "" && c.Proxy == "" && c.Multus == "" && c.Policy == "" {
		return errUsage
	}
	return f.Switch(c.CNI, c.Proxy, c.Multus, c.Policy)
}

func load(f supervisor.Folder, arguments []string) error {
	if len(arguments) != 1 {
		return errUsage
	}
	return f.Load(arguments[0])
}

func service(f supervisor.Folder, arguments []string) error {
	if len(arguments) != 3 {
		return errUsage
	}
	return f.Service(arguments[0], arguments[1], arguments[2])
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
