package galera

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"regexp"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/result"
	"netdelta/workload"
)

// server is one node of the cluster.
type server struct {
	at      workload.Member
	data    Data
	home    *daemon.Sandbox
	db      *database
	version string    // of the database and of Galera
	looked  time.Time // when it last looked at the other nodes, for want of a quorum

	templates io.Closer // ends giving the template to other nodes; nil where none is given
}

var _ workload.DaemonServer = (*server)(nil)

// Serve starts a node: the first one begins the group, the others join it.
func Serve(ctx context.Context, at workload.Member, data Data) (engine.Server, error) {
	if len(at.Peers) != Nodes || at.Pod < 0 || at.Pod >= Nodes {
		return nil, fmt.Errorf("oltp: a cluster of %d nodes has no pod %d of %d", Nodes, at.Pod, len(at.Peers))
	}
	home, err := daemon.Open(homeSize + data.room())
	if err != nil {
		return nil, fmt.Errorf("oltp: start node %d: %w", at.Pod, err)
	}
	s := &server{at: at, data: data, home: home, db: &database{home: home, name: fmt.Sprintf("mariadbd.%d", at.Pod), cpus: daemon.Pin(at.CPU)}}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("oltp: start node %d: %w", at.Pod, err), home.Close())
	}
	return s, nil
}

func (s *server) open(ctx context.Context) error {
	err := s.home.Write(configFile, []byte(base(s.home.Path)+clustered(s.at)), 0o644, "")
	if err := errors.Join(err, s.home.Write(transferFile, []byte(transferScript(s.home.Path)), 0o755, "")); err != nil {
		return err
	}
	if err := s.begin(ctx, s.at.Pod == 0, s.takesPart); err != nil {
		return err
	}
	if s.at.Separate && s.at.Pod == 0 {
		if err := s.offerTemplate(ctx); err != nil {
			return err
		}
	}
	return s.readVersions(ctx)
}

// begin starts the node with the database that all begin with, as the first of a new group or as one that joins, and returns when
// ready does so with nil.
func (s *server) begin(ctx context.Context, first bool, ready func(context.Context) error) error {
	if err := copyTemplate(ctx, s.home, s.at, s.data); err != nil {
		return err
	}
	was, err := s.saved()
	if err != nil {
		return err
	}
	if err := s.home.Write(positionFile, []byte(was+"\n"), 0o644, ""); err != nil {
		return err
	}
	if first {
		return s.launch(ctx, s.takesPart, "--wsrep-new-cluster")
	}
	return s.launch(ctx, ready)
}

// launch starts the node with the data that it has, and returns when it is ready.
func (s *server) launch(ctx context.Context, ready func(context.Context) error, args ...string) error {
	if err := s.free(ctx); err != nil {
		return err
	}
	if err := s.db.launch(args...); err != nil {
		return err
	}
	return s.db.until(ctx, "take part in the cluster", ready)
}

// free returns nil when no other program listens where the node would: Galera does not always say so.
func (s *server) free(ctx context.Context) error {
	own := s.at.Peers[s.at.Pod]
	for _, port := range []uint16{Port, groupPort, missedPort} {
		if err := daemon.PortFree(ctx, netip.AddrPortFrom(own, port)); err != nil {
			return fmt.Errorf("%s needs port %d: %w; end the program that has it", s.db.name, port, err)
		}
	}
	return nil
}

// takesPart returns nil when the node serves.
func (s *server) takesPart(ctx context.Context) error {
	now, err := s.db.status(ctx)
	return cmp.Or(err, now.takesPart())
}

// Where a database that has ended in order writes at which transaction it did.
const saveFile = dataFolder + "/grastate.dat"

var (
	savedGroup    = regexp.MustCompile(`(?m)^uuid:\s+(\S+)$`)
	savedPosition = regexp.MustCompile(`(?m)^seqno:\s+(\d+)$`)
	savedSafe     = regexp.MustCompile(`(?m)^safe_to_bootstrap: 0$`)
)

// saved is the position of a database that has ended in order, which may then be the first of a group.
func (s *server) saved() (position string, err error) {
	err = s.home.Do(func() error {
		text, err := os.ReadFile(s.home.Path(saveFile))
		if err != nil {
			return err
		}
		group, at := savedGroup.FindSubmatch(text), savedPosition.FindSubmatch(text)
		if group == nil || at == nil {
			return fmt.Errorf("%s has no position: %q", saveFile, text)
		}
		position = string(group[1]) + ":" + string(at[1])
		return os.WriteFile(s.home.Path(saveFile), savedSafe.ReplaceAll(text, []byte("safe_to_bootstrap: 1")), 0o644)
	})
	if err != nil {
		return "", fmt.Errorf("read where the database is: %w", err)
	}
	return position, nil
}

// readVersions asks for the versions that are shown to people.
func (s *server) readVersions(ctx context.Context) error {
	version, err := s.db.sql(ctx, "select version()")
	if err != nil {
		return err
	}
	now, err := s.db.status(ctx)
	s.version = version + ", Galera " + now.galera
	return err
}

// Health implements workload.DaemonServer.
func (s *server) Health(ctx context.Context) workload.Health {
	h := workload.Health{Services: []result.Service{{Name: s.db.name, Version: s.version, Memory: s.db.daemon.Memory()}}}
	now, err := s.db.status(ctx)
	ended := s.db.ended()
	switch {
	case ended != nil:
		h.Unwell, h.Ended = ended.Error(), true
	case err != nil:
		h.Unwell = fmt.Sprintf("%s does not answer: %v", s.db.name, err)
	default:
		if ails := now.unwell(); ails != "" {
			h.Unwell = s.db.name + ": " + ails
		}
	}
	return h
}

// Totals implements engine.Server. A node counts for all clients together: each asks for its own share.
func (s *server) Totals() engine.Totals { return engine.Totals{} }

// Close implements engine.Server.
func (s *server) Close() error {
	// What a node has in its memory is not needed any more: to end it in order would take seconds.
	err := s.db.daemon.Kill()
	if s.templates != nil {
		err = errors.Join(err, s.templates.Close())
	}
	if err = errors.Join(err, s.home.Close()); err != nil {
		return fmt.Errorf("oltp: end node %d: %w", s.at.Pod, err)
	}
	return nil
}
