package result

import (
	"time"

	"netdelta/unit"
)

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
			Says: "URL of an endpoint of your own in a cluster, measured in place of a server of netdelta's: http://HOST[:PORT][/PATH], mysql://USER@HOST[:PORT]/DATABASE. It has no password."},
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

// condition declares a condition that varies by itself.
func condition(key string, kind Kind, field, words, unset, says string) Parameter {
	return Parameter{Key: key, Kind: kind, Field: "Conditions." + field, Words: words, Unset: unset, Factor: key, Says: says}
}

// part declares a condition that varies with others.
func part(key, factor string, kind Kind, field string, most float64, says string) Parameter {
	return Parameter{Key: key, Kind: kind, Field: "Conditions." + field, Low: min(1, most), High: most, Factor: factor, Says: says}
}

// links are conditions of the links between the nodes, and of the offloads of all devices.
func links() []Parameter {
	rate := condition("link.rate", KindRate, "LinkRate", "", "", "Rate limit of each direction of each link between nodes.")
	rate.Low, rate.High = float64(minRate), float64(maxRate)
	delay := condition("link.delay", KindDuration, "LinkDelay", "", "0s", "How much later a packet arrives on one way between two nodes: a round trip takes twice as much more.")
	delay.High = float64(maxLinkDelay)
	loss := condition("link.loss", KindShare, "LinkLoss", "", "0%", "Share of packets that get lost on one way between two nodes, up to 50%.")
	loss.High = maxLinkLoss
	count := part("link.count", "bond", KindCount, "LinkCount", maxLinkCount, "Links between each node and the switch; several are a bond.")
	count.Unset = "1"
	nodes := condition("link.nodes", KindWord, "NodeLinks", "", None,
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
		condition("offload.tso", KindSwitch, "TSO", "on|off", "", "TCP segmentation offload of all devices."),
		condition("offload.gso", KindSwitch, "GSO", "on|off", "", "Generic segmentation offload of all devices."),
		condition("offload.gro", KindSwitch, "GRO", "on|off", "", "Generic receive offload of all devices."),
		condition("offload.lro", KindSwitch, "LRO", "on|off", "", "Large receive offload of all devices."),
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
		condition("rps", KindSwitch, "RPS", "on|off", "", "Whether received packets are spread over the processors."),
		condition("policy", KindWord, "Policy", "none|iptables|nftables|ebpf|kubernetes", None, "What guards the pods."),
		rules, admitted,
		condition("service", KindWord, "Service", "pod|iptables|nftables|ipvs|ebpf", ServicePod, "How the client reaches the server: by the pod's own address, or by a virtual one that something resolves."),
		services,
		condition("from", KindWord, "From", "pod|node", FromPod, "Where the client is: in its pod, or in its node's own namespace."),
		condition("encryption", KindWord, "Encryption", "none|wireguard|ipsec", None, "What protects packets between nodes."),
		condition("qos", KindWord, "QoS", "guaranteed|best-effort", None, "The class that pods run in: with processors of their own, or with neighbours that compete for them."),
	}
}
