package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/internal/procfile"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/rootless"
	"netdelta/workload"
)

// examineRights looks at what this user may do, and what it can have done without root.
func (env *environment) examineRights(refused *testbed.PermissionError) []finding {
	all := []finding{examineUser(refused)}
	if _, entered := rootless.Entered(); !entered {
		all = append(all, tried("user namespaces", "users without root can build labs as well", rootless.Try()))
	}
	all = append(all,
		tried("firewall", "nftables rules can be made", env.lab.Has(network.NeedRules)),
		examineBridges(env.lab.Has(network.NeedBridgeNetfilter)),
		tried("iptables", "policies and services of iptables can be had", env.lab.Has(network.NeedIPTables)),
		tried("ipvs", "services of IPVS can be had", env.lab.Has(network.NeedIPVS)),
		examineEBPF(),
	)
	if _, err := exec.LookPath("nsenter"); err != nil {
		all = append(all, finding{
			Topic: "tool nsenter", Says: "not found; netdelta lab exec needs it to enter a lab that was made without root", Fix: "install the package util-linux",
		})
	}
	return all
}

// examineBridges says whether bridges of this machine hand packets to the firewall, and so what containers here get. lacking is why
// the kernel can't do that, nil where it can.
func examineBridges(lacking error) finding {
	if lacking != nil {
		f := tried("bridge netfilter", "", lacking)
		f.Says += "; no bridge here hands packets to the firewall, in the lab neither"
		return f
	}
	says := "bridges of this machine hand packets to the firewall (bridge-nf-call-iptables=1), as Docker and kubeadm set it"
	if testbed.BridgeNetfilter(result.IPv4) == result.Off {
		says = "bridges of this machine don't hand packets to the firewall (bridge-nf-call-iptables=0); Docker and kubeadm set 1"
	}
	return finding{Topic: "bridge netfilter", OK: true, Says: says + "; in the lab bridge-nat, vxlan, vxlan-routed and udp-tun have 1, and --factor bridge_netfilter=on,off sets it"}
}

// examineUser says whether labs can be built, and as which user. refused says why a user namespace was refused; nil if it was not.
func examineUser(refused *testbed.PermissionError) finding {
	f := finding{Topic: "rights"}
	uid, entered := rootless.Entered()
	lacking, err := rootless.Lacking()
	switch {
	case refused != nil:
		f.Says, f.Fix = "no labs: needs "+refused.Need, refused.Fix
	case err != nil:
		f.Says = err.Error()
	case entered:
		f.OK = true
		f.Says = fmt.Sprintf("rootless: labs of user %d are built in a user namespace; the machine's own network cards stay out of reach", uid)
		f.Fix = "for the machine's own network cards, run it as root"
	case lacking:
		f.Says, f.Fix = "no labs: needs the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN", "run it as root"
	default:
		f.OK, f.Says = true, "root: all of the lab's rights are there"
	}
	return f
}

// tried is the finding after something was tried.
func tried(topic, says string, err error) finding {
	f := finding{Topic: topic, OK: err == nil, Says: says}
	if err != nil {
		need, fix, known := missing(err)
		if f.Says, f.Fix = need, fix; known {
			f.Says = "needs " + need
		}
	}
	return f
}

// missing is what an error says is missing, and the fix; known is false for an error that is about something else.
func missing(err error) (need, fix string, known bool) {
	if denied, ok := errors.AsType[*testbed.PermissionError](err); ok {
		return denied.Need, denied.Fix, true
	}
	if lacks, ok := errors.AsType[*testbed.UnsupportedError](err); ok {
		return lacks.Need, lacks.Remedy(), true
	}
	return err.Error(), "", false
}

// examineProcessTime reads the processor time of another process, as is done with servers and the kernel's threads.
func examineProcessTime() finding {
	f := finding{Topic: "processor time", OK: true, Says: "what other processes use can be read, to the nanosecond"}
	if _, err := procfile.ProcessCPU(os.Getppid()); err != nil {
		f.OK, f.Says = false, err.Error()+": servers' processor time is missing from the deltas"
		f.Fix = "run it where the kernel lets its clocks be read: outside a sandbox or container"
	}
	return f
}

// wantedBuffer is the receive buffer that servers of datagrams ask for.
const wantedBuffer = 4 << 20

// examineBuffers tries how large a receive buffer may get.
func examineBuffers() finding {
	f := finding{Topic: "socket buffers", OK: true, Says: "receivers of datagrams get the 4 MiB that they ask for"}
	size, err := buffer()
	if err != nil {
		return finding{Topic: f.Topic, Says: err.Error()}
	}
	if size < wantedBuffer {
		f.OK = false
		f.Says = fmt.Sprintf("receivers of datagrams get %d KiB where they ask for 4 MiB: streams of them lose packets at lower rates", size>>10)
		f.Fix = fmt.Sprintf("run it as root, or raise the limit with sysctl -w net.core.rmem_max=%d", wantedBuffer)
	}
	return f
}

// buffer is the size of a receive buffer that was asked for as servers do: by right, and failing that by leave.
func buffer() (size int, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, wantedBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, wantedBuffer); err != nil {
			return 0, fmt.Errorf("set SO_RCVBUF: %w", err)
		}
	}
	size, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	return size / 2, err // the kernel doubles it, for its own bookkeeping
}

// examineEBPF loads a program that does nothing, of the kind that networks and probes in the kernel are made of.
func examineEBPF() finding {
	f := finding{Topic: "ebpf", OK: true, Says: "programs for network devices can be loaded"}
	if err := loadProgram(); err != nil {
		f.OK, f.Says = false, fmt.Sprintf("no programs for network devices can be loaded: %v; nothing needs them so far", err)
		f.Fix = "run it as root, on a kernel with CONFIG_BPF_SYSCALL"
	}
	return f
}

// loadProgram has the kernel check and take the least program for a network device, and drops it again.
func loadProgram() error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	return program.Close()
}

// variant is a workload with the parameters that decide which programs it needs.
type variant struct {
	name     string // "block, store=ceph"
	programs []workload.Program
}

// variants are a workload's ways to need programs: by its own parameters, with each store and with each engine that it has.
func variants(w workload.Workload) []variant {
	all := ownVariants(w)
	for _, engine := range []string{"wrk", "iperf3", "sockperf", "netperf"} {
		p := w.Defaults
		p.Engine = engine
		all = addVariant(all, w, w.Name+", engine="+engine, p)
	}
	return all
}

// ownVariants are those in which the workload's own engine makes the load.
func ownVariants(w workload.Workload) []variant {
	all := addVariant(nil, w, w.Name, w.Defaults)
	for _, store := range []string{"nbd", "ceph"} {
		p := w.Defaults
		p.Own = result.OwnOf("store", store)
		all = addVariant(all, w, w.Name+", store="+store, p)
	}
	return all
}

// addVariant adds a variant that the workload has and that needs other programs than those before it.
func addVariant(all []variant, w workload.Workload, name string, p result.Params) []variant {
	needs := w.Demands(p).Programs
	known := slices.ContainsFunc(all, func(v variant) bool { return slices.Equal(v.programs, needs) })
	if len(needs) == 0 || known || w.Check != nil && w.Check(p) != nil {
		return all
	}
	return append(all, variant{name, needs})
}

// examinePrograms looks for the programs of others that workloads run, without which those are unsupported.
func (env *environment) examinePrograms() ([]finding, error) {
	var findings []finding
	for _, w := range env.workloads {
		for _, v := range variants(w) {
			f := finding{Topic: "workload " + v.name, OK: true, Says: "runs " + strings.Join(v.names(), ", ")}
			programs, packages, err := workload.Missing(v.programs)
			if err != nil {
				return nil, err
			}
			if len(programs) > 0 {
				f.OK, f.Says = false, strings.Join(programs, ", ")+" not found: cells of this workload are unsupported"
				f.Fix = workload.Installation(packages)
			}
			findings = append(findings, f)
		}
	}
	return findings, nil
}

// names are the names of the variant's programs.
func (v variant) names() []string {
	return gather.Each(v.programs, func(p workload.Program) string { return p.Name })
}

// needed are the programs of one workload of a study, at all its levels; the same may be there several times.
func (env *environment) needed(s *study.Study, of study.Workload) []workload.Program {
	var needs []workload.Program
	for _, w := range env.workloads {
		if w.Name != of.Name {
			continue
		}
		for _, p := range s.Combinations(of) {
			needs = append(needs, w.Demands(p).Programs...)
		}
	}
	return needs
}

// absent says which programs of a workload are not here, variant by variant; "" if none is missing. Engines are there for
// comparison: the doctor tells of them.
func absent(w workload.Workload) (string, error) {
	var said []string
	for _, v := range ownVariants(w) {
		programs, _, err := workload.Missing(v.programs)
		if err != nil {
			return "", err
		}
		if len(programs) > 0 {
			said = append(said, v.name+" needs "+strings.Join(programs, ", "))
		}
	}
	return strings.Join(said, "; "), nil
}
