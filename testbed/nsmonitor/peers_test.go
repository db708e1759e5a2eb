package nsmonitor

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"netdelta/internal/require"
)

const (
	connections = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0 10 0
   1: 0302F40A:4E20 0501F40A:C350 01 00000000:00000000 00:00000000 00000000     0        0 101 1 0 20 4 30 10 -1
   2: 0302F40A:4E20 0601F40A:C351 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0
   3: 0302F40A:4E21 0501F40A:C352 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0 20 4 30 10 -1
`
	connections6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000302F40A:4E20 0000000000000000FFFF00000701F40A:C353 01 00000000:00000000 00:00000000 00000000     0        0 103 1 0 20 4 30 10 -1
   1: B80D0120000000000000000003000000:4E20 B80D0120000000000000000005000000:C354 01 00000000:00000000 00:00000000 00000000     0        0 104 1 0 20 4 30 10 -1
`
)

func TestPeers(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "net", name), []byte(text), 0o600))
	}
	check := func(peers ...string) {
		t.Helper()
		got, err := peersOf(folder, 20000)
		require.NoError(t, err)
		if want := parsed(peers); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "net"), 0o700))
	write("tcp", connections)
	check("10.244.1.5:50000") // a kernel without IPv6
	write("tcp6", connections6)
	check("10.244.1.5:50000", "10.244.1.7:50003", "[2001:db8::5]:50004")
	write("tcp", "   0: 0302F40A 0501F40A:C350 01\n   1: 0302F40A:4E20 0501F4:C350 01\n")
	if got, err := peersOf(folder, 20000); err == nil {
		t.Errorf("of what is no list of connections: %v", got)
	}
}

func parsed(texts []string) (all []netip.AddrPort) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddrPort(text))
	}
	return all
}
