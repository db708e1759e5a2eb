package oltp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netdelta/internal/daemon"
	"netdelta/internal/gather"
	"netdelta/workload"
	"netdelta/workload/oltp/galera"
	"netdelta/workload/tool/sysbench"
)

// dialect is what one kind of database differs in from the others.
type dialect struct {
	scheme string
	driver string           // of sysbench
	client workload.Program // runs statements
	login  func(t workload.Target, password string) (file string)
	// run has the client run statements at an address, with the file by which it logs in.
	run func(file string, t workload.Target, at netip.AddrPort, statements string) daemon.Spec
	// env is what sysbench finds in its environment.
	env func(home *daemon.Sandbox) []string
	// schema is where tables are whose names stand alone, who a statement for the database's own name and the client's end of the connection.
	schema, who string
	away        []string          // in errors of a database that can't be reached, or that ended meanwhile
	fixes       map[string]string // by what errors hold
}

// dialects are those that there are.
func dialects() []dialect { return []dialect{mariadb(), postgres()} }

func schemes() []string { return gather.Each(dialects(), func(d dialect) string { return d.scheme }) }

// What to do about a login that fails, and about a database that does not answer.
const (
	givePassword = "give the password by --target-password-file or $NETDELTA_TARGET_PASSWORD"
	seePassword  = "see that --target-password-file or $NETDELTA_TARGET_PASSWORD has the user's password, and that the user may log in from where clients stand"
	seePort      = "is it the database's port, or its Service's with a ready pod behind it?"
	nameDatabase = "name a database that is there: netdelta makes none"
)

// mariadb is MySQL's dialect, and MariaDB's.
func mariadb() dialect {
	return dialect{
		scheme: workload.SchemeMySQL, driver: "mysql", client: workload.Program{Name: "mariadb", Package: "mariadb-client-core"},
		login: func(t workload.Target, password string) string {
			quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(password) + `"`
			return "[client]\nprotocol=tcp\nuser=\"" + t.User + "\"\npassword=" + quoted + "\ndatabase=" + t.Database() + "\n"
		},
		run: func(file string, _ workload.Target, at netip.AddrPort, statements string) daemon.Spec {
			return daemon.Spec{Args: []string{
				"--defaults-file=" + file, "--batch", "--skip-column-names", "--connect-timeout=10",
				"--host=" + at.Addr().String(), fmt.Sprintf("--port=%d", at.Port()), "--execute=" + statements,
			}}
		},
		env:    func(*daemon.Sandbox) []string { return nil },
		schema: "database()",
		who:    "select @@hostname, (select host from information_schema.processlist where id = connection_id())",
		away:   []string{"ERROR 2002", "ERROR 2003", "ERROR 2013"},
		fixes: map[string]string{
			"using password: NO": givePassword, "using password: YES": seePassword, "ERROR 2002": seePort, "ERROR 1049": nameDatabase,
			"ERROR 1142": "grant the user create, index, insert, update, delete, select and drop on the database", "ERROR 1044": "grant the user all on the database",
			"ERROR 1130": "let the user log in from where clients stand",
		},
	}
}

// postgres is PostgreSQL's dialect. Connections are not encrypted, as those to MariaDB are not: what a network costs would else be less of the whole.
func postgres() dialect {
	plain := func(file string) []string {
		return []string{"PGPASSFILE=" + file, "PGSSLMODE=disable", "PGCONNECT_TIMEOUT=10"}
	}
	return dialect{
		scheme: workload.SchemePostgres, driver: "pgsql", client: workload.Program{Name: "psql", Package: "postgresql-client"},
		login: func(_ workload.Target, password string) string {
			return "*:*:*:*:" + strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(password) + "\n"
		},
		run: func(file string, t workload.Target, at netip.AddrPort, statements string) daemon.Spec {
			args := []string{
				"--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--field-separator=\t", "--set=ON_ERROR_STOP=1", "--no-password",
				"--host=" + at.Addr().String(), fmt.Sprintf("--port=%d", at.Port()), "--username=" + t.User, "--dbname=" + t.Database(),
			}
			for one := range strings.SplitSeq(statements, "; ") { // of several in one command it shows the last one's answer, before release 15
				args = append(args, "--command="+one)
			}
			return daemon.Spec{Args: args, Env: plain(file)}
		},
		env:    func(home *daemon.Sandbox) []string { return plain(home.Path(clientFile)) },
		schema: "current_schema()",
		who:    "select host(inet_server_addr()), host(inet_client_addr()) || ':' || inet_client_port()",
		away:   []string{"Connection refused", "server closed the connection", "terminating connection", "the database system is", "No route to host", "timeout expired"},
		fixes: map[string]string{
			"no password supplied": givePassword, "password authentication failed": seePassword, "Connection refused": seePort, `" does not exist`: nameDatabase,
			"permission denied": "have the user own the database, or grant it all on the schema public",
			"pg_hba.conf":       "let the user log in from where clients stand, without encryption",
		},
	}
}

// isAway says whether an error is of a database that can't be reached, or that ended meanwhile.
func (d dialect) isAway(err error) bool {
	return slices.ContainsFunc(d.away, func(words string) bool { return strings.Contains(err.Error(), words) })
}

// denied adds what to do to the error of a database that refuses the login or a statement.
func (d dialect) denied(err error) error {
	for words, fix := range d.fixes {
		if strings.Contains(err.Error(), words) {
			return fmt.Errorf("%w; %s", err, fix)
		}
	}
	return err
}

// Files of a home: how the database's client and sysbench log in. Passwords are in no command line.
const (
	clientFile = "login.cnf"
	loadFile   = "sysbench.cnf"
)

// session is a home from which programs log in to a target.
type session struct {
	dialect
	home   *daemon.Sandbox
	target workload.Target
}

// asking has a database run statements, and returns what it answers, a line for each row.
type asking func(ctx context.Context, statements string) (string, error)

// login opens a home with the files by which programs log in.
func login(t workload.Target) (session, error) {
	s := session{target: t}
	i := slices.IndexFunc(dialects(), func(d dialect) bool { return d.scheme == t.Scheme })
	if i < 0 {
		return s, fmt.Errorf("no database speaks %s: %s", t.Scheme, strings.Join(schemes(), ", "))
	}
	s.dialect = dialects()[i]
	for _, name := range []string{s.client.Name, sysbench.Program} {
		if _, err := daemon.Look(name); err != nil {
			return s, fmt.Errorf("%w: where clients stand (in Kubernetes, in the image of the pods) there has to be %s and %s, of the packages %s and %s",
				err, s.client.Name, sysbench.Program, s.client.Package, sysbench.Program)
		}
	}
	password := t.Password.Reveal()
	if strings.ContainsAny(password, "\r\n\x00") {
		return s, errors.New("the password has the end of a line in it")
	}
	option, err := sysbench.Option(s.driver+"-password", password)
	if err != nil {
		return s, fmt.Errorf("the password: %w", err)
	}
	if os.Getenv(daemon.FolderVariable) == "" && os.Geteuid() != 0 {
		if err := os.Setenv(daemon.FolderVariable, os.TempDir()); err != nil { // a pod may make no namespaces
			return s, err
		}
	}
	if s.home, err = daemon.Open(clientHome); err != nil {
		return s, err
	}
	for name, text := range map[string]string{clientFile: s.dialect.login(t, password), loadFile: option} {
		if err := s.home.Write(name, []byte(text), 0o600, ""); err != nil {
			return s, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s session) close() error { return s.home.Close() }

// query has the database run statements.
func (s session) query(ctx context.Context, statements string) (string, error) {
	return s.queryAt(ctx, s.target.At(), statements)
}

// queryAt is query at another address, which leads to the database's.
func (s session) queryAt(ctx context.Context, at netip.AddrPort, statements string) (string, error) {
	spec := s.run(s.home.Path(clientFile), s.target, at, statements)
	spec.Path = s.client.Name
	out, err := s.home.Run(ctx, spec)
	return strings.TrimSpace(string(out)), err
}

// load is the part of sysbench's runs that they have in common.
func (s session) load(data galera.Data) sysbench.Run {
	run := data.Run()
	run.Driver, run.Server, run.User, run.Database, run.Config = s.driver, s.target.At(), s.target.User, s.target.Database(), filepath.Clean(s.home.Path(loadFile))
	return run
}
