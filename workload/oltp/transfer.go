package oltp

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"
)

// seedPort is where the first node gives the others the database that all begin with: that of Galera's transfers of all data.
const seedPort = 4444

// offer gives the seed to the other nodes, which don't share the first one's files.
func (s *server) offer(ctx context.Context) error {
	version, err := databaseVersion(ctx, s.home)
	if err != nil {
		return err
	}
	c, err := openCache()
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(s.at.Peers[0], seedPort)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.String())
	if err != nil {
		return fmt.Errorf("give other nodes the database that all begin with: %w; end the program that has the port", err)
	}
	s.seeds = listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				if from, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil && slices.Contains(s.at.Peers, from.Addr().Unmap()) {
					_ = give(conn, c, identify(version)) // who asks sees what is missing
				}
				_ = conn.Close() // likewise
			}()
		}
	}()
	return nil
}

// give writes a seed: its name on a line, and its files as an archive.
func give(to io.Writer, c cache, name string) error {
	if _, err := fmt.Fprintln(to, name); err != nil {
		return err
	}
	there := func(*os.Root) error { return errors.New("the seed is gone") }
	return c.use(context.Background(), name, there, func(seed *os.Root) error {
		w := tar.NewWriter(to)
		if err := w.AddFS(seed.FS()); err != nil {
			return err
		}
		return w.Close()
	})
}

// fetch has the first node give its seed.
func fetch(ctx context.Context, at netip.AddrPort, name string, into *os.Root) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("get the database that all nodes begin with from %s: %w", at, err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, seedTime)
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
	return unpack(r, into)
}

// unpack reads an archive into a folder.
func unpack(from io.Reader, into *os.Root) error {
	files := tar.NewReader(from)
	for {
		h, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		name := path.Clean(h.Name)
		if name == "." || name == contentsFile {
			continue
		}
		switch h.Typeflag {
		case tar.TypeDir:
			if err := into.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		case tar.TypeReg:
			if err := unpackFile(files, into, name); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
		}
	}
}

func unpackFile(from io.Reader, into *os.Root, name string) error {
	out, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	size, err := sparse(from, out)
	if err == nil {
		err = out.Truncate(size)
	}
	return errors.Join(err, out.Close())
}
