package result

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"netdelta/unit"
)

// Level is one level of a factor, as it is written and named: Factor "policy" and Value "nftables:1000".
type Level struct {
	Factor, Value string
}

// Heading is the level of a condition in a heading: "links of 1Gbit/s". A factor without a label has "policy=nftables:1000".
func (l Level) Heading() string {
	for _, d := range shared() {
		if d.Factor == l.Factor && d.Label != "" {
			return strings.Replace(d.Label, "%", l.Value, 1)
		}
	}
	return l.String()
}

// String is the level as a claim writes it: "policy=nftables:1000".
func (l Level) String() string { return l.Factor + "=" + l.Value }

// Levels are the conditions that are set, in a fixed order. Settings that mean nothing alone are one level together: the
// links of a bond with its mode and hash, the kind of policy with its rules, the kind of service with its number. Two plain
// conditions are the same if and only if their levels are.
func (c Conditions) Levels() []Level {
	c = c.Plain()
	var all []Level
	add := func(factor, value string) {
		if value != "" {
			all = append(all, Level{factor, value})
		}
	}
	add("link.rate", exactRate(c.LinkRate))
	add("link.delay", exactDuration(c.LinkDelay))
	if c.LinkLoss != 0 {
		add("link.loss", exactShare(c.LinkLoss))
	}
	add("link.nodes", c.NodeLinks)
	if c.BondMode != "" {
		bond := strconv.Itoa(max(c.LinkCount, 1)) + "x" + c.BondMode
		if c.BondHash != "" {
			bond += "," + c.BondHash
		}
		add("bond", bond)
	}
	add("offload.tso", string(c.TSO))
	add("offload.gso", string(c.GSO))
	add("offload.gro", string(c.GRO))
	add("offload.lro", string(c.LRO))
	add("rps", string(c.RPS))
	add("bridge_netfilter", string(c.BridgeNetfilter))
	policy := counted(c.Policy, c.PolicyRules)
	if c.PolicyPods > 0 {
		policy += "," + strconv.Itoa(c.PolicyPods) + "pods"
	}
	add("policy", policy)
	add("service", counted(c.Service, c.Services))
	add("from", c.From)
	add("encryption", c.Encryption)
	add("qos", c.QoS)
	return all
}

// counted is a kind with how many there are of it, "" for no kind.
func counted(kind string, n int) string {
	if kind == "" {
		return ""
	}
	return kind + ":" + strconv.Itoa(n)
}

// exactRate prints a rate without rounding, "" for none.
func exactRate(r unit.BitsPerSecond) string {
	if r == 0 {
		return ""
	}
	if text, err := r.MarshalText(); err == nil {
		return string(text)
	}
	return strconv.FormatFloat(float64(r), 'f', -1, 64)
}

// exactDuration prints a duration as study files have it ("10ms", "1m"), "" for none.
func exactDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strings.Replace(unit.FormatDuration(d), "µ", "u", 1)
}

// exactShare prints a share in percent without rounding: the point of its shortest decimal form is moved.
func exactShare(share float64) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(share, 'f', -1, 64), ".")
	fraction += "00"
	percent := strings.TrimLeft(whole+fraction[:2], "0")
	if rest := strings.TrimRight(fraction[2:], "0"); rest != "" {
		percent += "." + rest
	}
	if percent == "" || percent[0] == '.' {
		percent = "0" + percent
	}
	return percent + "%"
}

// Factors are what effects are taken of, in the order in which they are shown: every condition, and the parameters that
// leave the load as it is. Message, connections and rates are not factors: another load is another question.
func Factors() []string {
	return []string{
		"link.rate", "link.delay", "link.loss", "link.nodes", "bond", "offload.tso", "offload.gso", "offload.gro", "offload.lro", "rps", "bridge_netfilter", "policy",
		"service", "from", "encryption", "qos", "mtu", "family", "cpu", "busy_poll", "congestion_control", "nagle", "engine",
		"storage_class",
	}
}

// Level is the level of one of Factors. One that is not set is named by what it then is: "none" for a policy.
func (p Params) Level(factor string) string {
	all := p.Conditions.Levels()
	if i := slices.IndexFunc(all, func(l Level) bool { return l.Factor == factor }); i >= 0 {
		return all[i].Value
	}
	if factor == "bond" {
		return "1 link"
	}
	for _, d := range Parameters() {
		switch {
		case d.Factor != factor:
		case p.Given(d) && !strings.HasPrefix(d.Field, "Conditions."):
			return exact(d.Kind, p.Get(d))
		default:
			return cmp.Or(d.Unset, d.Usual, "default")
		}
	}
	return "default"
}

// Without are the parameters with one of Factors left open: two that differ in it alone are then the same.
func (p Params) Without(factor string) Params {
	for _, d := range shared() {
		if d.Factor == factor {
			p = p.With(d, d.Kind.Zero())
		}
	}
	p.Conditions = p.Conditions.Plain()
	return p
}

// shared are the parameters that no workload declares.
var shared = sync.OnceValue(func() []Parameter { return Parameters() })

// Load are the parameters with all of Factors left open: what the workload itself is asked to do.
func (p Params) Load() Params {
	return Params{
		Message: p.Message, Connections: p.Connections, Rate: p.Rate, Search: p.Search, RequestRate: p.RequestRate,
		File: p.File, Reconnect: p.Reconnect, Own: p.Own, Clients: p.Clients, Target: p.Target,
	}
}

// Setting is what a cell and its baseline have in common: everything but the network and how the server is named. Deltas
// are taken within a setting, and a table shows one. It can be compared and used as a key.
type Setting struct {
	Workload  string    `json:"workload"`
	Params    Params    `json:"params"`
	Placement Placement `json:"placement"`
}

// Regime is how a workload of requests and responses keeps its processors; "" for other workloads, and where the ends are not pinned.
func (s Setting) Regime() string {
	if !HasRegimes(s.Workload) {
		return ""
	}
	return s.Params.Regime()
}

// Setting is the cell's setting.
func (c Cell) Setting() Setting { return Setting{c.Workload, c.Params, c.Placement} }

// Settings lists the settings of cells in the order in which they first occur.
func Settings(cells []Cell) []Setting {
	var list []Setting
	seen := map[Setting]bool{}
	for _, c := range cells {
		if s := c.Setting(); !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	return list
}

// How requests and responses keep the processors that their ends are pinned to. A record has it as Params.CPU and Params.RequestRate.
const (
	RegimeSaturated = "saturated" // both ends on one, a request after the other
	RegimeWaking    = "waking"    // on two, each of which wakes for every message
	RegimePaced     = "paced"     // on two, requests at the rate that was asked for: an open loop
)

// regimeKey is the key of the one parameter that is no field: it stands for the processors and the rate of requests.
const regimeKey = "regime"

// HasRegimes says whether a workload is of requests and responses, which have regimes.
func HasRegimes(workload string) bool { return strings.HasSuffix(workload, "rr") }

// Regime is the regime of requests and responses; "" where their ends are not pinned. One that is paced may have both ends on one
// processor: CPU says so.
func (p Params) Regime() string {
	switch {
	case p.CPU != "same" && p.CPU != "two":
		return ""
	case p.RequestRate > 0:
		return RegimePaced
	case p.CPU == "same":
		return RegimeSaturated
	}
	return RegimeWaking
}

// inRegime are the parameters in a regime, "" for none. Only one that is paced has a rate of requests.
func (p Params) inRegime(regime string) Params {
	if regime != RegimePaced {
		p.RequestRate = 0
	}
	switch regime {
	case RegimeSaturated:
		p.CPU = "same"
	case RegimeWaking, RegimePaced:
		p.CPU = "two"
	default:
		p.CPU = ""
	}
	return p
}

// Path is the proof that a trial's packets went the way that its network says.
type Path struct {
	// OK is false for a trial that was misrouted: it then enters no delta.
	OK bool `json:"ok"`
	// Weak names the parts of the proof that could not be had here, each with its reason.
	Weak []string `json:"weak,omitempty"`
	// Findings are what was wrong, a sentence each.
	Findings []string `json:"findings,omitempty"`
	// Notes are what was seen of the way that no plan says and that is not wrong, a sentence each: on a cluster, how packets
	// were wrapped and whose addresses were translated.
	Notes []string `json:"notes,omitempty"`
	// Payload is what the workload moved, both ways, while the devices were watched.
	Payload unit.Bytes `json:"payload"`
	// Hops are the devices on the way from client to server, in order, with what they carried.
	Hops []PathHop `json:"hops"`
	// Stray are devices off the way that carried more than the odd packet.
	Stray []PathHop `json:"stray,omitempty"`
	// Encapsulation is what the sampled packets on the underlay were wrapped in: "vxlan", "none", "" without a sample.
	Encapsulation string `json:"encapsulation,omitempty"`
	// Overhead is what encapsulation adds to each packet, as counted; zero without.
	Overhead unit.Bytes `json:"overhead,omitempty"`
	// Sampled is how many packets were looked at, Fragments how many of them were IP fragments, and Largest the largest IP
	// packet of them on the wire, segments of offloaded packets counted one by one.
	Sampled   int        `json:"sampled,omitempty"`
	Fragments int        `json:"fragments,omitempty"`
	Largest   unit.Bytes `json:"largest,omitempty"`
	// MTU is the largest IP packet that was seen to get from client to server whole; zero if it was not tried.
	MTU unit.Bytes `json:"mtu,omitempty"`
}

// PathProof sums up the proofs of the trials of one network in one placement.
type PathProof struct {
	Network   string     `json:"network"`
	Placement Placement  `json:"placement"`
	MTU       unit.Bytes `json:"mtu,omitempty"`    // as in Params
	Family    Family     `json:"family,omitempty"` // as in Params
	// Trials is how many there are that have a proof or lack one, and Proved how many went the way that the network says.
	Trials int `json:"trials"`
	Proved int `json:"proved"`
	// Weak names the parts of a proof that some trial lacks.
	Weak []string `json:"weak,omitempty"`
	// Seen is the proof of the last proved trial; of the last one at all where none is proved.
	Seen *Path `json:"seen,omitempty"`
}

// PathHop is what one device carried while it was watched.
type PathHop struct {
	Device string `json:"device"` // "node0/eth0"
	Role   string `json:"role,omitempty"`
	// Sends tells whether the device transmits the request (or receives it), as its counters see it.
	Sends bool `json:"sends"`
	// Encapsulated says that the packet is inside the encapsulation here.
	Encapsulated bool `json:"encapsulated,omitempty"`
	// Packets and Bytes count the request's direction.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Sockets is what the kernel says of a trial's sockets.
type Sockets struct {
	// Dropped counts packets that a socket's full receive buffer turned away, Overflows the connections that a full listen
	// queue did.
	Dropped   uint64 `json:"dropped"`
	Overflows uint64 `json:"overflows"`
	// SendBuffer and ReceiveBuffer are the buffers of the client's first socket.
	SendBuffer    unit.Bytes `json:"send_buffer"`
	ReceiveBuffer unit.Bytes `json:"receive_buffer"`
	// Server is TCP_INFO of the server's end; nil without TCP.
	Server *TCPInfo `json:"server,omitempty"`
}

// Service is a daemon that served a trial.
type Service struct {
	Name    string `json:"name"` // "ceph-osd.1"
	Pod     string `json:"pod"`
	Version string `json:"version,omitempty"`
	// Memory is its resident set at the end of the trial.
	Memory unit.Bytes `json:"memory"`
	// Restarts is how often it had to be started again since the run began.
	Restarts int `json:"restarts,omitempty"`
}

// ClientRate is what one of several clients in pods of their own got done.
type ClientRate struct {
	Node string  `json:"node"` // that its pod was on
	Rate float64 `json:"rate"` // transactions per second, in the bursts that count
}

// Disk is what a server's storage does without a network, measured before its clients came, with the operation, block size
// and depth of the trial.
type Disk struct {
	Rate       float64            `json:"rate"` // operations per second
	Throughput unit.BitsPerSecond `json:"throughput"`
	P50        time.Duration      `json:"p50_ns"`
	P99        time.Duration      `json:"p99_ns"`
}

// Replication is what a cluster measured of its own replication during a trial (Galera's wsrep_evs_repl_latency): the time
// from sending a message to all nodes until each has it.
type Replication struct {
	Min     time.Duration `json:"min_ns"`
	Mean    time.Duration `json:"mean_ns"`
	Max     time.Duration `json:"max_ns"`
	Samples int64         `json:"samples"`
}

// What can bound a workload.
const (
	BoundLink    = "link"
	BoundCPU     = "cpu"
	BoundDisk    = "disk"
	BoundLatency = "latency" // it waits for answers, and nothing is busy: the usual state of one request at a time
)

// Bound is what kept a workload from doing more, with the shares that it follows from. Shares are 0 to 1, and -1 where they
// could not be read.
type Bound struct {
	By   string  `json:"by"`   // link, cpu, disk or latency
	Link float64 `json:"link"` // of the most used direction of an underlay link's rate
	CPU  float64 `json:"cpu"`  // of the processors that the workload may run on
	Disk float64 `json:"disk"` // of what the storage does without a network
}

// Whether what a network adds to a request matters: is beyond the run's margin.
const (
	MattersYes     = "yes"
	MattersNo      = "no"
	MattersUnknown = "unknown"
)

// Request is a request of the user's own, with what each network is of it.
type Request struct {
	Took   float64        `json:"took"`  // in nanoseconds
	Calls  int            `json:"calls"` // across the network, one after the other
	Shares []RequestShare `json:"shares"`
}

// RequestShare is what one network adds to a request, against the baseline.
type RequestShare struct {
	Network  string `json:"network"`
	Baseline string `json:"baseline"`
	Setting
	Path string `json:"path"`
	// Added is what all calls take more, in nanoseconds, and Share what part of the request that is. They have intervals where the delta
	// that they rest on has one.
	Added     float64  `json:"added"`
	AddedLow  *float64 `json:"added_low"`
	AddedHigh *float64 `json:"added_high"`
	Share     float64  `json:"share"`
	ShareLow  *float64 `json:"share_low"`
	ShareHigh *float64 `json:"share_high"`
	Matters   string   `json:"matters"` // yes, no, unknown
}
