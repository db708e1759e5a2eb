package foreign

import (
	"errors"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/result"
)

// filled are parameters with a workload's defaults in place of what is not given. A pod without rights may not choose every congestion
// control (net.ipv4.tcp_allowed_congestion_control): there the one that nobody asked for is left to the kernel, as netdelta's own loops do.
func filled(p, defaults result.Params) result.Params {
	all := engine.Fill(p, defaults)
	if p.CongestionControl == "" && !permitted(all.CongestionControl) {
		all.CongestionControl = ""
	}
	return all
}

// permitted says whether this process may choose a congestion control. Whatever else is wrong with it is said by the program that uses it.
func permitted(name string) bool {
	if name == "" {
		return true
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer func() { _ = unix.Close(fd) }() // it was never connected
	return !errors.Is(unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name), unix.EPERM)
}
