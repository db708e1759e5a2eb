package galera

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

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
	if err := s.join(ctx); err != nil {
		return err
	}
	if s.at.Separate && s.at.Pod == 0 {
		if err := s.offerTemplate(ctx); err != nil {
			return err
		}
	}
	return s.readVersions(ctx)
}

// join starts the node. One that ends on the way tries once more: the node that was to send it what it missed may have failed to.
func (s *server) join(ctx context.Context) error {
	first := s.at.Pod == 0
	err := s.begin(ctx, first, s.takesPart)
	if err == nil || first || ctx.Err() != nil || s.db.daemon == nil || s.db.ended() == nil {
		return err
	}
	if again := s.begin(ctx, first, s.takesPart); again != nil {
		return errors.Join(err, again)
	}
	return nil
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

// answerPatience is how long a node may take to answer at its own socket before it is taken to hang: less than its client waits for it (ask).
const answerPatience = 2 * time.Second

// endHung kills a node that does not answer. One that starts, or is sent what it missed, refuses to.
func (s *server) endHung(ctx context.Context) error {
	if s.db.ended() != nil {
		return nil
	}
	patient, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	if _, err := s.db.status(patient); err == nil || patient.Err() == nil || ctx.Err() != nil {
		return nil
	}
	return s.db.daemon.Kill()
}

// Restart implements workload.DaemonServer. A node that has ended joins again, and is sent what it missed; one that hangs is ended
// before. Nodes that have lost their quorum are given it back by the one of them that has come farthest. Where no node is left at all,
// the first one begins anew with the data of the beginning, and the others join it.
func (s *server) Restart(ctx context.Context) error {
	err := s.endHung(ctx)
	if err == nil && s.db.ended() == nil {
		err = s.db.until(ctx, "take part in the cluster", s.regain)
	}
	if s.db.ended() != nil { // now, or meanwhile
		err = s.again(ctx)
	}
	if err != nil {
		return fmt.Errorf("oltp: restart node %d: %w", s.at.Pod, err)
	}
	return nil
}

// again starts a node that has ended.
func (s *server) again(ctx context.Context) error {
	position, err := s.recover(ctx)
	if err == nil {
		if err = s.launch(ctx, s.regain, "--wsrep-start-position="+position); err == nil || ctx.Err() != nil {
			return err
		}
	}
	// The others have begun anew, or its data are of no use: it gets those that all began with.
	again := s.begin(ctx, errors.Is(err, errAlone), s.regain)
	if errors.Is(again, errAlone) { // the others have ended since
		again = s.begin(ctx, true, s.regain)
	}
	if again == nil {
		return nil
	}
	return errors.Join(err, again)
}

// recovered is how the database says at which transaction it was when it was killed.
var recovered = regexp.MustCompile(`WSREP: Recovered position: (\S+:\d+)`)

// recoverFile is where it says so.
const recoverFile = "recover.log"

// recover finds at which transaction a database that was killed was.
func (s *server) recover(ctx context.Context) (position string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("find where the database was: %w", err)
		}
	}()
	if _, err := s.home.Run(ctx, program(s.home, databaseProgram, "--wsrep-recover", "--log-error="+s.home.Path(recoverFile))); err != nil {
		return "", err
	}
	var said []byte
	err = s.home.Do(func() error {
		said, _ = os.ReadFile(s.home.Path(recoverFile)) // nothing, if it said nothing
		return os.RemoveAll(s.home.Path(recoverFile))
	})
	if err != nil {
		return "", err
	}
	m := recovered.FindSubmatch(said)
	if m == nil {
		return "", errors.New("it does not say so")
	}
	return string(m[1]), s.home.Write(positionFile, append(m[1], '\n'), 0o644, "")
}

// regain returns nil when the node serves. One whose group has no quorum, and to which all nodes that are there answer, has
// it given back. The error matches errAlone where the node is the first one, has not begun to serve, and no other runs.
func (s *server) regain(ctx context.Context) error {
	now, err := s.db.status(ctx)
	if err == nil && now.component == primary {
		return now.takesPart()
	}
	if time.Since(s.looked) >= look {
		if looked := s.help(ctx, err == nil); looked != nil {
			return looked
		}
		s.looked = time.Now()
	}
	if err != nil {
		return err
	}
	return now.takesPart()
}

// look is how often a node in want of a quorum looks at the others.
const look = time.Second

// help looks for a quorum: it has it given back to nodes that run, or says that none does.
func (s *server) help(ctx context.Context, serves bool) error {
	if !serves && s.at.Pod == 0 {
		if answer, unsure := s.others(ctx, groupPort); unsure == nil && len(answer) == 0 {
			return daemon.FinalError{Err: errors.Join(errAlone, s.db.daemon.Kill())}
		}
	}
	return s.elect(ctx)
}

// elect makes the node that has come farthest of those that run the first of a new group, unless one of them has a quorum, or
// one may be running that can't be reached.
func (s *server) elect(ctx context.Context) error {
	answer, unsure := s.others(ctx, Port)
	if unsure != nil {
		return fmt.Errorf("no quorum, and a node may be running that can't be reached: %w", unsure)
	}
	best, most := -1, int64(-1)
	for _, pod := range append(answer, s.at.Pod) {
		rows, err := s.sqlAt(ctx, pod, statusStatement)
		switch now := readStatus(rows); {
		case err != nil:
			continue // it is starting
		case now.component == primary:
			return nil
		case now.committed > most || now.committed == most && pod < best:
			best, most = pod, now.committed
		}
	}
	if best < 0 {
		return nil
	}
	if _, err := s.sqlAt(ctx, best, "set global wsrep_provider_options='pc.bootstrap=yes'"); err != nil {
		return fmt.Errorf("give the cluster its quorum back at node %d: %w", best, err)
	}
	return nil
}

// sqlAt has a node run statements: this one by its socket, another over the network.
func (s *server) sqlAt(ctx context.Context, pod int, statements string) (string, error) {
	if pod == s.at.Pod {
		return s.db.sql(ctx, statements)
	}
	return askRemote(ctx, s.home, netip.AddrPortFrom(s.at.Peers[pod], Port), statements)
}

// connectTime is how long a node may take to take a connection.
const connectTime = 3 * time.Second

// others tries to connect to a port of each other node, and returns those that take connections. One that refuses does not run;
// unsure is why it is not known of a node whether it runs.
func (s *server) others(ctx context.Context, port uint16) (answer []int, unsure error) {
	dialer := net.Dialer{Timeout: connectTime}
	for pod, peer := range s.at.Peers {
		if pod == s.at.Pod {
			continue
		}
		c, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(peer, port).String())
		switch {
		case err == nil:
			answer = append(answer, pod)
			_ = c.Close() // nothing was said
		case !errors.Is(err, unix.ECONNREFUSED):
			unsure = err
		}
	}
	return answer, unsure
}
