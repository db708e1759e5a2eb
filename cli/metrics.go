package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"netdelta/report/loopback"
	"netdelta/testbed/lab/rootless"
)

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
