package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"netdelta/internal/gather"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/probe/pressure"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/rootless"
)

// finding is one line of the doctor's report.
type finding struct {
	Topic string `json:"topic"`
	OK    bool   `json:"ok"`
	Says  string `json:"says"`
	Fix   string `json:"fix,omitempty"`
}

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	testbed     string
	json, guest bool
	nodes       string
	servers     serverFlags
	docker      string
	whatIf      bool
	clusterFlags
	rbac string
	to   string       // whom the rights are for; "" is who asks
	pods kube.Options // how the pods that are judged would be made
}

func newDoctorCommand(env *environment) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine or a cluster can't run, and the fix",
		Example: `  netdelta doctor
  netdelta doctor --guest
  netdelta doctor --testbed kubernetes
  netdelta doctor --testbed kubernetes --rbac | kubectl apply -f -
  netdelta doctor --testbed ssh --nodes ssh:root@a,ssh:root@b`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.testbed, err = onWhatIf(cmd.Flags(), o.testbed, o.whatIf); err != nil {
				return err
			}
			k, err := findAble(o.testbed, func(k kind) bool { return k.examine != nil })
			if err != nil {
				return err
			}
			if flag := o.serversGiven(); flag != "" && !k.cards {
				return usageError{fmt.Errorf("%s goes with --testbed %s", flag, sshTestbed)}
			}
			return k.examine(cmd.Context(), env, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.testbed, "testbed", labTestbed, "what to look at: lab, this machine; ssh, the servers of --nodes; kubernetes, the cluster that the kubeconfig names; docker, the networks of a container engine")
	f.StringVar(&o.docker, dockerFlag, "", dockerUsage)
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	f.BoolVar(&o.guest, "guest", false, "boot a guest, built first if need be, and look into it too; what is found is kept")
	f.StringVar(&o.nodes, "nodes", "", "with --testbed ssh: the servers, ssh:[user@]host[:port],...; with --what-if: names of nodes")
	o.servers.add(f)
	f.BoolVar(&o.whatIf, "what-if", false, "with --testbed kubernetes: look at its nodes by a privileged pod on each, and say what can be built there by run --what-if")
	o.addCluster(f)
	return cmd
}

// serversGiven is the first flag about servers that was given, "" for none.
func (o doctorOptions) serversGiven() string {
	if o.nodes != "" {
		return "--nodes"
	}
	return o.servers.given()
}

// examineHere looks at this machine, and with --guest into a guest.
func examineHere(ctx context.Context, env *environment, o doctorOptions) error {
	if flag := o.given(); flag != "" {
		return usageError{fmt.Errorf("%s goes with --testbed %s", flag, kubeTestbed)}
	}
	findings, err := env.diagnose(ctx)
	if err == nil {
		findings, err = env.examineGuest(ctx, findings, o.guest)
	}
	if err != nil {
		return err
	}
	return env.tell(findings, o)
}

// tell prints what was found.
func (env *environment) tell(findings []finding, o doctorOptions) error {
	if o.json {
		return json.NewEncoder(env.out).Encode(findings)
	}
	return env.printFindings(findings)
}

// printFindings prints what was found, to the terminal's width: first what is wrong, then what is well. A fix that several in a row have
// stands below the last of them.
func (env *environment) printFindings(findings []finding) error {
	findings = together(findings)
	slices.SortStableFunc(findings, func(a, b finding) int { return cmp.Compare(order(a), order(b)) })
	column := 0
	for _, f := range findings {
		column = max(column, min(len(f.Topic), topicWidth))
	}
	width := max(ui.Detect(env.terminal, env.getenv).Width-column-6, 30)
	return ui.Print(env.out, "findings", func(out ui.Text) {
		for i, f := range findings {
			mark := "ok"
			if !f.OK {
				mark = "--"
			}
			lines := ui.Wrap(ui.Clean(f.Says), width)
			if f.Fix != "" && (i+1 == len(findings) || findings[i+1].Fix != f.Fix) {
				lines = append(lines, ui.Wrap("fix: "+ui.Clean(f.Fix), width)...)
			}
			hang(out, mark+"  "+f.Topic, column+6, lines)
		}
	})
}

// order is where a finding stands: before those that are well.
func order(f finding) int {
	if f.OK {
		return 1
	}
	return 0
}

// topicWidth is how wide the column of topics is at most: the text of a longer one stands below it.
const topicWidth = 22

// together puts findings of several networks, or workloads, that all run into one, at the place of the first.
func together(findings []finding) (all []finding) {
	at := map[string]int{}
	for _, f := range findings {
		kind, name, several := strings.Cut(f.Topic, " ")
		key := kind + " " + f.Says
		if !several || !f.OK || f.Fix != "" || kind != "network" {
			all = append(all, f)
			continue
		}
		if i, known := at[key]; known {
			all[i].Topic = kind + "s"
			all[i].Says += ", " + name
			continue
		}
		at[key] = len(all)
		f.Says += ": " + name
		all = append(all, f)
	}
	return all
}

// diagnose looks at everything that a run depends on from where runs of this user are: with root's rights, or inside a user
// namespace.
func (env *environment) diagnose(ctx context.Context) ([]finding, error) {
	lacking, err := rootless.Lacking()
	if err != nil {
		return nil, err
	}
	var refused *testbed.PermissionError
	if _, entered := rootless.Entered(); entered {
		if err := rootless.Verify(); err != nil && !errors.As(err, &refused) {
			return nil, err
		}
	} else if lacking {
		findings, err := diagnoseInside()
		if !errors.As(err, &refused) {
			return findings, err
		}
	}
	return env.examine(ctx, refused)
}

// diagnoseInside has this program look around in a user namespace, but for what killed runs left: each was in a user namespace
// of its own, and can be seen only from outside.
func diagnoseInside() ([]finding, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { _ = read.Close() }()
	said := make(chan []byte, 1)
	go func() {
		text, _ := io.ReadAll(read) // what is missing is missed below
		said <- text
	}()
	ended, err := rootless.Run([]string{"doctor", "--json"}, write)
	if err := errors.Join(err, write.Close()); err != nil {
		return nil, err
	}
	var findings []finding
	if err := json.Unmarshal(<-said, &findings); err != nil {
		return nil, fmt.Errorf("look around in a user namespace: %s: %w", ended, err)
	}
	remains, err := examineOrphans()
	if err != nil {
		return nil, err
	}
	findings = slices.DeleteFunc(findings, func(f finding) bool { return f.Topic == remains.Topic })
	return append(findings, remains), nil
}

// examine looks at everything that a run depends on. Nothing is changed; what a network needs is tried in a namespace
// made for the purpose. A refusal is why there is no user namespace where one is needed.
func (env *environment) examine(ctx context.Context, refused *testbed.PermissionError) ([]finding, error) {
	about, err := machine.Describe(machine.Version())
	if err != nil {
		return nil, err
	}
	findings := []finding{
		{Topic: "kernel", OK: true, Says: strings.TrimSpace(fmt.Sprintf("%s %s, %s", about.Kernel, about.Arch, about.OS))},
		{Topic: "processor", OK: true, Says: fmt.Sprintf("%d x %s%s", about.CPU.Count, about.CPU.Model, onVirtual(about.Virtual))},
	}
	conditions, err := examineConditions(about)
	if err != nil {
		return nil, err
	}
	findings = append(append(findings, conditions...), env.examineRights(refused)...)
	for _, n := range network.Catalogue() {
		findings = append(findings, tried("network "+n.Name, "runs in the lab", env.lab.Supports(ctx, testbed.Spec{Network: n.Name, Family: result.IPv4})))
	}
	programs, err := env.examinePrograms()
	if err != nil {
		return nil, err
	}
	findings = append(append(findings, programs...), examineTools()...)
	left, err := examineOrphans()
	if err != nil {
		return nil, err
	}
	return append(findings, left), nil
}

func onVirtual(hypervisor string) string {
	if hypervisor == "" {
		return ""
	}
	return " on " + hypervisor
}

// examineConditions looks at what of this machine changes what is measured on it.
func examineConditions(about result.Environment) ([]finding, error) {
	cpus, err := examineCPUs()
	if err != nil {
		return nil, err
	}
	return append(examineSettings(about), cpus, examinePressure(),
		tried("packet samples", "packets can be seen on their way (AF_PACKET)", lab.TrySample()), examineProcessTime(), examineBuffers()), nil
}

// examineSettings looks at a machine's clock, idle states and governor.
func examineSettings(about result.Environment) (all []finding) {
	for _, f := range machine.Settings(about) {
		all = append(all, finding{Topic: f.Topic, OK: f.Fix == "", Says: f.Says, Fix: f.Fix})
	}
	return all
}

func examineCPUs() (finding, error) {
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		return finding{}, err
	}
	f := finding{Topic: "placement", OK: true, Says: fmt.Sprintf("measures on processor %d, controls from the other %d", cpus[len(cpus)-1], len(cpus)-1)}
	if len(cpus) == 1 {
		f.OK = false
		f.Says = "one processor: netdelta itself runs on the one that is measured"
		f.Fix = "give this machine or container a second processor; deltas need more time without"
	}
	return f, nil
}

func examinePressure() finding {
	if _, err := os.Stat("/proc/pressure/cpu"); err != nil {
		return finding{Topic: "pressure", Says: "the kernel gives no pressure information: only steal and preemption mark disturbed bursts",
			Fix: "boot with psi=1, or a kernel with CONFIG_PSI"}
	}
	if _, err := pressure.NewReader("/proc", nil); err != nil {
		return finding{Topic: "pressure", Says: err.Error()}
	}
	return finding{Topic: "pressure", OK: true, Says: "processor pressure, steal and soft interrupts are watched"}
}

// examineTools looks for the programs that netdelta holds its own engines against. None is needed for a run.
func examineTools() []finding {
	var findings []finding
	for _, tool := range []string{"sockperf", "iperf3"} {
		f := finding{Topic: "tool " + tool, OK: true}
		path, err := exec.LookPath(tool)
		if f.Says = path; errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
			f.OK, f.Says = false, "not found; it is needed only to compare netdelta's own engines with it"
			f.Fix = "install the package " + tool
		} else if err != nil {
			f.OK, f.Says = false, err.Error()
		}
		findings = append(findings, f)
	}
	return findings
}

func examineOrphans() (finding, error) {
	orphans, err := lab.Orphans()
	if err != nil {
		return finding{}, err
	}
	if len(orphans) == 0 {
		return finding{Topic: "leftovers", OK: true, Says: "killed runs left nothing"}, nil
	}
	names := gather.Each(orphans, func(o lab.Orphan) string { return o.String() })
	slices.Sort(names)
	return finding{Topic: "leftovers", Says: "a killed run left " + strings.Join(names, ", "), Fix: "netdelta cleanup"}, nil
}
