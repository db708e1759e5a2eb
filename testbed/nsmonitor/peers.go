package nsmonitor

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
)

// Peers lists the remote ends of the TCP connections to a port in the namespace of the calling thread. Where addresses are translated
// on the way, these are the translated ones. It needs no rights.
func Peers(port uint16) ([]netip.AddrPort, error) {
	var all []netip.AddrPort
	for _, path := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("read the connections: %w", err)
		}
		all = append(all, parsePeers(text, port)...)
	}
	return all, nil
}

// parsePeers reads /proc/net/tcp: socket numbers, local addresses, peer addresses and states.
func parsePeers(text []byte, port uint16) []netip.AddrPort {
	const local, remote, state, fields, established = 1, 2, 3, 4, "01"
	var all []netip.AddrPort
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) < fields || string(f[state]) != established {
			continue
		}
		here, ok1 := parseEnd(f[local])
		there, ok2 := parseEnd(f[remote])
		if ok1 && ok2 && here.Port() == port {
			all = append(all, there)
		}
	}
	return all
}

// parseEnd reads an address and a port: words of 32 bits in the machine's order, each in hexadecimal digits, a colon, and the
// port in hexadecimal digits.
func parseEnd(text []byte) (netip.AddrPort, bool) {
	digits, number, found := bytes.Cut(text, []byte(":"))
	port, err := strconv.ParseUint(string(number), 16, 16)
	raw := make([]byte, hex.DecodedLen(len(digits)))
	if _, bad := hex.Decode(raw, digits); !found || err != nil || bad != nil {
		return netip.AddrPort{}, false
	}
	const word = 4
	for i := 0; i+word <= len(raw); i += word {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	address, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(address.Unmap(), uint16(port)), ok
}
