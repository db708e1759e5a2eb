// Package sysbench knows the command line of sysbench 1.0 and reads what its database tests print. It is pure: it starts
// nothing.
package sysbench

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"netdelta/workload/tool"
)

// Run is one run of a database test against MySQL or MariaDB.
type Run struct {
	Test     string // "oltp_read_write"
	Server   netip.AddrPort
	Socket   string // a path, in place of Server
	User     string
	Config   string // a file with more arguments, such as the password; "" for none
	Database string
	Tables   int
	Rows     int // of each table
	Threads  int
	// Time is how long it runs; sysbench counts in whole seconds, and so it is rounded up. 0 is without end.
	Time time.Duration
	// Events end the run once there were so many, whatever Time says; 0 is without end.
	Events int64
}

// Program is its name, and the name of its package.
const Program = "sysbench"

// Percentile is the one that sysbench is asked for: it prints one alone, the others follow from the histogram.
const Percentile = 99

// Args are the arguments of the run itself, by which it prints each second, and its histogram.
func (r Run) Args() []string {
	return append(r.common(),
		"--time="+tool.Seconds(r.Time),
		"--events="+strconv.FormatInt(min(r.Events, math.MaxInt32), 10), // it takes no more
		"--report-interval=1",
		"--histogram=on",
		"--percentile="+strconv.Itoa(Percentile),
		"run")
}

// Prepare are the arguments that make the tables. Rows are numbered from 1 by sysbench: the nodes of a Galera cluster leave numbers out where
// they number them, and transactions, which put a row with a number in place of the one that has it, would add rows.
func (r Run) Prepare() []string { return append(r.common(), "--auto-inc=off", "prepare") }

func (r Run) common() []string {
	args := []string{r.Test, "--db-driver=mysql", "--mysql-user=" + r.User, "--mysql-db=" + r.Database}
	if r.Config != "" {
		args = append(args, "--config-file="+r.Config)
	}
	if r.Socket != "" {
		args = append(args, "--mysql-socket="+r.Socket)
	} else {
		args = append(args, "--mysql-host="+r.Server.Addr().String(), fmt.Sprintf("--mysql-port=%d", r.Server.Port()))
	}
	return append(args, fmt.Sprintf("--tables=%d", r.Tables), fmt.Sprintf("--table-size=%d", r.Rows), fmt.Sprintf("--threads=%d", r.Threads))
}

// Option is a line of a file of arguments (Run.Config) that gives an option a value. There are values that can't be given: nothing stands
// for a quote within quotes.
func Option(name, value string) (string, error) {
	for _, quote := range []string{`"`, "'"} {
		if !strings.Contains(value, quote) {
			return name + "=" + quote + value + quote + "\n", nil
		}
	}
	if strings.ContainsAny(value, " \t,") || strings.ContainsAny(value[:1], "\"'#") {
		return "", errors.New("sysbench can't be given one that has both kinds of quotes and a space or a comma, or begins with a quote; choose another")
	}
	return name + "=" + value + "\n", nil
}
