package path

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// A frame's parts, each with what follows it.
func etherFrame(kind uint16, rest []byte) []byte {
	return join(make([]byte, 12), binary.BigEndian.AppendUint16(nil, kind), rest)
}

func packet4(protocol byte, cut uint16, rest []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0x45, 0}, uint16(20+len(rest)))
	b = binary.BigEndian.AppendUint16(append(b, 0, 0), cut)
	return join(b, []byte{64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}, rest)
}

func packet6(next byte, rest []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, uint16(len(rest)))
	from, to := netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	return join(b, []byte{next, 64}, from.AsSlice(), to.AsSlice(), rest)
}

func datagramTo(port uint16, rest []byte) []byte {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, 4000), port)
	return join(binary.BigEndian.AppendUint16(b, uint16(8+len(rest))), []byte{0, 0}, rest)
}

// segment is a TCP header with options, and a payload.
func segment(options int, rest []byte) []byte {
	b := make([]byte, 20+options)
	binary.BigEndian.PutUint16(b, 4000)
	binary.BigEndian.PutUint16(b[2:], 5000)
	b[12] = byte((20 + options) / 4 << 4)
	return join(b, rest)
}

func vxlanWith(frame []byte) []byte {
	return join([]byte{8, 0, 0, 0, 0, 16, 1, 0}, frame)
}

func geneveWith(options int, frame []byte) []byte {
	return join([]byte{byte(options / 4), 0, 0x65, 0x58, 0, 0, 1, 0}, make([]byte, options), frame)
}

// greWith is GRE around a packet of a type, with as many words as its flags ask for.
func greWith(flags, kind uint16, words int, packet []byte) []byte {
	return join(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, flags), kind), make([]byte, 4*words), packet)
}

func espWith(number byte, rest []byte) []byte {
	return join([]byte{0, 0, number, 1, 0, 0, 0, 7}, rest)
}

func wireguardWith(kind byte, rest []byte) []byte {
	return join([]byte{kind, 0, 0, 0}, make([]byte, 12), rest)
}

// Packets that another is wrapped in.
func TestDecodeTunnels(t *testing.T) {
	data := make([]byte, 100)
	tcp4, tcp6 := packet4(6, 0x4000, segment(12, data)), packet6(6, segment(12, data))
	udp := func(port uint16, rest []byte) []byte {
		return etherFrame(0x0800, packet4(17, 0, datagramTo(port, rest)))
	}
	for name, c := range map[string]struct {
		head         []byte
		depth        int
		wrap, sealed string
		headers      unit.Bytes
	}{
		"ipip":                        {etherFrame(0x0800, packet4(4, 0, tcp4)), 2, "ipip", "", 20 + 20 + 32},
		"ipip over IPv6":              {etherFrame(0x86dd, packet6(41, tcp6)), 2, "ipip", "", 40 + 40 + 32},
		"no ipip: another version":    {etherFrame(0x0800, packet4(4, 0, tcp6)), 1, "", "", 20},
		"gre":                         {etherFrame(0x0800, packet4(47, 0, greWith(0, 0x0800, 0, tcp4))), 2, "gre", "", 20 + 4 + 20 + 32},
		"gre over IPv6":               {etherFrame(0x86dd, packet6(47, greWith(0, 0x86dd, 0, tcp6))), 2, "gre", "", 40 + 4 + 40 + 32},
		"gre with a key and a number": {etherFrame(0x0800, packet4(47, 0, greWith(0x3000, 0x0800, 2, tcp4))), 2, "gre", "", 20 + 12 + 20 + 32},
		"gre around a frame":          {etherFrame(0x0800, packet4(47, 0, greWith(0, 0x6558, 0, etherFrame(0x0800, tcp4)))), 2, "gretap", "", 20 + 4 + 14 + 20 + 32},
		"no gre: version 1":           {etherFrame(0x0800, packet4(47, 0, greWith(1, 0x0800, 0, tcp4))), 1, "", "", 20},
		"no gre: cut off in the key":  {etherFrame(0x0800, packet4(47, 0, greWith(0x2000, 0x0800, 0, nil))), 1, "", "", 20},
		"geneve":                      {udp(6081, geneveWith(0, etherFrame(0x0800, tcp4))), 2, "geneve", "", 20 + 8 + 8 + 14 + 20 + 32},
		"geneve with options":         {udp(6081, geneveWith(8, etherFrame(0x86dd, tcp6))), 2, "geneve", "", 20 + 8 + 16 + 14 + 40 + 32},
		"no geneve: cut off":          {udp(6081, geneveWith(248, nil)[:100]), 1, "", "", 28},
		"udp-tun":                     {udp(8285, tcp4), 2, "udp-tun", "", 20 + 8 + 20 + 32},
		"wireguard":                   {udp(51820, wireguardWith(4, data)), 1, "", "wireguard", 0},
		"a handshake of wireguard":    {udp(51820, wireguardWith(1, data)), 1, "", "", 28},
		"esp":                         {etherFrame(0x0800, packet4(50, 0, espWith(1, data))), 1, "", "esp", 0},
		"esp over IPv6":               {etherFrame(0x86dd, packet6(50, espWith(1, data))), 1, "", "esp", 0},
		"no esp: a reserved number":   {etherFrame(0x0800, packet4(50, 0, espWith(0, data))), 1, "", "", 20},
		"vxlan in wireguard's place":  {udp(51820, vxlanWith(etherFrame(0x0800, tcp4))), 1, "", "", 28},
		"ipip around esp":             {etherFrame(0x0800, packet4(4, 0, packet4(50, 0, espWith(1, data)))), 2, "ipip", "esp", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := decoder{encapsulations(nil)}.decode(c.head)
			if f.depth != c.depth || f.sealed != c.sealed || f.headers != c.headers || f.wrap[f.depth-1] != c.wrap {
				t.Errorf("depth %d, wrapped in %q, sealed by %q, headers %d, want %+v", f.depth, f.wrap[f.depth-1], f.sealed, f.headers, c)
			}
		})
	}
}

// A tunnel's device has no link header.
func TestDecodeBare(t *testing.T) {
	packet := packet4(6, 0x4000, segment(12, make([]byte, 100)))
	d := decoder{encapsulations(nil)}
	f := d.packet(testbed.Packet{Head: packet, Bare: true, Length: unit.Bytes(len(packet))})
	if f.depth != 1 || f.headers != 52 || f.layer[0].destination.Port() != 5000 {
		t.Errorf("bare: %+v", f)
	}
	if f := d.packet(testbed.Packet{Head: packet}); f.depth != 0 {
		t.Errorf("a packet was taken for a frame: %+v", f)
	}
}

func TestDecode(t *testing.T) {
	data := make([]byte, 100)
	tcp4 := packet4(6, 0x4000, segment(12, data))
	for name, c := range map[string]struct {
		head     []byte
		depth    int
		wrap     string // of the innermost
		port     uint16 // destination of the innermost
		size     unit.Bytes
		headers  unit.Bytes
		fragment bool
	}{
		"tcp over IPv4":             {etherFrame(0x0800, tcp4), 1, "", 5000, 152, 52, false},
		"tcp over IPv6":             {etherFrame(0x86dd, packet6(6, segment(12, data))), 1, "", 5000, 172, 72, false},
		"with a VLAN tag":           {etherFrame(0x8100, join([]byte{0, 7}, etherFrame(0x0800, tcp4)[12:])), 1, "", 5000, 152, 52, false},
		"with two VLAN tags":        {etherFrame(0x88a8, join([]byte{0, 7, 0x81, 0, 0, 8}, etherFrame(0x0800, tcp4)[12:])), 1, "", 5000, 152, 52, false},
		"with three":                {etherFrame(0x88a8, join([]byte{0, 7, 0x81, 0, 0, 8, 0x81, 0, 0, 9}, etherFrame(0x0800, tcp4)[12:])), 0, "", 0, 0, 0, false},
		"udp":                       {etherFrame(0x0800, packet4(17, 0, datagramTo(53, data))), 1, "", 53, 128, 28, false},
		"vxlan over IPv4":           {etherFrame(0x0800, packet4(17, 0, datagramTo(4789, vxlanWith(etherFrame(0x0800, tcp4))))), 2, "vxlan", 5000, 202, 102, false},
		"vxlan over IPv6":           {etherFrame(0x86dd, packet6(17, datagramTo(8472, vxlanWith(etherFrame(0x86dd, packet6(6, segment(0, data))))))), 2, "vxlan", 5000, 230, 130, false},
		"vxlan in vxlan":            {etherFrame(0x0800, packet4(17, 0, datagramTo(4789, vxlanWith(etherFrame(0x0800, packet4(17, 0, datagramTo(8472, vxlanWith(etherFrame(0x0800, tcp4))))))))), 3, "vxlan", 5000, 252, 152, false},
		"no vxlan: reserved bits":   {etherFrame(0x0800, packet4(17, 0, datagramTo(4789, join([]byte{8, 1, 0, 0, 0, 0, 1, 0}, etherFrame(0x0800, tcp4))))), 1, "", 4789, 202, 28, false},
		"no vxlan: nothing inside":  {etherFrame(0x0800, packet4(17, 0, datagramTo(4789, vxlanWith(data)))), 1, "", 4789, 136, 28, false},
		"no vxlan: another port":    {etherFrame(0x0800, packet4(17, 0, datagramTo(4788, vxlanWith(etherFrame(0x0800, tcp4))))), 1, "", 4788, 202, 28, false},
		"first fragment":            {etherFrame(0x0800, packet4(17, 0x2000, datagramTo(53, data))), 1, "", 53, 128, 28, true},
		"later fragment":            {etherFrame(0x0800, packet4(17, 0x0010, datagramTo(53, data))), 1, "", 0, 128, 0, true},
		"first fragment of IPv6":    {etherFrame(0x86dd, packet6(44, join([]byte{17, 0, 0, 1, 0, 0, 0, 9}, datagramTo(53, data)))), 1, "", 53, 156, 56, true},
		"later fragment of IPv6":    {etherFrame(0x86dd, packet6(44, join([]byte{17, 0, 0, 0x80, 0, 0, 0, 9}, data))), 1, "", 0, 148, 0, true},
		"extensions of IPv6":        {etherFrame(0x86dd, packet6(0, join([]byte{60, 0, 5, 2, 0, 0, 1, 0}, []byte{17, 0, 1, 4, 0, 0, 0, 0}, datagramTo(53, data)))), 1, "", 53, 164, 64, false},
		"a fragment in a tunnel":    {etherFrame(0x0800, packet4(17, 0, datagramTo(4789, vxlanWith(etherFrame(0x0800, packet4(17, 0x2000, datagramTo(53, data))))))), 2, "vxlan", 53, 178, 78, true},
		"cut off in the tcp header": {etherFrame(0x0800, tcp4)[:50], 1, "", 0, 152, 0, false},
		"cut off in the IP header":  {etherFrame(0x0800, tcp4)[:33], 0, "", 0, 0, 0, false},
		"arp":                       {etherFrame(0x0806, data), 0, "", 0, 0, 0, false},
		"nothing":                   {nil, 0, "", 0, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := decoder{encapsulations(nil)}.decode(c.head)
			if f.depth != c.depth || f.headers != c.headers || f.fragment() != c.fragment {
				t.Fatalf("depth %d, headers %d, fragment %v, want %+v", f.depth, f.headers, f.fragment(), c)
			}
			if c.depth == 0 {
				return
			}
			last := f.layer[f.depth-1]
			if f.layer[0].size != c.size || last.destination.Port() != c.port || f.wrap[f.depth-1] != c.wrap {
				t.Errorf("size %d, port %d, wrapped in %q, want %+v", f.layer[0].size, last.destination.Port(), f.wrap[f.depth-1], c)
			}
		})
	}
}

func TestOnWire(t *testing.T) {
	d := decoder{encapsulations(nil)}
	inner := etherFrame(0x0800, packet4(6, 0x4000, segment(12, make([]byte, 3000))))
	head := etherFrame(0x0800, packet4(17, 0, datagramTo(4789, vxlanWith(inner))))
	jumbo := etherFrame(0x86dd, packet6(6, segment(0, nil)))
	copy(jumbo[18:], []byte{0, 0}) // a length that does not fit
	for name, c := range map[string]struct {
		p    testbed.Packet
		want unit.Bytes
	}{
		"a whole packet":            {testbed.Packet{Head: head, Length: unit.Bytes(len(head))}, 20 + 8 + 8 + 14 + 20 + 32 + 3000},
		"a train":                   {testbed.Packet{Head: head[:192], Length: unit.Bytes(len(head)), Segment: 1398}, 1500},
		"a train of less than one":  {testbed.Packet{Head: head[:192], Length: 500, Segment: 1398}, 486},
		"a train, cut off":          {testbed.Packet{Head: head[:38], Length: unit.Bytes(len(head)), Segment: 1398}, 0},
		"a packet without a length": {testbed.Packet{Head: jumbo, Length: 70000}, 70000 - 14},
		"a frame that is not IP":    {testbed.Packet{Head: head[20:], Length: 70000}, 0},
	} {
		if got := d.decode(c.p.Head).onWire(c.p); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, int64(got), int64(c.want))
		}
	}
}

func FuzzDecode(f *testing.F) {
	tcp := packet4(6, 0x4000, segment(12, make([]byte, 10)))
	f.Add(etherFrame(0x0800, tcp))
	f.Add(etherFrame(0x86dd, packet6(0, join([]byte{44, 0, 5, 2, 0, 0, 1, 0}, []byte{17, 0, 0, 1, 0, 0, 0, 9}, datagramTo(53, nil)))))
	f.Add(etherFrame(0x8100, join([]byte{0, 7}, etherFrame(0x0800, packet4(17, 0, datagramTo(4789, vxlanWith(etherFrame(0x0800, tcp)))))[12:])))
	f.Add(etherFrame(0x0800, packet4(4, 0, tcp)))
	f.Add(etherFrame(0x86dd, packet6(41, packet6(6, segment(0, nil)))))
	f.Add(etherFrame(0x0800, packet4(47, 0, greWith(0x3000, 0x0800, 2, tcp))))
	f.Add(etherFrame(0x86dd, packet6(47, greWith(0xb000, 0x6558, 3, etherFrame(0x0800, tcp)))))
	f.Add(etherFrame(0x0800, packet4(17, 0, datagramTo(6081, geneveWith(8, etherFrame(0x0800, tcp))))))
	f.Add(etherFrame(0x0800, packet4(17, 0, datagramTo(8285, tcp))))
	f.Add(etherFrame(0x0800, packet4(17, 0, datagramTo(51820, wireguardWith(4, make([]byte, 32))))))
	f.Add(etherFrame(0x86dd, packet6(50, espWith(1, make([]byte, 32)))))
	d := decoder{encapsulations(nil)}
	f.Fuzz(func(t *testing.T, head []byte) {
		original := bytes.Clone(head)
		got := d.decode(head)
		if !bytes.Equal(head, original) {
			t.Error("the frame was written to")
		}
		if got.depth < 0 || got.depth > layers || got.start+got.headers > unit.Bytes(len(head)) {
			t.Fatalf("%+v of %d bytes", got, len(head))
		}
		for i, l := range got.layer[:got.depth] {
			if (i == 0) != (got.wrap[i] == "") || !l.source.Addr().IsValid() || l.size < 0 {
				t.Errorf("layer %d is %+v, wrapped in %q", i, l, got.wrap[i])
			}
		}
		// What was not sampled can't be known: a shorter head shows no more.
		if len(head) > 0 && d.decode(head[:len(head)-1]).depth > got.depth {
			t.Error("a shorter head shows more")
		}
		got.control(head)
		if bare := d.packet(testbed.Packet{Head: head, Bare: true}); bare.start != 0 || bare.depth > layers || bare.headers > unit.Bytes(len(head)) {
			t.Errorf("bare: %+v of %d bytes", bare, len(head))
		}
		if n := got.onWire(testbed.Packet{Head: head, Length: unit.Bytes(len(head)), Segment: 100}); n < 0 {
			t.Errorf("%d bytes on the wire", int64(n))
		}
	})
}

// The numbers of the protocols are the same as in the plans' rules.
func TestProtocols(t *testing.T) {
	l, _, ok := ip(packet4(17, 0, datagramTo(53, nil)))
	if !ok || l.protocol != network.UDP {
		t.Errorf("%+v", l)
	}
}
