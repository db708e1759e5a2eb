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
	"slices"
	"strings"
)

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
	ctx, cancel := context.WithTimeout(ctx, data.time())
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
