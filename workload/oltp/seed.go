package oltp

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"netdelta/internal/daemon"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/sysbench"
)

// seedSize is what a home takes in which a seed is made: the data, and what Galera keeps of how they came about.
const seedSize = 512 * unit.MiB

// seedTime is how long making one may take: some 4 s, and more on a busy machine.
const seedTime = 3 * time.Minute

// release is the version of the database: "mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64".
var release = regexp.MustCompile(`Ver ((\d+)\.(\d+)\.\d+)-MariaDB\S*`)

// The oldest version of the database that has all that is asked of it.
const (
	oldestMajor = 10
	oldestMinor = 5
)

// databaseVersion asks the database for its version: the whole line, which tells builds apart.
func databaseVersion(ctx context.Context, home *daemon.Home) (string, error) {
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
	major, errMajor := strconv.Atoi(m[2])
	minor, errMinor := strconv.Atoi(m[3])
	if errMajor != nil || errMinor != nil || major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return "", fmt.Errorf("MariaDB %s is too old: it has to be %d.%d or newer; install a newer mariadb-server-core", m[1], oldestMajor, oldestMinor)
	}
	return said, nil
}

// transient says of a file of a database that has ended whether it is made anew when the database starts, or belongs to what a
// node knows of its group.
func transient(name string) bool {
	switch path.Base(name) {
	case "galera.cache", "gvwstate.dat", "ibtmp1", "tc.log":
		return true
	}
	return false
}

// plant puts the database that all nodes begin with into a home, as its data folder. Where there is none of this version yet, it is
// made first, or had of the first node if the others don't share its files.
func plant(ctx context.Context, home *daemon.Home, at workload.Place) error {
	version, err := databaseVersion(ctx, home)
	if err != nil {
		return err
	}
	c, err := openCache()
	if err != nil {
		return err
	}
	name := identify(version)
	build := func(into *os.Root) error { return grow(ctx, into) }
	if at.Apart && at.Pod > 0 {
		build = func(into *os.Root) error { return fetch(ctx, netip.AddrPortFrom(at.Peers[0], seedPort), name, into) }
	}
	return c.use(ctx, name, build, func(seed *os.Root) error {
		return home.Do(func() error {
			if err := os.RemoveAll(home.Path(dataFolder)); err != nil {
				return err
			}
			if err := os.Mkdir(home.Path(dataFolder), 0o755); err != nil {
				return err
			}
			to, err := os.OpenRoot(home.Path(dataFolder))
			if err != nil {
				return err
			}
			defer func() { _ = to.Close() }() // a folder
			return copyAll(seed.FS(), to, func(name string) bool { return name == contentsFile })
		})
	})
}

// grow makes a seed: an empty database, sysbench's tables in it, and an end as it has to be, all in a home of its own.
func grow(ctx context.Context, into *os.Root) (err error) {
	ctx, cancel := context.WithTimeout(ctx, seedTime)
	defer cancel()
	home, err := daemon.Open(seedSize)
	if err != nil {
		return fmt.Errorf("make the database that all nodes begin with: %w", err)
	}
	defer func() {
		if errClose := home.Close(); err == nil {
			err = errClose
		}
	}()
	if err := sow(ctx, home); err != nil {
		return fmt.Errorf("make the database that all nodes begin with: %w", err)
	}
	return home.Do(func() error { return copyAll(os.DirFS(home.Path(dataFolder)), into, transient) })
}

func sow(ctx context.Context, home *daemon.Home) error {
	if err := home.Write(configFile, []byte(base(home.Path)+alone()), 0o644, ""); err != nil {
		return err
	}
	_, err := home.Run(ctx, daemon.Spec{
		Path: installProgram, Env: []string{searchPath(home.Path)},
		Args: append([]string{"--defaults-file=" + home.Path(configFile)}, append(asRoot(),
			"--wsrep-on=OFF", "--auth-root-authentication-method=normal", "--skip-test-db")...),
	})
	if err != nil {
		return err
	}
	d := &database{home: home, name: "database"}
	if err := d.start(ctx, "--wsrep-new-cluster"); err != nil {
		return err
	}
	_, err = d.sql(ctx, fmt.Sprintf("create user %[1]s@'%%'; grant all on *.* to %[1]s@'%%'; create database %[2]s", userName, databaseName))
	if err != nil {
		return err
	}
	run := load()
	run.Test, run.Threads = "oltp_read_write", 2
	run.Socket, run.User = home.Path(socketFile), "root"
	if _, err := home.Run(ctx, daemon.Spec{Path: loadProgram, Args: run.Prepare()}); err != nil {
		return err
	}
	return d.end(ctx)
}

// load is the part of all of sysbench's runs that they have in common.
func load() sysbench.Run {
	return sysbench.Run{User: userName, Database: databaseName, Tables: tables, Rows: rows}
}
