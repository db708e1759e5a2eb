package galera

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"netdelta/internal/daemon"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool"
	"netdelta/workload/tool/sysbench"
)

// templateSize is what a home takes in which a template of the usual data is made: the data, and what Galera keeps of how they came
// about. More data take twice their room.
const templateSize = 512 * unit.MiB

// templateTime is how long making one of the usual data may take: some 4 s, and more on a busy machine. slowestRow is what each further
// row may add.
const (
	templateTime = 3 * time.Minute
	slowestRow   = 500 * time.Microsecond
)

// Time is how long making the data may take.
func (d Data) Time() time.Duration {
	return templateTime + time.Duration(max(0, d.Tables*d.Rows-Usual().Tables*Usual().Rows))*slowestRow
}

// release is the version of the database: "mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64".
var release = regexp.MustCompile(`Ver (\d+\.\d+\.\d+)-MariaDB\S*`)

// oldest is the oldest version of the database that has all that is asked of it.
const oldest = "10.5"

// databaseVersion asks the database for its version: the whole line, which differs from build to build.
func databaseVersion(ctx context.Context, home *daemon.Sandbox) (string, error) {
	out, err := home.Run(ctx, daemon.Spec{Path: databaseProgram, Args: []string{"--no-defaults", "--version"}})
	if err != nil {
		return "", fmt.Errorf("ask the database for its version: %w", err)
	}
	return readVersion(string(out))
}

// readVersion refuses what is too old, or another database.
func readVersion(said string) (string, error) {
	said = strings.TrimSpace(said)
	m := release.FindStringSubmatch(said)
	if m == nil {
		return "", fmt.Errorf("the database says that it is %q: it has to be MariaDB; install mariadb-server-core", said)
	}
	if tool.Older(m[1], oldest) {
		return "", fmt.Errorf("MariaDB %s is too old: it has to be %s or newer; install a newer mariadb-server-core", m[1], oldest)
	}
	return said, nil
}

// copyTemplate puts the database that all nodes begin with into a home, as its data folder. Where there is none of this version yet,
// it is made first, or fetched from the first node if the others don't share its files.
func copyTemplate(ctx context.Context, home *daemon.Sandbox, at workload.Member, data Data) error {
	version, err := databaseVersion(ctx, home)
	if err != nil {
		return err
	}
	c, err := openCache()
	if err != nil {
		return err
	}
	name := identify(version, data)
	build := func(into *os.File) error { return makeTemplate(ctx, data, into) }
	if at.Separate && at.Pod > 0 {
		build = func(into *os.File) error {
			return fetchTemplate(ctx, netip.AddrPortFrom(at.Peers[0], templatePort), name, data, into)
		}
	}
	template, err := c.open(ctx, name, build)
	if err != nil {
		return err
	}
	defer func() { _ = template.Close() }() // it was only read
	return home.Do(func() error {
		data := home.Path(dataFolder)
		if err := errors.Join(os.RemoveAll(data), os.Mkdir(data, 0o755)); err != nil {
			return err
		}
		to, err := os.OpenRoot(data)
		if err != nil {
			return err
		}
		defer func() { _ = to.Close() }() // a folder
		return unpack(template, to)
	})
}

// makeTemplate makes a template: an empty database, sysbench's tables in it, and an end in order, all in a home of its own.
func makeTemplate(ctx context.Context, data Data, into *os.File) (err error) {
	ctx, cancel := context.WithTimeout(ctx, data.Time())
	defer cancel()
	home, err := daemon.Open(templateSize + 2*data.room())
	if err == nil {
		err = fillDatabase(ctx, home, data)
		if err == nil {
			err = home.Do(func() error { return pack(home.Path(dataFolder), into) })
		}
		err = errors.Join(err, home.Close())
	}
	if err != nil {
		return fmt.Errorf("make the database that all nodes begin with: %w", err)
	}
	return nil
}

func fillDatabase(ctx context.Context, home *daemon.Sandbox, data Data) error {
	if err := home.Write(configFile, []byte(base(home.Path)+alone()), 0o644, ""); err != nil {
		return err
	}
	_, err := home.Run(ctx, program(home, installProgram, "--wsrep-on=OFF", "--auth-root-authentication-method=normal", "--skip-test-db"))
	if err != nil {
		return err
	}
	d := &database{home: home, name: "database"}
	if err := d.launch("--wsrep-new-cluster"); err != nil {
		return err
	}
	err = d.until(ctx, "answer", func(ctx context.Context) error {
		_, err := d.sql(ctx, "select 1")
		return err
	})
	if err != nil {
		return err
	}
	_, err = d.sql(ctx, fmt.Sprintf("create user %[1]s@'%%'; grant all on *.* to %[1]s@'%%'; create database %[2]s", userName, databaseName))
	if err != nil {
		return err
	}
	run := data.Run()
	run.Test, run.Threads = "oltp_read_write", 2
	run.Socket, run.User = home.Path(socketFile), "root"
	if _, err := home.Run(ctx, daemon.Spec{Path: sysbench.Program, Args: run.Prepare()}); err != nil {
		return err
	}
	return d.end(ctx)
}

// templatePort is where the first node gives the others the database that all begin with: the port of Galera's transfers of all
// data.
const templatePort = 4444

// offerTemplate gives the template to the other nodes, which don't share the first one's files.
func (s *server) offerTemplate(ctx context.Context) error {
	version, err := databaseVersion(ctx, s.home)
	if err != nil {
		return err
	}
	c, err := openCache()
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(s.at.Peers[0], templatePort)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.String())
	if err != nil {
		return fmt.Errorf("give other nodes the database that all begin with: %w; end the program that has the port", err)
	}
	s.templates = listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				if from, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil && slices.Contains(s.at.Peers, from.Addr().Unmap()) {
					_ = giveTemplate(conn, c, identify(version, s.data)) // the node that asks sees what is missing
				}
				_ = conn.Close() // likewise
			}()
		}
	}()
	return nil
}

// giveTemplate writes a template: its name on a line, and its archive.
func giveTemplate(to io.Writer, c cache, name string) error {
	f, err := c.open(context.Background(), name, func(*os.File) error { return errors.New("the template is gone") })
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	_, err = fmt.Fprintln(to, name)
	if err == nil {
		_, err = io.Copy(to, f)
	}
	return err
}

// fetchTemplate has the first node give its template.
func fetchTemplate(ctx context.Context, at netip.AddrPort, name string, data Data, into *os.File) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("get the database that all nodes begin with from %s: %w", at, err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, data.Time())
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it was only read
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(line); got != name {
		return fmt.Errorf("its database is another one (%.40q, not %s): all nodes need the same version", got, name)
	}
	out := &sparseFile{File: into}
	_, err = r.WriteTo(struct{ io.Writer }{out})
	return errors.Join(err, out.finish())
}
