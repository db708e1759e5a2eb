package supervisor

import (
	"fmt"
	"io"
	"net"
	"time"

	"netdelta/internal/netns"
)

// dialPatience is how long a connection inside the cluster may take to come about.
const dialPatience = 5 * time.Second

// dial connects to an address of a namespace, HOST:PORT with a numerical host: a socket stays where it was made.
func dial(space *netns.Namespace, address string) (net.Conn, error) {
	var c net.Conn
	err := space.Do(func() error {
		var err error
		c, err = net.DialTimeout("tcp", address, dialPatience)
		return err
	})
	return c, err
}

// forward listens on the machine's loopback, as long as the program runs, and passes each connection on to an address of a
// namespace. It returns where it listens.
func forward(space *netns.Namespace, address string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the API server's clients: %w", err)
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				// Out of descriptors, say: some are given back in a while.
				time.Sleep(pause)
				continue
			}
			go pass(client.(*net.TCPConn), space, address)
		}
	}()
	return l.Addr().String(), nil
}

// pass passes on what either side of a connection says, until both have ended.
func pass(client *net.TCPConn, space *netns.Namespace, address string) {
	defer func() { _ = client.Close() }()
	c, err := dial(space, address)
	if err != nil {
		return // the client sees its connection closed, as it would without a server
	}
	server := c.(*net.TCPConn)
	defer func() { _ = server.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client) // an end is an end
		_ = server.CloseWrite()
	}()
	_, _ = io.Copy(client, server)
	_ = client.CloseWrite()
	<-done
}
