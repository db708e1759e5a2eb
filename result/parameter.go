package result

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/unit"
)

// Kind is the kind of value that a parameter has.
type Kind int

// The kinds, each with the type of its values.
const (
	KindWord     Kind = iota + 1 // string: one of Parameter.Words, or any
	KindSwitch                   // string: on or off, which study files have without quotes
	KindCount                    // int
	KindSize                     // unit.Bytes
	KindOctets                   // unit.Bytes, printed as a plain number
	KindRate                     // unit.BitsPerSecond
	KindNumber                   // float64
	KindShare                    // float64, from 0 to 1
	KindDuration                 // time.Duration
	KindFlag                     // bool
)

// Zero is the zero value of the kind.
func (k Kind) Zero() any {
	switch k {
	case KindCount:
		return 0
	case KindSize, KindOctets:
		return unit.Bytes(0)
	case KindRate:
		return unit.BitsPerSecond(0)
	case KindNumber, KindShare:
		return 0.0
	case KindDuration:
		return time.Duration(0)
	case KindFlag:
		return false
	}
	return ""
}

// Parameter declares a parameter of workloads, or a condition. Study files, their schema, records, IDs of cells, tables and formats
// follow from it. It can be compared.
type Parameter struct {
	// Key names it in studies and claims: "link.delay". It is the key in records too, unless it has a Field.
	Key  string
	Kind Kind
	Says string // what it is, in one sentence
	// Words are the levels that there are, with bars between them: "nbd|ceph"; "" if any will do.
	Words string
	// Low and High bound its levels, in base units (bytes, bits per second, nanoseconds); both are 0 where a workload's check decides.
	Low, High float64
	// Default is the value that a workload takes where none is given, nil for none.
	Default any
	// Unset is the level that is meant where there is none, "" if the workload decides. Dropped says that this level is recorded as none.
	Unset   string
	Dropped bool
	// Excludes is a parameter with which this one means nothing.
	Excludes Exclusion
	// Needs is a parameter without which this one means nothing.
	Needs Need
	// ID and Label are how cells' IDs and headings name a level, % standing for it: "depth=%", "depth %"; "" takes the kind's way.
	// Headings leave out the level Usual.
	ID, Label, Usual string
	// Factor is what effects are taken of when it varies: "policy" of all that belongs to policies. It is "" for what another load
	// comes of, since that is another question.
	Factor string
	// Derived says that it is no key of studies: it follows from another one.
	Derived bool
	// Stands says that it is a key of studies and claims alone, and stands for values of other parameters: a regime.
	Stands bool
	// Field is its place in Params ("Conditions.LinkRate"), "" for a parameter that a workload declares itself.
	Field string
	// Rank is its place among a workload's own parameters; Declare gives it.
	Rank int
}

// Exclusion says why a parameter means nothing together with another one, and what to do about it.
type Exclusion struct{ Key, Why, Fix string }

// Need says what a parameter belongs to, and what to do where that is missing.
type Need struct {
	Key, Fix string
	Levels   string // at which it means something, with bars between them: "randrw|rw"; a bar at the end stands for none that is given; "" for any
}

// Means says whether a workload's own parameter means something with parameters p: what it needs is there, at a level that has it.
func (d Parameter) Means(p Params) bool {
	return d.Needs.Levels == "" || slices.Contains(strings.Split(d.Needs.Levels, "|"), p.Own.Word(d.Needs.Key))
}

// Declare gives a workload's own parameters their ranks.
func Declare(own ...Parameter) []Parameter {
	for i := range own {
		own[i].Rank = i
	}
	return own
}

// Known are the levels that there are, nil if any will do.
func (d Parameter) Known() []string {
	if d.Words == "" {
		return nil
	}
	return strings.Split(d.Words, "|")
}

// Name is the level in the ID of a cell: exact, and without slashes, which part an ID; "" where there is none.
func (d Parameter) Name(p Params) string {
	v := p.Get(d)
	if v == d.Kind.Zero() {
		return ""
	}
	format := d.ID
	switch {
	case format != "":
	case d.Kind == KindWord:
		format = "%"
	case d.Kind == KindFlag:
		format = d.Key
	default:
		format = d.Key + "=%"
	}
	text := strings.NewReplacer("~", "%7E", "/", "~").Replace(strings.Replace(exact(d.Kind, v), "://", ":", 1))
	return strings.Replace(format, "%", text, 1)
}

// Heading is the level in a heading; "" where there is none, or the usual one.
func (d Parameter) Heading(p Params) string {
	v := p.Get(d)
	text := fmt.Sprint(v)
	switch d.Kind {
	case KindOctets:
		text = exact(d.Kind, v)
	case KindNumber, KindShare:
		text = strconv.FormatFloat(v.(float64), 'g', 6, 64)
	}
	format := d.Label
	switch {
	case v == d.Kind.Zero() || text == d.Usual:
		return ""
	case format != "":
	case d.Kind == KindWord || d.Kind == KindSize:
		format = "%"
	case d.Kind == KindFlag:
		format = d.Key
	default:
		format = d.Key + " %"
	}
	return strings.Replace(format, "%", text, 1)
}

// exact prints a value without rounding.
func exact(kind Kind, v any) string {
	switch v := v.(type) {
	case unit.Bytes:
		if text, err := v.MarshalText(); err == nil && kind == KindSize {
			return string(text)
		}
		return strconv.FormatInt(int64(v), 10)
	case unit.BitsPerSecond:
		return strings.TrimSuffix(exactRate(v), "/s")
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Duration:
		return cmp.Or(exactDuration(v), "0s")
	}
	return fmt.Sprint(v)
}

// Parameters are all that there are with the own ones of these workloads among them, in the order in which studies combine levels
// (the last varies fastest) and IDs name them. What several workloads declare is there once.
func Parameters(own ...Parameter) []Parameter {
	all := loads()
	for _, d := range own {
		if !slices.ContainsFunc(all, func(o Parameter) bool { return o.Key == d.Key }) {
			all = append(all, d)
		}
	}
	return slices.Concat(all, sockets(), links(), pods())
}

// Recorded are parameters in the order of records and formats, without conditions.
func Recorded(all []Parameter) []Parameter {
	place := func(d Parameter) int {
		field := cmp.Or(d.Field, "Own")
		at, _ := reflect.TypeFor[Params]().FieldByName(field)
		return at.Index[0]
	}
	load := slices.DeleteFunc(slices.Clone(all), func(d Parameter) bool { return d.Stands || strings.HasPrefix(d.Field, "Conditions.") })
	slices.SortStableFunc(load, func(a, b Parameter) int { return cmp.Compare(place(a), place(b)) })
	return load
}

// Headings are the given parameters as headings name them, without conditions.
func (p Params) Headings() []string {
	last := func(d Parameter) int {
		switch {
		case d.Field == "":
			return 0
		case d.Field == "Clients":
			return 1
		case d.Field == "File" || d.Field == "Reconnect":
			return 2
		}
		return 3
	}
	given := Recorded(slices.DeleteFunc(Parameters(p.Own.Declared()...), func(d Parameter) bool { return d.Heading(p) == "" }))
	slices.SortStableFunc(given, func(a, b Parameter) int { return cmp.Compare(last(a), last(b)) })
	var texts []string
	for _, d := range given {
		texts = append(texts, d.Heading(p))
	}
	return texts
}

// Names are the given parameters as IDs name them, without conditions.
func (p Params) Names() []string {
	var texts []string
	for _, d := range Parameters(p.Own.Declared()...) {
		if text := d.Name(p); text != "" && !d.Stands && !strings.HasPrefix(d.Field, "Conditions.") {
			texts = append(texts, text)
		}
	}
	return texts
}

// Bounds of levels, whatever the workload; its own check may be tighter.
const (
	maxMessage     = unit.GiB
	maxConnections = 10_000
	maxRequestRate = 1e7
	maxFile        = 16 * unit.GiB
	maxClients     = 16
	minRate        = unit.Kbit
	maxRate        = unit.Tbit
	maxLinkDelay   = 10 * time.Second
	maxLinkLoss    = 0.5 // beyond it hardly a connection is set up
	maxLinkCount   = 16
	maxRules       = 10_000
	maxPods        = 200 // more than a node takes by default, and each is a real one
)

// loads are what several workloads are asked to do.
func loads() []Parameter {
	return []Parameter{
		{Key: "message", Kind: KindSize, Field: "Message", Low: 1, High: float64(maxMessage), ID: "%",
			Says: "Size of a request and of its response, or of one write of a stream."},
		{Key: "connections", Kind: KindCount, Field: "Connections", Low: 1, High: maxConnections, ID: "conns=%", Label: "% connections", Usual: "1",
			Says: "Connections or flows that one client keeps open."},
		{Key: "rate", Kind: KindRate, Field: "Rate", Low: float64(minRate), High: float64(maxRate), Label: "at %",
			Says: "Rate at which a stream is sent; search looks for the highest one."},
		{Key: "search", Kind: KindFlag, Field: "Search", ID: "rate=search", Derived: true},
		{Key: "request_rate", Kind: KindNumber, Field: "RequestRate", Low: 0.001, High: maxRequestRate, ID: "rps=%", Label: "at %/s",
			Needs: Need{Key: regimeKey, Fix: "say regime: paced as well"}, Says: "Open-loop rate in transactions per second; latency then counts from the intended start."},
		{Key: "file", Kind: KindSize, Field: "File", Low: 1, High: float64(maxFile),
			Excludes: Exclusion{"target", "answers are as long as they are", "leave file out, or target, to measure a server of netdelta's own"},
			Says:     "Size of what a server of HTTP answers with, or of the file in a volume that blocks lie in."},
		{Key: "reconnect", Kind: KindFlag, Field: "Reconnect", Label: "a connection each",
			Says: "Whether each request of HTTP has a connection of its own."},
	}
}

// sockets are how many clients there are, the program that makes the load, its other end, and what both ask of their sockets and of the underlay.
func sockets() []Parameter {
	return []Parameter{
		{Key: "clients", Kind: KindCount, Field: "Clients", Low: 1, High: maxClients, Label: "% clients", Usual: "1", Says: "Clients that do the same at the same time."},
		{Key: "engine", Kind: KindWord, Field: "Engine", Words: "netdelta|wrk|iperf3|sockperf|netperf", ID: "by=%", Label: "by %",
			Unset: "netdelta", Dropped: true, Usual: "netdelta", Factor: "engine", Says: "Program that makes the load; netdelta is its own loop."},
		{Key: "target", Kind: KindWord, Field: "Target", ID: "to=%", Label: "to %",
			Says: "URL of an endpoint of your own in a cluster, measured in place of a server of netdelta's: http://HOST[:PORT][/PATH], mysql://USER@HOST[:PORT]/DATABASE, postgres://USER@HOST[:PORT]/DATABASE. It has no password."},
		{Key: "storage_class", Kind: KindWord, Field: "StorageClass", ID: "class=%", Label: "class %", Factor: "storage_class",
			Says: "StorageClass of a cluster, whose volumes keep the blocks in place of a store of netdelta's."},
		{Key: regimeKey, Kind: KindWord, Field: "CPU", Words: RegimeSaturated + "|" + RegimeWaking + "|" + RegimePaced, Stands: true,
			Excludes: Exclusion{"cpu", "it says already which processors the ends are on", "leave cpu out"},
			Says:     "How requests and responses keep their processors: saturated is both ends on one, waking is a processor each and one request at a time, paced is a processor each and request_rate."},
		{Key: "cpu", Kind: KindWord, Field: "CPU", Words: "same|two|any", ID: "cpu=%", Label: "% CPUs", Usual: "same", Factor: "cpu",
			Says: "Client and server on one processor, on two, or as scheduled; requests and responses have a regime."},
		{Key: "busy_poll", Kind: KindDuration, Field: "BusyPoll", High: float64(time.Second), ID: "poll=%", Label: "busy poll %", Unset: "0s", Factor: "busy_poll",
			Says: "How long a socket polls the device before it sleeps; 0s is off."},
		{Key: "congestion_control", Kind: KindWord, Field: "CongestionControl", ID: "cc=%", Usual: "cubic", Factor: "congestion_control",
			Says: "TCP congestion control of each socket."},
		{Key: "nagle", Kind: KindFlag, Field: "Nagle", Label: "Nagle", Unset: "false", Factor: "nagle",
			Says: "Whether small writes may be held back (TCP_NODELAY off)."},
		{Key: "mtu", Kind: KindOctets, Field: "MTU", Label: "MTU %", Factor: "mtu", Says: "MTU of the underlay, at most that of testbed.link."},
		{Key: "family", Kind: KindWord, Field: "Family", Words: "ipv4|ipv6", Label: "IPv6", Unset: "ipv4", Dropped: true, Usual: "ipv4", Factor: "family",
			Says: "Version of IP that pods and nodes speak; ipv4 unless it is given."},
	}
}

// condition declares a condition that varies by itself. Headings name its levels by the label, "" where package words has more to say of them.
func condition(key string, kind Kind, field, words, unset, label, says string) Parameter {
	return Parameter{Key: key, Kind: kind, Field: "Conditions." + field, Words: words, Unset: unset, Factor: key, Label: label, Says: says}
}

// part declares a condition that varies with others.
func part(key, factor string, kind Kind, field string, most float64, says string) Parameter {
	return Parameter{Key: key, Kind: kind, Field: "Conditions." + field, Low: min(1, most), High: most, Factor: factor, Says: says}
}

// links are conditions of the links between the nodes, and of the offloads of all devices.
func links() []Parameter {
	rate := condition("link.rate", KindRate, "LinkRate", "", "", "links of %", "Rate limit of each direction of each link between nodes.")
	rate.Low, rate.High = float64(minRate), float64(maxRate)
	delay := condition("link.delay", KindDuration, "LinkDelay", "", "0s", "% delay each way", "How much later a packet arrives on one way between two nodes: a round trip takes twice as much more.")
	delay.High = float64(maxLinkDelay)
	loss := condition("link.loss", KindShare, "LinkLoss", "", "0%", "% loss each way", "Share of packets that get lost on one way between two nodes, up to 50%.")
	loss.High = maxLinkLoss
	count := part("link.count", "bond", KindCount, "LinkCount", maxLinkCount, "Links between each node and the switch; several are a bond.")
	count.Unset = "1"
	nodes := condition("link.nodes", KindWord, "NodeLinks", "", None, "",
		"Links of nodes that are not joined as the others are, NODE:[COUNTx]RATE[@DELAY] with a plus between nodes: node0:2x25Gbit/s, where node0 is the client's.")
	const hashing = "it takes two links (link.count: [2]) and a bond.mode that hashes: 802.3ad, balance-xor or balance-tlb"
	mode := part("bond.mode", "bond", KindWord, "BondMode", 0, "Mode of the bond, 802.3ad unless it is given.")
	mode.Needs = Need{Key: "link.count", Fix: "a bond takes two links: link.count: [2]"}
	mode.Words = "802.3ad|balance-xor|balance-rr|active-backup|broadcast|balance-tlb|balance-alb"
	hash := part("bond.xmit_hash_policy", "bond", KindWord, "BondHash", 0, "By what a bond spreads packets over its links, layer2 unless it is given.")
	hash.Needs = Need{Key: "link.count", Fix: hashing}
	hash.Words = "layer2|layer2+3|layer3+4|encap2+3|encap3+4|vlan+srcmac"
	return []Parameter{
		rate, delay, loss, count, nodes, mode, hash,
		condition("offload.tso", KindSwitch, "TSO", "on|off", "", "TSO %", "TCP segmentation offload of all devices."),
		condition("offload.gso", KindSwitch, "GSO", "on|off", "", "GSO %", "Generic segmentation offload of all devices."),
		condition("offload.gro", KindSwitch, "GRO", "on|off", "", "GRO %", "Generic receive offload of all devices."),
		condition("offload.lro", KindSwitch, "LRO", "on|off", "", "LRO %", "Large receive offload of all devices."),
	}
}

// pods are conditions of what pods and nodes do with packets besides moving them.
func pods() []Parameter {
	rules := part("policy.rules", "policy", KindCount, "PolicyRules", maxRules, "Rules that a packet is held against before the one that lets it in; 10 unless it is given.")
	rules.Needs = Need{Key: "policy", Fix: "say whose rules: policy: [none, nftables]"}
	admitted := part("policy.pods", "policy", KindCount, "PolicyPods", maxPods, "More pods of a cluster that its policies let in.")
	admitted.Needs = Need{Key: "policy", Fix: "policies of a cluster let pods in: policy: [none, kubernetes]"}
	services := part("service.count", "service", KindCount, "Services", maxRules, "Services that there are; 10 unless it is given.")
	services.Needs = Need{Key: "service", Fix: "say who resolves them: service: [pod, iptables]"}
	return []Parameter{
		condition("rps", KindSwitch, "RPS", "on|off", "", "RPS %", "Whether received packets are spread over the processors."),
		condition("bridge_netfilter", KindSwitch, "BridgeNetfilter", "on|off", "", "bridge netfilter %",
			"Whether bridges of nodes hand their packets to the firewall of IP (bridge-nf-call-iptables); as in the systems that a network stands for unless it is given."),
		condition("policy", KindWord, "Policy", "none|iptables|nftables|ebpf|kubernetes", None, "", "What guards the pods."),
		rules, admitted,
		condition("service", KindWord, "Service", "pod|iptables|nftables|ipvs|ebpf", ServicePod, "", "How the client reaches the server: by the pod's own address, or by a virtual one that something resolves."),
		services,
		condition("from", KindWord, "From", "pod|node", FromPod, "from the % itself", "Where the client is: in its pod, or in its node's own namespace."),
		condition("encryption", KindWord, "Encryption", "none|wireguard|ipsec", None, "encrypted by %", "What protects packets between nodes."),
		condition("qos", KindWord, "QoS", "guaranteed|best-effort", None, "% pods", "The class that pods run in: with processors of their own, or with neighbours that compete for them."),
	}
}
