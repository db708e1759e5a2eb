package nsmonitor

import (
	"net/netip"
	"slices"
	"testing"
)

const connections = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0 10 0
   1: 0302F40A:4E20 0501F40A:C350 01 00000000:00000000 00:00000000 00000000     0        0 101 1 0 20 4 30 10 -1
   2: 0302F40A:4E20 0601F40A:C351 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0
   3: 0302F40A:4E21 0501F40A:C352 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0 20 4 30 10 -1
   4: 0000000000000000FFFF00000302F40A:4E20 0000000000000000FFFF00000701F40A:C353 01 0 0 0 0 0
   5: B80D0120000000000000000003000000:4E20 B80D0120000000000000000005000000:C354 01 0 0 0 0 0
   6: 0302F40A 0501F40A:C350 01
   7: 0302F40A:4E20 0501F4:C350 01
`

func TestParsePeers(t *testing.T) {
	want := []netip.AddrPort{
		netip.MustParseAddrPort("10.244.1.5:50000"), netip.MustParseAddrPort("10.244.1.7:50003"), netip.MustParseAddrPort("[2001:db8::5]:50004"),
	}
	if got := parsePeers([]byte(connections), 20000); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := parsePeers(nil, 20000); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

func FuzzParsePeers(f *testing.F) {
	f.Add([]byte(connections), uint16(20000))
	f.Fuzz(func(t *testing.T, text []byte, port uint16) {
		for _, p := range parsePeers(text, port) {
			if !p.IsValid() {
				t.Errorf("a peer without an address: %v", p)
			}
		}
	})
}
