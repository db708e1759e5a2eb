package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Settings returns the names of kernel settings that change what is measured, except the settings that a network needs itself. The
// record of a testbed holds their values in each kernel that has them.
func Settings() []string {
	return []string{
		"net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc", "net.core.dev_weight", "net.core.netdev_budget",
		"net.core.netdev_budget_usecs", "net.core.netdev_max_backlog", "net.core.rmem_default", "net.core.rmem_max",
		"net.core.wmem_default", "net.core.wmem_max", "net.core.gro_normal_batch", "net.core.rps_sock_flow_entries",
		"net.ipv4.ip_forward", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_allowed_congestion_control",
		"net.ipv4.tcp_autocorking", "net.ipv4.tcp_available_congestion_control", "net.ipv4.tcp_congestion_control",
		"net.ipv4.tcp_ecn", "net.ipv4.tcp_fastopen", "net.ipv4.tcp_limit_output_bytes", "net.ipv4.tcp_mem",
		"net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_rmem", "net.ipv4.tcp_sack",
		"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_tso_win_divisor",
		"net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem", "net.ipv4.udp_mem", "net.ipv4.udp_rmem_min", "net.ipv4.udp_wmem_min",
	}
}

// SettingPath is the file of a kernel setting. In a name with slashes dots are part of a device's name.
func SettingPath(name string) string {
	if !strings.Contains(name, "/") {
		name = strings.ReplaceAll(name, ".", "/")
	}
	return "/proc/sys/" + name
}

// ReadSettings reads settings in the calling thread's network namespace. Those that this kernel does not have are left out; the error is
// about those that can't be read, and the others are there all the same.
func ReadSettings(names []string) (values map[string]string, err error) {
	values = map[string]string{}
	for _, name := range names {
		text, failed := os.ReadFile(SettingPath(name))
		switch {
		case failed == nil:
			values[name] = strings.Join(strings.Fields(string(text)), " ")
		case !errors.Is(failed, fs.ErrNotExist):
			err = errors.Join(err, fmt.Errorf("read %s: %w", name, failed))
		}
	}
	return values, err
}
