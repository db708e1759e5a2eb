package galera

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/daemon"
	"netdelta/result"
)

// poll is how often a database is asked whether it is ready: asking takes a program, and processor time that it needs itself.
const poll = 200 * time.Millisecond

// stopTime is how long a database may take to end in order.
const stopTime = 10 * time.Second

// database is a MariaDB in a home, with the configuration that lies there.
type database struct {
	home   *daemon.Sandbox
	name   string
	cpus   []int
	daemon *daemon.Daemon // the one that was started last; nil before
}

// launch starts the database.
func (d *database) launch(args ...string) (err error) {
	spec := program(d.home, databaseProgram, args...)
	spec.Name, spec.CPUs, spec.Grace = d.name, d.cpus, stopTime
	d.daemon, err = d.home.Start(spec)
	return err
}

// errAlone is matched by the error of a node that has no other node to join, and never will have.
var errAlone = errors.New("no other node runs")

// until asks again and again until ready returns nil. The error of a database that ends meanwhile, or does not get there, has
// its last words.
func (d *database) until(ctx context.Context, what string, ready func(context.Context) error) error {
	err := daemon.Until(ctx, d.daemon, poll, ready)
	switch ended := d.ended(); {
	case err == nil || errors.Is(err, errAlone):
		return err
	case ended != nil:
		return ended
	}
	return fmt.Errorf("%s did not %s in time: %w; its last words: %s", d.name, what, err, d.words())
}

// ended is the error of a database that has ended; nil while it runs.
func (d *database) ended() error {
	select {
	case <-d.daemon.Ended():
	default:
		return nil
	}
	how := strings.TrimPrefix(strings.SplitN(d.daemon.Err().Error(), ";", 2)[0], d.name+": ")
	if d.full() {
		how += "; the memory for its data is full"
	}
	return fmt.Errorf("%s: %s; its last words: %s", d.name, how, d.words())
}

// full says whether the home has no room left.
func (d *database) full() bool {
	var room unix.Statfs_t
	err := d.home.Do(func() error { return unix.Statfs(d.home.Path(), &room) })
	return err == nil && room.Bavail < 16
}

// errorsMost and notesMost are how many lines of a log are shown: of errors or, where there are none, of whatever was last.
const (
	errorsMost = 8
	notesMost  = 2
)

// telling finds the lines of a log that say why a database has ended. That another node could not send it what it missed is a mere warning.
var telling = regexp.MustCompile(`\[ERROR\]|State transfer .*failed`)

// words are the last things that the database said: its errors, if there are any, for it says much else.
func (d *database) words() string {
	var errs []string
	for line := range strings.Lines(d.daemon.Said()) {
		if telling.MatchString(line) {
			errs = append(errs, strings.TrimSpace(line))
		}
	}
	most := errorsMost
	if len(errs) == 0 {
		errs, most = strings.Split(d.daemon.Log(), "\n"), notesMost
	}
	return strings.Join(errs[max(0, len(errs)-most):], "\n")
}

// sql has the database run statements, by its socket, and gives what they yield, a line for each row, tabs between columns.
func (d *database) sql(ctx context.Context, statements string) (string, error) {
	return ask(ctx, d.home, statements, "--socket="+d.home.Path(socketFile), "--user=root")
}

// ask has some database run statements.
func ask(ctx context.Context, home *daemon.Sandbox, statements string, where ...string) (string, error) {
	args := append([]string{"--no-defaults"}, where...)
	args = append(args, "--batch", "--skip-column-names", "--connect-timeout=3", "--execute="+statements)
	out, err := home.Run(ctx, daemon.Spec{Path: clientProgram, Args: args})
	return strings.TrimSpace(string(out)), err
}

// end has the database end in order, so that it begins where it was.
func (d *database) end(ctx context.Context) error {
	if _, err := d.sql(ctx, "shutdown"); err != nil {
		return err
	}
	select {
	case <-d.daemon.Ended():
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s did not end in time: %w; its last words: %s", d.name, context.Cause(ctx), d.words()), d.daemon.Kill())
	}
}

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

// Galera sums up what replication took since its figures were last cleared, which it does by a timer alone, of a second at
// least: keptFigures keeps them for longer than a trial, clearedFigures has them cleared in a second.
const (
	keptFigures    = "evs.stats_report_period=PT1H"
	clearedFigures = "evs.stats_report_period=PT1S"
)

// clearTime is how long clearing may take. Figures that were not cleared by then hold more than the trial's.
const clearTime = 3 * time.Second

// statusTime is how long a node may be out of reach around a burst: a network that was just swapped takes a moment.
const statusTime = 5 * time.Second

// Remote is a node as a client in another pod sees it.
type Remote struct {
	Home    *daemon.Sandbox
	Address netip.AddrPort
	stale   int64 // samples of the figures of replication that are being cleared
}

// Clear has the node clear its figures of replication. AwaitClear waits for it.
func (r *Remote) Clear(ctx context.Context) error {
	now, err := r.Replication(ctx)
	if err != nil || now == nil {
		return err
	}
	r.stale = now.Samples
	return r.set(ctx, clearedFigures)
}

// AwaitClear returns when the figures are cleared, and has them kept from then on.
func (r *Remote) AwaitClear(ctx context.Context) error {
	if r.stale == 0 {
		return nil
	}
	for begin := time.Now(); time.Since(begin) < clearTime; time.Sleep(poll) {
		now, err := r.Replication(ctx)
		if err != nil {
			return err
		}
		if now == nil || now.Samples < r.stale {
			break
		}
	}
	r.stale = 0
	return r.set(ctx, keptFigures)
}

func (r *Remote) set(ctx context.Context, option string) error {
	_, err := askRemote(ctx, r.Home, r.Address, "set global wsrep_provider_options='"+option+"'")
	return err
}

// Replication is what replication has taken so far; nil where nothing was replicated.
func (r *Remote) Replication(ctx context.Context) (*result.Replication, error) {
	for begin := time.Now(); ; time.Sleep(poll) {
		rows, err := askRemote(ctx, r.Home, r.Address, statusStatement)
		if err == nil || errors.Is(err, daemon.ErrClosed) || ctx.Err() != nil || time.Since(begin) > statusTime {
			return readStatus(rows).replication(), err
		}
	}
}

// Ask has the node run statements on the tables.
func (r *Remote) Ask(ctx context.Context, statements string) (string, error) {
	return askRemote(ctx, r.Home, r.Address, "use "+databaseName+"; "+statements)
}

// askRemote has the database at an address run statements.
func askRemote(ctx context.Context, home *daemon.Sandbox, at netip.AddrPort, statements string) (string, error) {
	return ask(ctx, home, statements, "--host="+at.Addr().String(), "--port="+strconv.Itoa(int(at.Port())), "--protocol=tcp", "--user="+userName)
}
