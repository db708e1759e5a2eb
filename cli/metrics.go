package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"netdelta/report/exposition"
	"netdelta/testbed/lab/rootless"
)

// checkMetrics refuses an address that others could reach: metrics have no lock of their own. Exact says that instructions are
// counted, in guests that have no metrics.
func checkMetrics(address string, exact bool) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case exact:
		return usageError{errors.New("--metrics-listen has no meaning with --exact: there is nothing to see before the end")}
	case err != nil:
		return usageError{fmt.Errorf("--metrics-listen: %q is no address; write 127.0.0.1:PORT", address)}
	case !exposition.IsLoopback(host):
		return usageError{fmt.Errorf("--metrics-listen: %s can be reached from other machines, and everyone who reaches it reads all; write 127.0.0.1:%s, and let a "+
			"proxy that asks for a password lead there", address, port)}
	}
	return nil
}

// listen opens the socket that metrics are asked for at; there is none for "".
func listen(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	if _, entered := rootless.Entered(); entered {
		return nil, errors.New("--metrics-listen: a lab of an ordinary user has a loopback of its own, which no other program reaches; run as root, or read " +
			metricsFile + " in the run folder at the end")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-listen: %w; choose another port, or 0 for any that is free", err)
	}
	return listener, nil
}
