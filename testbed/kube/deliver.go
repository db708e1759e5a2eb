package kube

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"netdelta/testbed/kube/inside"
	"netdelta/unit"
)

// parcel is a program as it is sent to pods: read and packed once.
type parcel struct {
	path string

	once   sync.Once
	plain  []byte
	packed []byte
	digest string
	err    error
}

// pack reads the program.
func (p *parcel) pack() error {
	p.once.Do(func() {
		if p.plain, p.err = os.ReadFile(p.path); p.err != nil {
			p.err = fmt.Errorf("read the program that is sent to pods: %w", p.err)
			return
		}
		sum := sha256.Sum256(p.plain)
		p.digest = hex.EncodeToString(sum[:])
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err == nil {
			_, err = z.Write(p.plain)
			err = errors.Join(err, z.Close())
		}
		p.packed, p.err = b.Bytes(), err
	})
	return p.err
}

// What the receiving end says first: how it wants the program.
const (
	wantsPacked = "gzip"
	wantsPlain  = "plain"
)

// receive is what takes the program in a pod: a shell that has cat and chmod, and gzip where the image has it. The file can be
// executed once it is whole.
func receive() string {
	into := " > " + programStreamed
	return "set -e; if command -v gzip >/dev/null 2>&1; then echo " + wantsPacked + "; gzip -dc" + into +
		"; else echo " + wantsPlain + "; cat" + into + "; fi; chmod 755 " + programStreamed
}

// deliver sends the program to a pod, unless it is there, and has it say the digest of what arrived.
func (l *Launcher) deliver(ctx context.Context, at Place) error {
	if err := l.parcel.pack(); err != nil {
		return err
	}
	began := time.Now()
	sent, err := l.send(ctx, at)
	if err != nil {
		return err
	}
	out, err := run(ctx, l.cluster, at, task(at, inside.Digest))
	if err != nil {
		return fmt.Errorf("start what arrived: %w", err)
	}
	if got := strings.TrimSpace(string(out)); got != l.parcel.digest {
		return fmt.Errorf("what arrived is not what was sent: its SHA-256 is %.64q, not %s", got, l.parcel.digest)
	}
	l.options.Log("sent netdelta to pod %s: %v of %v in %s", at.Pod, unit.Bytes(sent), unit.Bytes(len(l.parcel.plain)), time.Since(began).Round(time.Millisecond))
	return nil
}

// send streams the program, and returns how many bytes it took.
func (l *Launcher) send(ctx context.Context, at Place) (int, error) {
	s, err := open(ctx, l.cluster, at, []string{"sh", "-c", receive()})
	if err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	fail := func(err error) (int, error) {
		select {
		case <-s.done: // and says why
		case <-time.After(grace):
			s.cut()
		}
		if cause := context.Cause(ctx); cause != nil {
			return 0, cause
		}
		return 0, errors.Join(err, s.err)
	}
	wants, err := s.stdout.ReadString('\n')
	if err != nil {
		return fail(fmt.Errorf("the image needs a shell, cat and chmod: %w", err))
	}
	content := l.parcel.plain
	if strings.TrimSpace(wants) == wantsPacked {
		content = l.parcel.packed
	}
	if _, err := s.Write(content); err != nil {
		return fail(fmt.Errorf("send %d bytes: %w", len(content), err))
	}
	_ = s.stdin.Close() // it never fails
	if err := s.Wait(); err != nil {
		return fail(err)
	}
	return len(content), nil
}
