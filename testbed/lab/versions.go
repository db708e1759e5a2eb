package lab

import (
	"fmt"
	"os/exec"
	"strings"

	"netdelta/network"
)

// Versions asks the programs that build the network for their versions. The version of iptables says which of its two forms it is: rules of nftables ("nf_tables")
// or of its own ("legacy"), which cost differently.
func (l *Testbed) Versions() (map[string]string, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := map[string]string{}
	for _, t := range network.Of[network.IPTables](l.Plan().Ops) {
		if all[t.Program()] != "" {
			continue
		}
		path, err := superuserTool(t.Program())
		if err != nil {
			return nil, err
		}
		said, err := exec.Command(path, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("ask %s for its version: %w", path, err)
		}
		// "iptables-restore v1.8.9 (nf_tables)"
		_, version, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
		all[t.Program()] = version
	}
	return all, nil
}
