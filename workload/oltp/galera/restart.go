package galera

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/daemon"
)

// Restart implements workload.DaemonServer. A node that has ended joins again, and is sent what it missed. Nodes that have lost
// their quorum are given it back by the one of them that has come farthest. Where no node is left at all, the first one begins
// anew with the data of the beginning, and the others join it.
func (s *server) Restart(ctx context.Context) error {
	var err error
	if s.db.ended() == nil {
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
