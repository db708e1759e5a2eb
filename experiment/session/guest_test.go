package session_test

import (
	"context"
	"io"
	"os"
	"slices"
	"testing"

	"netdelta/experiment/guest"
	"netdelta/experiment/session"
	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/testbed"
)

// inGuest is a provider whose runs another session carries out, at the other ends of pipes.
type inGuest struct {
	loopback
	inside *session.Session
}

func (g inGuest) Capabilities() testbed.Capabilities {
	all := g.loopback.Capabilities()
	all.Guest = func(context.Context, testbed.GuestSpec) (*testbed.Guest, error) {
		asked, tell, err := os.Pipe() // which takes the request at once, as a guest's channel does
		if err != nil {
			return nil, err
		}
		heard, say := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			known := study.Known{Testbeds: []string{"loopback"}, Networks: []string{"first", "second"}, Workloads: []study.KnownWorkload{{Name: "tcp-rr"}}}
			ended <- g.inside.ServeGuest(context.Background(), asked, known, guest.NewWriter(say))
			_, _ = say.Close(), asked.Close() // who reads sees the end
		}()
		return &testbed.Guest{
			Program: program{heard, tell, ended}, Describe: func(e result.Environment) result.Environment { return e }, Close: tell.Close,
		}, nil
	}
	return all
}

// program is what runs in a guest.
type program struct {
	io.Reader
	io.Writer
	ended chan error
}

func (p program) CloseWrite() error { return p.Writer.(io.Closer).Close() }
func (p program) Wait() error       { return <-p.ended }
func (p program) Kill() error       { return nil }

// What the doctor finds inside a guest is in the record.
func TestGuestsFindings(t *testing.T) {
	s, l := onLoopback(t, "first", "second")
	inside, _ := onLoopback(t, "first", "second")
	inside.Findings = []result.Finding{{Topic: "pressure", Says: "unknown inside"}}
	s.Provider, s.Builds = inGuest{l, inside}, 1
	run, folder, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Error(err)
	}
	if found := run.Environment.Findings; !slices.Contains(found, inside.Findings[0]) {
		t.Errorf("the doctor's findings are %+v", found)
	}
}
