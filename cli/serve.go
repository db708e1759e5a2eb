package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/plan"
	"netdelta/experiment/session"
	"netdelta/insight"
	"netdelta/report/loopback"
	"netdelta/report/serve"
	"netdelta/report/terminal"
	"netdelta/report/ui"
	"netdelta/testbed/lab/rootless"
)

// How many columns a comparison has on a page, and on a phone.
const (
	servedWidth  = 110
	servedNarrow = 46
)

func newServeCommand(env *environment) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Show the runs of a folder in a browser of this machine",
		Long: `Show the runs of a folder, by default ./runs, in a browser of this machine: a list with the course of each study over time, the
page of each run (live while it is under way), and what changed between two. It reads and changes nothing, answers at a
loopback address alone, and ends on Ctrl-C.`,
		Example: `  netdelta serve
  netdelta serve /srv/nightly --listen 127.0.0.1:8080`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			dir := session.Runs
			if len(a) > 0 {
				dir = a[0]
			}
			return env.serve(cmd.Context(), dir, address)
		},
	}
	cmd.Flags().StringVar(&address, "listen", "127.0.0.1:0", "loopback address and port; port 0 is any that is free")
	return cmd
}

// serve answers until the context ends.
func (env *environment) serve(ctx context.Context, dir, address string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("serve: %s is no folder of runs; netdelta run makes runs in ./runs", dir)}
	}
	if err := checkListen("--listen", address); err != nil {
		return err
	}
	listener, err := listen(ctx, "--listen", address)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil { // by which name it is seen from a browser
		return errors.Join(err, listener.Close())
	}
	runs := serve.Runs{Dir: dir, Page: env.servePage, Compare: env.serveComparison}
	stop := loopback.Serve(listener, runs.Handler(), time.Minute)
	fmt.Fprintf(env.out, "the runs in %s: http://%s/\n", dir, listener.Addr())
	<-ctx.Done()
	return stop()
}

// servePage writes the page of a run folder as its journal is now.
func (env *environment) servePage(w io.Writer, folder string) (underWay bool, err error) {
	defer env.frugal()()
	files, err := openRun(folder)
	if err != nil {
		return false, err
	}
	m, err := env.reloadFrom(files)
	var r reported
	if err == nil {
		r, err = readReported(m, files)
	}
	if err == nil {
		err = writeHTML(w, r)
	}
	return m.Run.Ended == plan.Running, errors.Join(err, files.Close())
}

// serveComparison says what changed between two run folders.
func (env *environment) serveComparison(before, after string) (serve.Comparison, error) {
	c, err := env.compared(before, after, insight.Comparing{})
	if err != nil {
		return serve.Comparison{}, err
	}
	shown := serve.Comparison{Says: c.Says}
	c.Says = "" // it stands first
	for width, text := range map[int]*string{servedWidth: &shown.Wide, servedNarrow: &shown.Narrow} {
		var out strings.Builder
		if err := terminal.WriteComparison(&out, c, ui.Terminal{Width: width, Unicode: true}); err != nil {
			return serve.Comparison{}, err
		}
		*text = out.String()
	}
	return shown, nil
}

// checkListen refuses an address that others could reach: what is served has no lock of its own.
func checkListen(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil:
		return usageError{fmt.Errorf("%s: %q is no address; write 127.0.0.1:PORT", flag, address)}
	case !loopback.Is(host):
		return usageError{fmt.Errorf("%s: %s can be reached from other machines, and everyone who reaches it reads all; write 127.0.0.1:%s, and let a "+
			"proxy that asks for a password lead there", flag, address, port)}
	}
	return nil
}

// checkMetrics refuses metrics where there are none. Exact says that instructions are counted, in guests that have no metrics.
func checkMetrics(address string, exact bool) error {
	if exact {
		return usageError{errors.New("--metrics-listen has no meaning with --exact: there is nothing to see before the end")}
	}
	return checkListen(metricsFlag, address)
}

// metricsFlag is the flag of the address of a run's metrics.
const metricsFlag = "--metrics-listen"

// listenForMetrics opens the socket that metrics are asked for at; there is none for "".
func listenForMetrics(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	if _, entered := rootless.Entered(); entered {
		return nil, errors.New(metricsFlag + ": a lab of an ordinary user has a loopback of its own, which no other program reaches; run as root, or read " +
			metricsFile + " in the run folder at the end")
	}
	return listen(ctx, metricsFlag, address)
}

// listen opens the socket of an address that a flag gave.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; choose another port, or 0 for any that is free", flag, err)
	}
	return listener, nil
}
