package result

import "netdelta/unit"

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
