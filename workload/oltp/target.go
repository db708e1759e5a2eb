package oltp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/oltp/galera"
	"netdelta/workload/tool/sysbench"
)

// targeted is how oltp speaks to a database of the user's own.
func targeted() *workload.Targeted {
	return &workload.Targeted{Schemes: []string{workload.SchemeMySQL}, Hold: hold, Dial: dialTarget, Clear: clearTarget}
}

// markTable is the table that marks sysbench's tables as netdelta's.
const markTable = "netdelta_marker"

// clientProgram runs statements.
const clientProgram = "mariadb"

// Files of a home: how the database's client and sysbench log in. Passwords are in no command line.
const (
	clientFile = "login.cnf"
	loadFile   = "sysbench.cnf"
)

// held is a database with netdelta's tables in it.
type held struct {
	home  *daemon.Sandbox
	data  galera.Data
	found workload.Found
}

// Found implements workload.Held.
func (h *held) Found() workload.Found { return h.found }

// dropWithin is how long the database may take to drop the tables, askAgain the pause before one that is away is asked again.
const (
	dropWithin = 20 * time.Second
	askAgain   = 500 * time.Millisecond
)

// Close implements workload.Held: it drops the tables.
func (h *held) Close() error { return errors.Join(h.drop(), h.home.Close()) }

// drop drops the tables, also when what made them was given up. A database that has ended may be on its way back: it is asked again.
func (h *held) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), dropWithin)
	defer cancel()
	_, err := query(ctx, h.home, dropping(h.data))
	for err != nil && away(err) && ctx.Err() == nil {
		time.Sleep(askAgain)
		if _, again := query(ctx, h.home, dropping(h.data)); again == nil || ctx.Err() == nil {
			err = again
		}
	}
	if err != nil {
		return fmt.Errorf("drop netdelta's tables: %w; do it by hand: %s", err, dropping(h.data))
	}
	return nil
}

// away says whether an error is of a database that can't be reached, or that ended meanwhile.
func away(err error) bool {
	return slices.ContainsFunc([]string{"ERROR 2002", "ERROR 2003", "ERROR 2013"}, func(number string) bool { return strings.Contains(err.Error(), number) })
}

// ownTables are the names of the tables that sysbench makes: they can't be chosen.
func ownTables(data galera.Data) []string {
	var names []string
	for i := range data.Tables {
		names = append(names, fmt.Sprintf("sbtest%d", i+1))
	}
	return names
}

// dropping are the statements that take netdelta's tables away, the mark last.
func dropping(data galera.Data) string {
	return "drop table if exists " + strings.Join(ownTables(data), ", ") + "; drop table if exists " + markTable
}

// hold logs in, refuses a database with such tables, and makes them.
func hold(ctx context.Context, p result.Params, t workload.Target) (_ workload.Held, err error) {
	home, err := login(t)
	if err != nil {
		return nil, fmt.Errorf("oltp: %s: %w", t, err)
	}
	h := &held{home: home, data: dataOf(p)}
	if err := h.ready(ctx, t); err != nil {
		return nil, errors.Join(fmt.Errorf("oltp: %s at %s: %w", t, t.At(), err), home.Close())
	}
	return h, nil
}

// ready fills the database. On error nothing of it is left, as far as the database lets that be.
func (h *held) ready(ctx context.Context, t workload.Target) error {
	version, err := query(ctx, h.home, "select version()")
	if err != nil {
		return denied(err)
	}
	there, err := query(ctx, h.home, fmt.Sprintf("select table_name from information_schema.tables where table_schema = database() and table_name in ('%s', '%s')",
		markTable, strings.Join(ownTables(h.data), "', '")))
	switch {
	case err != nil:
		return err
	case strings.Contains(there, markTable):
		data := h.data
		if mark, err := query(ctx, h.home, "select mark from "+markTable); err == nil {
			data.Tables = max(data.Tables, tablesOf(mark))
		}
		return fmt.Errorf("another run of netdelta uses this database, or one that was lost has left its tables (%s); if none is under way: %s", oneLine(there), dropping(data))
	case there != "":
		return fmt.Errorf("it has tables of these names already (%s), which netdelta leaves alone; name an empty database", oneLine(there))
	}
	h.found.Mark, h.found.Undo = fmt.Sprintf("%d-%s", h.data.Tables, rand.Text()), dropping(h.data)
	if _, err := query(ctx, h.home, marking(h.found.Mark)); err != nil {
		return fmt.Errorf("make tables: %w", denied(err))
	}
	run := target(h.home, t, h.data)
	run.Test, run.Threads = "oltp_read_write", min(h.data.Tables, defaultConnections)
	if said, err := h.home.Run(ctx, daemon.Spec{Path: sysbench.Program, Args: run.Prepare()}); err != nil {
		var failed *sysbench.FailedError
		if _, errParse := sysbench.Parse(said); ctx.Err() == nil && errors.As(errParse, &failed) {
			err = failed // it says why on its standard output
		}
		return errors.Join(fmt.Errorf("fill the tables: %w", err), h.drop())
	}
	answers, err := answering(ctx, h.home, t)
	if err != nil {
		return errors.Join(fmt.Errorf("look at what stands before it: %w", err), h.drop())
	}
	h.found.Says = fmt.Sprintf("%.80s on %s, with %v of netdelta's, which are dropped at the end", oneLine(version), answers, h.data)
	return nil
}

// tablesOf is how many tables a mark is of.
func tablesOf(mark string) int {
	number, _, _ := strings.Cut(mark, "-")
	n, _ := strconv.Atoi(number) // an older mark says nothing
	return cmp.Or(n, galera.Usual().Tables)
}

// marking are the statements that say whose the tables are going to be. Strict clusters refuse a table without a primary key.
func marking(mark string) string {
	return fmt.Sprintf("create table %s (made timestamp default current_timestamp, mark varchar(64) primary key); insert into %s (mark) values ('%s')", markTable, markTable, mark)
}

// clearTarget drops the tables of a hold whose agent was lost, unless they are gone, or another run has made its own since.
func clearTarget(ctx context.Context, t workload.Target, mark string) error {
	home, err := login(t)
	if err != nil {
		return fmt.Errorf("oltp: %s: %w", t, err)
	}
	found, err := query(ctx, home, "select count(*) from information_schema.tables where table_schema = database() and table_name = '"+markTable+"'")
	if err == nil && found != "0" {
		if found, err = query(ctx, home, "select mark from "+markTable); err == nil && found == mark {
			_, err = query(ctx, home, dropping(galera.Data{Tables: tablesOf(mark)}))
		}
	}
	if err != nil {
		err = fmt.Errorf("oltp: %s at %s: drop netdelta's tables: %w", t, t.At(), denied(err))
	}
	return errors.Join(err, home.Close())
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), ", ") }

// denied adds what to do to the error of a database that refuses the login or a statement.
func denied(err error) error {
	for number, fix := range map[string]string{
		"using password: NO":  "give the password by --target-password-file or $NETDELTA_TARGET_PASSWORD",
		"using password: YES": "see that --target-password-file or $NETDELTA_TARGET_PASSWORD has the user's password, and that the user may log in from where clients stand",
		"ERROR 1142":          "grant the user create, index, insert, update, delete, select and drop on the database",
		"ERROR 1044":          "grant the user all on the database", "ERROR 1049": "name a database that is there: netdelta makes none",
		"ERROR 2002": "is it the database's port, or its Service's with a ready pod behind it?", "ERROR 1130": "let the user log in from where clients stand",
	} {
		if strings.Contains(err.Error(), number) {
			return fmt.Errorf("%w; %s", err, fix)
		}
	}
	return err
}

// login opens a home with the files by which programs log in.
func login(t workload.Target) (*daemon.Sandbox, error) {
	for _, name := range []string{clientProgram, sysbench.Program} {
		if _, err := daemon.Look(name); err != nil {
			return nil, fmt.Errorf("%w: where clients stand (in Kubernetes, in the image of the pods) there has to be %s and %s, of the packages mariadb-client-core and sysbench", err, clientProgram, sysbench.Program)
		}
	}
	password := t.Password.Reveal()
	if strings.ContainsAny(password, "\r\n\x00") {
		return nil, errors.New("the password has the end of a line in it")
	}
	option, err := sysbench.Option("mysql-password", password)
	if err != nil {
		return nil, fmt.Errorf("the password: %w", err)
	}
	if os.Getenv(daemon.FolderVariable) == "" && os.Geteuid() != 0 {
		if err := os.Setenv(daemon.FolderVariable, os.TempDir()); err != nil { // a pod may make no namespaces
			return nil, err
		}
	}
	home, err := daemon.Open(clientHome)
	if err != nil {
		return nil, err
	}
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(password) + `"`
	host := fmt.Sprintf("host=%s\nport=%d\nprotocol=tcp\n", t.Address, t.Port)
	for name, text := range map[string]string{
		clientFile: "[client]\n" + host + "user=\"" + t.User + "\"\npassword=" + quoted + "\ndatabase=" + t.Database() + "\n",
		loadFile:   option,
	} {
		if err := home.Write(name, []byte(text), 0o600, ""); err != nil {
			return nil, errors.Join(err, home.Close())
		}
	}
	return home, nil
}

// query has the database run statements; more are further options of its client.
func query(ctx context.Context, home *daemon.Sandbox, statements string, more ...string) (string, error) {
	out, err := home.Run(ctx, daemon.Spec{Path: clientProgram, Args: append([]string{
		"--defaults-file=" + home.Path(clientFile), "--batch", "--skip-column-names", "--connect-timeout=10", "--execute=" + statements,
	}, more...)})
	return strings.TrimSpace(string(out)), err
}

// counted returns an error unless all tables have all their rows, as a database answers. More than mostCounted rows are not counted.
func counted(data galera.Data, ask func(statements string) (string, error)) error {
	if data.Tables*data.Rows > mostCounted {
		return nil
	}
	counts, err := ask(counting(data))
	if err != nil {
		return err
	}
	return whole(counts, data)
}

// counting are the statements that count the rows of each of netdelta's tables.
func counting(data galera.Data) string {
	all := gather.Each(ownTables(data), func(table string) string { return "select count(*) from " + table })
	return strings.Join(all, "; ")
}

// whole returns an error unless all tables have all their rows. Transactions put back what they take away: rows are only missing where a
// change to the network, or the database, lost some.
func whole(counts string, data galera.Data) error {
	lines := strings.Fields(counts)
	if len(lines) != data.Tables {
		return fmt.Errorf("%d tables were counted, not %d: %s", len(lines), data.Tables, oneLine(counts))
	}
	for i, rows := range lines {
		if rows != strconv.Itoa(data.Rows) {
			return fmt.Errorf("table %s has %s rows where %d were made: what was measured since is not of the same data; look at the database's log, and run again", ownTables(data)[i], rows, data.Rows)
		}
	}
	return nil
}

// target is the part of sysbench's runs that they have in common.
func target(home *daemon.Sandbox, t workload.Target, data galera.Data) sysbench.Run {
	run := data.Run()
	run.Server, run.User, run.Database, run.Config = t.At(), t.User, t.Database(), filepath.Clean(home.Path(loadFile))
	return run
}

// dialTarget opens a client of a database of the user's own.
func dialTarget(ctx context.Context, p result.Params, t workload.Target, cpu int) (engine.Client, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	home, err := login(t)
	if err != nil {
		return nil, fmt.Errorf("oltp: %s: %w", t, err)
	}
	data := dataOf(p)
	if err := counted(data, func(statements string) (string, error) { return query(ctx, home, statements) }); err != nil {
		return nil, errors.Join(fmt.Errorf("oltp: %s at %s: look at its tables before they are used: %w", t, t.At(), err), home.Close())
	}
	return newClient(ctx, p, home, fmt.Sprintf("oltp: database %s at %s", t.Database(), t.At()), target(home, t, data), cpu, nil, data)
}

// tries is how often it is asked who answers: a service or a proxy may choose another database for each connection.
const tries = 4

// answering says which databases answer at a target's address, and what stands before them. One that does not say, since it is too old or since
// the user may not ask, can be measured all the same.
func answering(ctx context.Context, home *daemon.Sandbox, t workload.Target) (string, error) {
	names, err := behind(ctx, home, t)
	switch {
	case ctx.Err() != nil:
		return "", err
	case err != nil:
		return fmt.Sprintf("an unknown host, perhaps behind a proxy or a translation of addresses: it does not say (%s)", strings.Join(strings.Fields(err.Error()), " ")), nil
	}
	return names, nil
}

// behind names the databases that answer at a target's address, and says so where connections do not reach them as clients make them: a proxy
// ends them and makes its own, and a translation of addresses has them come from elsewhere.
func behind(ctx context.Context, home *daemon.Sandbox, t workload.Target) (string, error) {
	var names []string
	far := ""
	for range tries {
		said, begins, err := through(ctx, home, t.At(), "select @@hostname, (select host from information_schema.processlist where id = connection_id())")
		if err != nil {
			return "", err
		}
		name, seen, _ := strings.Cut(said, "\t")
		names = append(names, name)
		if !begun(begins, seen) {
			far = fmt.Sprintf("; it sees a connection from %s that this client makes from %s: a proxy or a translation of addresses stands before it, and is measured with it", seen, begins)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 1 {
		far = ", one for each connection" + far
	}
	return strings.Join(names, " and ") + far, nil
}

// begun says whether a database sees a connection begin where it does. It may know a name in place of the address; where it says no
// port, it is not known.
func begun(at netip.AddrPort, seen string) bool {
	colon := strings.LastIndexByte(seen, ':')
	if colon < 0 {
		return true
	}
	host, err := netip.ParseAddr(seen[:colon])
	return seen[colon+1:] == strconv.Itoa(int(at.Port())) && (err != nil || host.Unmap() == at.Addr().Unmap())
}

// through has a database run statements over a connection that is made here, so that it is known where it begins: the database's client is
// led to it.
func through(ctx context.Context, home *daemon.Sandbox, to netip.AddrPort, statements string) (said string, begins netip.AddrPort, err error) {
	near, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", begins, err
	}
	far, err := new(net.Dialer).DialContext(ctx, "tcp", to.String())
	if err != nil {
		_ = near.Close()
		return "", begins, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		client, err := near.Accept()
		if err != nil {
			return // it is no longer wanted
		}
		go func() { // it ends when one of the two is closed
			_, _ = io.Copy(far, client)
		}()
		_, _ = io.Copy(client, far) // an error is the client's too
		_ = client.Close()
	}()
	said, err = query(ctx, home, statements, "--host=127.0.0.1", "--port="+strconv.Itoa(near.Addr().(*net.TCPAddr).Port))
	_, _ = near.Close(), far.Close()
	<-done
	return said, far.LocalAddr().(*net.TCPAddr).AddrPort(), err
}
