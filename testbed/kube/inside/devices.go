package inside

import (
	"io"
	"net"

	"netdelta/testbed"
)

// Device is a network device of the pod's namespace.
type Device struct {
	Name      string   `json:"name"`
	MTU       int      `json:"mtu"`
	Addresses []string `json:"addresses,omitempty"`
}

// Seen is what there is in the pod's namespace: its devices, and the kernel's settings by name.
type Seen struct {
	Devices []Device          `json:"devices"`
	Sysctls map[string]string `json:"sysctls"`
}

// devices writes what there is. What can't be read is left out.
func devices(out io.Writer) error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	var seen Seen
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		d := Device{Name: i.Name, MTU: i.MTU}
		addresses, err := i.Addrs()
		if err != nil {
			return err
		}
		for _, a := range addresses {
			d.Addresses = append(d.Addresses, a.String())
		}
		seen.Devices = append(seen.Devices, d)
	}
	seen.Sysctls, _ = testbed.ReadSettings(testbed.Settings()) // what can't be read is left out
	return say(out, seen)
}
