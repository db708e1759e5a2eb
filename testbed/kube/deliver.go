package kube

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip" // four times as fast as the standard library's

	"netdelta/internal/tail"
	"netdelta/testbed/kube/inside"
	"netdelta/unit"
)

// sentProgram is the program as it is sent to pods: read and packed once.
type sentProgram struct {
	path string

	once   sync.Once
	plain  []byte
	packed []byte
	digest string
	err    error
}

// pack reads the program.
func (p *sentProgram) pack() error {
	p.once.Do(func() {
		if p.plain, p.err = os.ReadFile(p.path); p.err != nil {
			p.err = fmt.Errorf("read the program that is sent to pods: %w", p.err)
			return
		}
		p.plain = trim(p.plain)
		sum := sha256.Sum256(p.plain)
		p.digest = hex.EncodeToString(sum[:])
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(p.plain)
		p.err = errors.Join(err, z.Close())
		p.packed = b.Bytes()
	})
	return p.err
}

// trim leaves away what is of no use to run a program: the tables for debuggers at its end, a third of it or more. What is no
// program of a usual 64-bit machine is left as it is.
func trim(program []byte) []byte {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil || f.Class != elf.ELFCLASS64 || f.ByteOrder != binary.LittleEndian {
		return program
	}
	end := uint64(binary.Size(elf.Header64{}))
	for _, p := range f.Progs {
		end = max(end, p.Off+p.Filesz)
	}
	if end > uint64(len(program)) {
		return program
	}
	var h elf.Header64
	short := slices.Clone(program[:end])
	if _, err := binary.Decode(short, f.ByteOrder, &h); err != nil || h.Phoff+uint64(h.Phnum)*uint64(h.Phentsize) > end {
		return program
	}
	h.Shoff, h.Shnum, h.Shstrndx = 0, 0, 0
	if _, err := binary.Encode(short, f.ByteOrder, &h); err != nil {
		return program
	}
	return short
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

// sendAtOnce is how many pods the program is sent to at the same time: all of it goes through one API server.
const sendAtOnce = 4

// deliver sends the program to a pod and has it say the digest of what arrived. What is cut by the API server is sent again.
func (l *Launcher) deliver(ctx context.Context, at ContainerRef) error {
	if err := l.program.pack(); err != nil {
		return err
	}
	began := time.Now()
	sent, tries := 0, 0
	err := persist(ctx, func() (err error) {
		// A stream may be cut when all is there already or on its way, and a file that runs can't be written.
		if tries++; tries > 1 && l.arrived(ctx, at) == nil {
			return nil
		}
		if sent, err = l.send(ctx, at); err != nil && tries > 1 && l.arrived(ctx, at) == nil {
			return nil
		}
		return err
	})
	if err == nil {
		err = persist(ctx, func() error { return l.arrived(ctx, at) })
	}
	if err != nil {
		return err
	}
	l.options.Log("sent netdelta to pod %s: %v of %v in %s", at.Pod, unit.Bytes(sent), unit.Bytes(len(l.program.plain)), time.Since(began).Round(time.Millisecond))
	return nil
}

// arrived has the program in a pod say its digest.
func (l *Launcher) arrived(ctx context.Context, at ContainerRef) error {
	out, err := runOnce(ctx, l.cluster, at, task(at, inside.Digest))
	if err != nil {
		return fmt.Errorf("start what arrived: %w", err)
	}
	if got := strings.TrimSpace(string(out)); got != l.program.digest {
		return fmt.Errorf("what arrived is not what was sent: its SHA-256 is %.64q, not %s", got, l.program.digest)
	}
	return nil
}

// send streams the program, and returns how many bytes it took. While it waits for its turn somebody is in the pod already, which
// keeps that up.
func (l *Launcher) send(ctx context.Context, at ContainerRef) (int, error) {
	s, err := open(ctx, l.cluster, at, []string{"sh", "-c", receive()})
	if err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	fail := func(err error) (int, error) {
		if errors.Is(err, tail.ErrEndless) {
			s.cut()
			return 0, err
		}
		select {
		case <-s.done: // and says why
		case <-time.After(grace):
			s.cut()
		}
		if cause := context.Cause(ctx); cause != nil {
			return 0, cause
		}
		if s.err != nil {
			err = s.err // which says more
		}
		return 0, err
	}
	wants, err := tail.Line(s.stdout, lineMost)
	if err != nil {
		return fail(fmt.Errorf("the image needs a shell, cat and chmod: %w", err))
	}
	// A pod in which somebody waits for the program stays up, however long its turn takes to come.
	select {
	case l.sending <- struct{}{}:
		defer func() { <-l.sending }()
	case <-s.done:
		return fail(errors.New("its stream ended before it was its turn"))
	case <-ctx.Done():
		return fail(context.Cause(ctx))
	}
	content := l.program.plain
	if strings.TrimSpace(string(wants)) == wantsPacked {
		content = l.program.packed
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
