package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"netdelta/internal/gather"
	report "netdelta/report/cluster"
	"netdelta/report/ui"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/survey"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/rootless"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
)

// What --rbac can print: what runs take, or what the doctor reads as well.
const (
	rbacRuns = "runs"
	rbacAll  = "all"
)

// addCluster adds the doctor's flags that are about a cluster.
func (o *doctorOptions) addCluster(f *pflag.FlagSet) {
	o.clusterFlags.add(f)
	o.flags.StringVar(&o.rbac, "rbac", "", "with --testbed kubernetes: print only the manifest that grants the rights that runs take, or all, with those that only the doctor reads by")
	o.flags.Lookup("rbac").NoOptDefVal = rbacRuns
	o.flags.StringVar(&o.to, "for", "", "with --rbac: whom the rights are for, a user's name, group:NAME or account:NAME of the namespace (default: who asks)")
	o.flags.BoolVar(&o.pods.NodeAgent, "node-agent", false, "with --testbed kubernetes: look at the devices of nodes as well, by a pod on each, and say what node agents take")
	o.flags.StringVar(&o.pods.Image, "image", "", "image with netdelta in it: a pod of it on each node tries whether packets get from pod to pod, and is taken away again")
	o.flags.StringVar(&o.pods.BaseImage, "base-image", "", "in place of --image: any image with a shell, into which netdelta is streamed")
	o.flags.StringVar((*string)(&o.pods.QoS), "qos", "", "class of service of the pods that are judged: guaranteed, burstable or best-effort (default burstable)")
	addPodSpec(o.flags, &o.pods.PodSpec)
	f.AddFlagSet(o.flags)
}

// checkCluster refuses flags that do not go together on a cluster.
func (o doctorOptions) checkCluster() error {
	switch {
	case o.guest:
		return usageError{fmt.Errorf("--guest is about this machine; leave it away with --testbed %s", kubeTestbed)}
	case o.rbac != "" && o.rbac != rbacRuns && o.rbac != rbacAll:
		return usageError{fmt.Errorf("--rbac=%s: need %s or %s", o.rbac, rbacRuns, rbacAll)}
	case o.to != "" && o.rbac == "":
		return usageError{errors.New("--for goes with --rbac")}
	case o.pods.NodeAgent && o.rbac == "" && o.pods.Image == "" && o.pods.BaseImage == "":
		return usageError{errors.New("--node-agent puts a pod on each node: give --image REF, or --base-image REF, any image with a shell")}
	}
	return nil
}

// surveyOptions say how far the doctor looks: with an image by pods of its own, which try the ways between nodes, and are node agents where
// these are asked for.
func (o doctorOptions) surveyOptions(cluster *kube.Cluster) (survey.Options, error) {
	options := survey.Options{Pods: o.pods}
	if o.pods.Image == "" && o.pods.BaseImage == "" {
		return options, nil
	}
	driver, err := kube.NewDriver(cluster, options.Pods)
	if err != nil {
		return options, usageError{err}
	}
	options.Try = wayTrier(driver)
	if !o.pods.NodeAgent {
		return options, nil
	}
	agents, err := kube.NewDriver(cluster, options.Pods) // a run of its own: each removes all that is its own
	if err != nil {
		return options, usageError{err}
	}
	options.Inspect = inspector(agents)
	return options, nil
}

// examineCluster looks at the cluster that a kubeconfig names, and says what is missing and what it means.
func examineCluster(ctx context.Context, env *environment, o doctorOptions) error {
	if err := o.checkCluster(); err != nil {
		return err
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	if o.rbac != "" {
		return env.printRBAC(ctx, cluster, o)
	}
	options, err := o.surveyOptions(cluster)
	if err != nil {
		return err
	}
	found, err := survey.Look(ctx, cluster, options)
	if err != nil {
		return err
	}
	findings := survey.Judge(found)
	if o.json {
		err = report.WriteJSON(env.out, report.Document{Survey: found, Findings: findings})
	} else {
		err = report.WriteText(env.out, report.Document{Survey: found, Findings: findings}, ui.Detect(env.terminal, env.getenv))
	}
	if err != nil {
		return err
	}
	switch n := survey.Lacks(findings); n {
	case 0:
		return nil
	case 1:
		return withStatus(exitFailed, errors.New("a run on this cluster lacks something that it needs"))
	default:
		return withStatus(exitFailed, fmt.Errorf("a run on this cluster lacks %d things that it needs", n))
	}
}

// printRBAC prints the manifest that grants the user what is needed.
func (env *environment) printRBAC(ctx context.Context, cluster *kube.Cluster, o doctorOptions) error {
	asks, err := survey.Who(ctx, cluster)
	if errors.Is(err, kube.ErrUnreachable) {
		return err
	}
	who := survey.Subject(asks, cluster.Namespace)
	if o.to != "" {
		if who, err = survey.For(o.to, cluster.Namespace); err != nil {
			return usageError{fmt.Errorf("--for: %w", err)}
		}
	}
	// Where the API server does not tell who asks, an account of the namespace is bound.
	return survey.RBAC(env.out, who, cluster.Namespace, o.pods.NodeAgent, o.rbac == rbacAll)
}

// Bounds of looking at nodes: more would tell little else, and each takes a pod.
const (
	mostInspected = 32
	inspectAtOnce = 8
)

// inspector looks at nodes by an agent on each, and takes the agents away again. What it saw of some nodes is told even where others
// could not be seen.
func inspector(driver *kube.Driver) func(context.Context, []string) (map[string][]testbed.Interface, error) {
	return func(ctx context.Context, nodes []string) (map[string][]testbed.Interface, error) {
		var mu sync.Mutex
		var errs []error
		seen := map[string][]testbed.Interface{}
		var group errgroup.Group
		group.SetLimit(inspectAtOnce)
		for _, node := range nodes[:min(len(nodes), mostInspected)] {
			group.Go(func() error {
				devices, err := inspectNode(ctx, driver, node)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, fmt.Errorf("node %s: %w", node, err))
					return nil
				}
				seen[node] = devices
				return nil
			})
		}
		_ = group.Wait() // their errors are gathered
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		return seen, errors.Join(append(errs, driver.Close(ctx))...)
	}
}

// wayTrier tries the ways between pods on nodes, and takes the pods away again.
func wayTrier(driver *kube.Driver) func(context.Context, []string) (kube.Ways, error) {
	return func(ctx context.Context, nodes []string) (kube.Ways, error) {
		ways, err := driver.TryWays(ctx, nodes[:min(len(nodes), mostInspected)])
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		return ways, errors.Join(err, driver.Close(ctx))
	}
}

func inspectNode(ctx context.Context, driver *kube.Driver, node string) ([]testbed.Interface, error) {
	agent, err := driver.NodeAgent(ctx, node)
	if err != nil {
		return nil, err
	}
	if agent == nil {
		return nil, errors.New("there is no node agent")
	}
	return agent.Describe(ctx)
}

// guestMend is what to do about what was not tried yet.
const guestMend = "netdelta doctor --guest boots one and looks"

// lookInside boots a guest and has the doctor look around in it. What it finds is kept.
func (env *environment) lookInside(ctx context.Context) (i image.Image, found []finding, err error) {
	if i, err = env.buildImage(ctx, false); err != nil {
		return i, nil, err
	}
	m := vm.Machine{}
	if !i.Missing(image.Cards) {
		m.Cards = 2 // for networks that need a card with virtual functions
	}
	g, err := vm.Boot(ctx, i, m)
	if err != nil {
		return i, nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	var said bytes.Buffer
	p, err := g.Exec(ctx, vm.Command{Path: "/netdelta", Args: []string{"doctor", "--json"}, Env: []string{lab.CardsVariable + "=" + lab.AllCards}, Stdout: &said})
	if err != nil {
		return i, nil, err
	}
	if err := errors.Join(p.CloseWrite(), p.Wait()); err != nil {
		return i, nil, fmt.Errorf("look around in a guest: %w", err)
	}
	if err := json.Unmarshal(said.Bytes(), &found); err != nil {
		return i, nil, fmt.Errorf("look around in a guest: %w", err)
	}
	return i, found, i.KeepSurvey(said.Bytes())
}

// guestHere returns the image and what was last found in it, nil for nothing, without booting or building anything. The image's folder is
// "" where there is none.
func guestHere() (i image.Image, found []finding, err error) {
	i, err = image.Glance(image.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return image.Image{}, nil, nil
	}
	if err == nil {
		_, err = i.Survey(&found)
	}
	return i, found, err
}

// examineGuest adds to findings of this machine where the guest differs from it. With look it boots one.
func (env *environment) examineGuest(ctx context.Context, findings []finding, look bool) ([]finding, error) {
	if _, entered := rootless.Entered(); entered {
		return findings, nil // who had it look around from there looks for guests too
	}
	looked := guestHere
	if look {
		looked = func() (image.Image, []finding, error) { return env.lookInside(ctx) }
	}
	i, found, err := looked()
	about := finding{Topic: "guest"}
	damaged, broken := errors.AsType[*image.DamagedError](err)
	switch {
	case errors.Is(err, testbed.ErrUnsupported):
		return append(findings, tried(about.Topic, "", err)), nil
	case broken:
		about.Says, about.Fix = damaged.Why, "netdelta vm build"
		return append(findings, about), nil
	case err != nil:
		return nil, err
	case i.Dir == "":
		about.Says, about.Fix = "none is built: what this kernel lacks would run in one", "netdelta vm build, then --testbed vm"
		return append(findings, about), nil
	}
	about.OK, about.Says = true, fmt.Sprintf("kernel %s, QEMU %s of %s", i.Kernel, i.QEMU, i.Suite)
	for _, l := range i.Lacks {
		about.Says += "; lacks " + l
	}
	if found == nil {
		about.Says, about.Fix = about.Says+"; not looked into with this program", guestMend
		return append(findings, about), nil
	}
	for k, f := range findings {
		if g, known := ofNetwork(found, strings.TrimPrefix(f.Topic, "network ")); known && g.Topic == f.Topic {
			findings[k] = f.with(g)
		}
	}
	return append(findings, about), nil
}

// with adds to what is known of a network here what is known of it in the guest.
func (f finding) with(guest finding) finding {
	switch {
	case f.OK && guest.OK:
		f.Says += ", and in the guest"
	case guest.OK:
		f.Says += "; runs in the guest"
		f.Fix = testbed.GuestFix
	case f.OK:
		f.Says += ", not in the guest: " + guest.Says
	default:
		f.Says += "; the guest: " + guest.Says
	}
	return f
}

// ofNetwork returns the finding about a network, false where there is none.
func ofNetwork(all []finding, name string) (finding, bool) {
	return gather.First(all, func(f finding) bool { return f.Topic == "network "+name })
}
