package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/result"
)

// Target is an endpoint of the user's own, in place of a server of netdelta's. ParseTarget reads one. It can be compared.
type Target struct {
	Scheme string // one of those that ParseTarget knows
	// User and Password are the URL's, "" without.
	User     string
	Password Secret
	Host     string // as named: a name in small letters, or an address without brackets
	Port     uint16
	// Path follows host and port: "/file?size=1", of a database "/name". It is "/" where the URL has none.
	Path string
	// Address is what all clients connect to: the address of Host, once it was looked up. It is not valid before.
	Address netip.Addr
	// Length is how many bytes the body of each answer has (http), as Hold has found; 0 before.
	Length int64
}

// At is where clients connect to, not valid before the address is known.
func (t Target) At() netip.AddrPort {
	if !t.Address.IsValid() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(t.Address, t.Port)
}

// Targeted is how a workload speaks to an endpoint of the user's own.
type Targeted struct {
	// Schemes are the schemes of URLs that it can speak to.
	Schemes []string
	// Hold tries whether the target is what clients need, readies it for them, and keeps it ready until Close. The target has an
	// address. What is put there follows from the parameters: see Put. ctx bounds the start alone. The error says which part of the target
	// is wrong, and never a password.
	Hold func(ctx context.Context, p result.Params, t Target) (Held, error)
	// Dial opens a client of a target that is held, armed as by Workload.Dial.
	Dial func(ctx context.Context, p result.Params, t Target, cpu int) (engine.Client, error)
	// Clear takes away what a Hold has put into a target, by what it called that, where whoever held it was lost. What is not there any
	// more, or is somebody else's, is no error. It is nil where nothing is put into targets.
	Clear func(ctx context.Context, t Target, mark string) error
}

// Held is a target that is ready for clients. Close takes away what Hold has put there; it may be called while clients are open.
type Held interface {
	Found() Found
	io.Closer
}

// Found is what a target turned out to be.
type Found struct {
	// Says is how it presents itself, for a note: "nginx/1.22.1 answers 200 with 612 bytes".
	Says   string `json:"says"`
	Length int64  `json:"length,omitempty"` // as in Target
	// Mark identifies what this Hold has put into the target, "" where it put nothing there. Undo is what takes it away by
	// hand, in words.
	Mark string `json:"mark,omitempty"`
	Undo string `json:"undo,omitempty"`
}

// Secret is a text that is never printed. It has to be asked for with Reveal.
type Secret struct{ text string }

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal is the text.
func (s Secret) Reveal() string { return s.text }

// Given says whether there is one.
func (s Secret) Given() bool { return s.text != "" }

// masked stands in a secret's place.
const masked = "***"

// String implements fmt.Stringer, and hides the text.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return masked
}

// Format implements fmt.Formatter: no verb shows the text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalJSON implements json.Marshaler, and hides the text.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// errNoTarget is the error of workloads that only speak to servers of netdelta's own.
var errNoTarget = errors.New("this workload can't speak to an endpoint of yours; leave target out")

// CheckTarget returns an error that says what is wrong with the target of p, where it has one, for a workload that speaks to the
// given schemes.
func CheckTarget(p result.Params, schemes ...string) error {
	if p.Target == "" {
		return nil
	}
	if len(schemes) == 0 {
		return errNoTarget
	}
	t, err := ParseTarget(p.Target)
	switch {
	case err != nil:
		return err
	case t.Password.Given():
		return &TargetError{Text: t.String(), Column: 1, Problem: "a password has no place in a study", Fix: "leave it out, and give it by --target-password-file or NETDELTA_TARGET_PASSWORD"}
	case !slices.Contains(schemes, t.Scheme):
		return wrongScheme(t, schemes)
	}
	return nil
}

// UnspokenError is the error of a target that none of the workloads speaks to.
func UnspokenError(t Target, workloads []Workload) error {
	var known []string
	for _, w := range workloads {
		if w.Target != nil {
			known = append(known, w.Target.Schemes...)
		}
	}
	return wrongScheme(t, known)
}

// ProgramClient is a client that runs another program for each burst, in a home. It implements engine.Client.
type ProgramClient struct {
	// Name begins its errors: the workload, the program and the server.
	Name string
	Home *daemon.Sandbox
	// Run carries out a burst. Where it leaves them out, the burst's start and span are the call's.
	Run func(ctx context.Context, spec engine.BurstSpec) (engine.Burst, engine.More, error)
	// Collected, if there is one, adds to the totals what is no sum over bursts. Its error says that what was measured is not to be used.
	Collected func(*engine.Totals) error
	// Resumes says that a burst may follow one that failed.
	Resumes bool
	Tally   engine.Tally

	mu     sync.Mutex
	failed error
}

// ErrBroken is matched by the error of a burst after one that failed: the client is of no more use.
var ErrBroken = errors.New("an earlier burst failed")

// slack is what a program may take beyond its burst when no deadline is given.
const slack = 30 * time.Second

// Burst implements engine.Client.
func (c *ProgramClient) Burst(spec engine.BurstSpec) (b engine.Burst, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if err != nil {
			b, err = engine.Burst{}, fmt.Errorf("%s: %w", c.Name, err)
		}
	}()
	if c.failed != nil {
		return b, c.failed
	}
	if err := spec.Check(); err != nil {
		return b, err
	}
	c.Tally.Settle(spec.DropLast)
	deadline := cmp.Or(spec.Deadline, spec.Warmup+spec.Duration+slack)
	ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, fmt.Errorf("burst not over after %v: %w", deadline, context.DeadlineExceeded))
	defer cancel()
	start := time.Now()
	b, more, err := c.Run(ctx, spec)
	if err != nil {
		if !c.Resumes {
			c.failed = fmt.Errorf("%w: %w", ErrBroken, err)
		}
		return b, err
	}
	if b.Start.IsZero() {
		b.Start = start
	}
	if b.Span == 0 {
		b.Span = time.Since(start)
	}
	c.Tally.Take(b, more)
	return b, nil
}

// Collect implements engine.Client.
func (c *ProgramClient) Collect(dropLast bool) (engine.Totals, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	totals, err := c.Tally.Collect(dropLast)
	if err == nil && c.Collected != nil {
		err = c.Collected(&totals)
	}
	if err != nil && !errors.Is(err, daemon.ErrClosed) { // a client that is closed has nothing more to look at
		return totals, fmt.Errorf("%s: %w", c.Name, err)
	}
	return totals, nil
}

// Close implements engine.Client. A burst that is under way ends with an error.
func (c *ProgramClient) Close() error { return c.Home.Close() }
