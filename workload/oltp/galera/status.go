package galera

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"netdelta/result"
)

// status is what a node says of itself and its group.
type status struct {
	component string // "Primary" with a quorum
	state     string // "Synced" when it has all that the group has
	ready     bool
	size      int   // of the component
	committed int64 // number of the last transaction
	galera    string
	latency   string // of replication, as Galera says it
}

// statusStatement is answered by a node without a quorum too.
const statusStatement = "show global status like 'wsrep%'"

// readStatus reads what the statement yields.
func readStatus(rows string) status {
	var s status
	for line := range strings.Lines(rows) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		switch strings.ToLower(name) {
		case "wsrep_cluster_status":
			s.component = value
		case "wsrep_local_state_comment":
			s.state = value
		case "wsrep_ready":
			s.ready = value == "ON"
		case "wsrep_cluster_size":
			s.size, _ = strconv.Atoi(value) // 0 is what is not known
		case "wsrep_last_committed":
			s.committed, _ = strconv.ParseInt(value, 10, 64)
		case "wsrep_provider_version":
			s.galera, _, _ = strings.Cut(value, "(")
		case "wsrep_evs_repl_latency":
			s.latency = value
		}
	}
	return s
}

// primary and synced are what a node says that is well.
const (
	primary = "Primary"
	synced  = "Synced"
)

// takesPart returns nil where the node serves, in a group with a quorum.
func (s status) takesPart() error {
	switch {
	case s.component != primary:
		return fmt.Errorf("it has lost its quorum: it sees %d of %d nodes (%s)", s.size, Nodes, s.component)
	case s.state != synced:
		return fmt.Errorf("it is not synced, but %s", s.state)
	case !s.ready:
		return fmt.Errorf("it refuses statements (wsrep_ready is OFF)")
	}
	return nil
}

// unwell says what ails a node whose group is to be whole; "" if nothing does.
func (s status) unwell() string {
	if err := s.takesPart(); err != nil {
		return err.Error()
	}
	if s.size != Nodes {
		return fmt.Sprintf("its cluster has %d of %d nodes", s.size, Nodes)
	}
	return ""
}

// replication reads Galera's figures: least, mean, greatest and standard deviation in seconds, and the number of samples, with
// slashes between. It is nil where nothing was replicated.
func (s status) replication() *result.Replication {
	fields := strings.Split(s.latency, "/")
	if len(fields) != 5 {
		return nil
	}
	var f [5]float64
	for i, text := range fields {
		var err error
		if f[i], err = strconv.ParseFloat(text, 64); err != nil || !(f[i] >= 0) || f[i] > 1e9 {
			return nil
		}
	}
	if f[4] < 1 {
		return nil
	}
	duration := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	return &result.Replication{Min: duration(f[0]), Mean: duration(f[1]), Max: duration(f[2]), Samples: int64(f[4])}
}

// status asks the database how it is.
func (d *database) status(ctx context.Context) (status, error) {
	rows, err := d.sql(ctx, statusStatement)
	return readStatus(rows), err
}
