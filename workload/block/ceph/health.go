package ceph

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"netdelta/internal/daemon"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/workload"
)

// Health implements workload.DaemonServer. Daemons are asked by their admin sockets, so that the answer takes no network: an OSD says
// whether the cluster's map has it up, and how the placement groups are that it leads.
func (s *server) Health(ctx context.Context) workload.Health {
	var h workload.Health
	var ails []string
	for _, name := range s.names() {
		d := s.daemon(name)
		service := result.Service{Name: d.Name(), Version: s.version}
		err := d.Err()
		if err != nil {
			h.Ended = true
		} else {
			service.Memory = d.Memory()
			err = s.ready(ctx, name)
		}
		if err != nil {
			ails = append(ails, err.Error())
		}
		h.Services = append(h.Services, service)
	}
	if len(ails) > 0 {
		h.Unwell = "ceph not healthy: " + strings.Join(ails, "; ")
	}
	return h
}

// ready says what ails a daemon that runs; nil if nothing does.
func (s *server) ready(ctx context.Context, name string) error {
	if name == monitor {
		return s.monitorLeads(ctx)
	}
	return cmp.Or(s.osdUp(ctx), s.groupsClean(ctx))
}

// monitorLeads is nil when the monitor is in charge.
func (s *server) monitorLeads(ctx context.Context) error {
	return s.inState(ctx, monitor, "mon_status", "leader")
}

// osdUp is nil when the pod's OSD takes part.
func (s *server) osdUp(ctx context.Context) error {
	return s.inState(ctx, osd(s.at.Pod), "status", "active")
}

// inState asks a daemon for its state, and is nil when it is the one that is wanted.
func (s *server) inState(ctx context.Context, name, command, want string) error {
	var status struct {
		State string `json:"state"`
	}
	if err := ask(ctx, s.home, name, command, &status); err != nil {
		return err
	}
	if status.State != want {
		return fmt.Errorf("ceph-%s is %s, not %s", name, status.State, want)
	}
	return nil
}

// groupsClean is nil when all placement groups that the pod's OSD leads have all their copies.
func (s *server) groupsClean(ctx context.Context) error {
	var history struct {
		Groups []group `json:"pgs"`
	}
	if err := ask(ctx, s.home, osd(s.at.Pod), "dump_pgstate_history", &history); err != nil {
		return err
	}
	unclean, states := 0, []string{}
	for _, g := range history.Groups {
		if g.unclean() {
			unclean++
			states = gather.Once(states, g.State)
		}
	}
	if unclean == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d placement groups of ceph-%s are not clean (%s)",
		unclean, len(history.Groups), osd(s.at.Pod), strings.Join(states, ", "))
}

// group is a placement group, with its state as a path: Started/Primary/Active/Clean.
type group struct {
	ID    string `json:"pg"`
	State string `json:"currently"`
}

// unclean says that the OSD leads a group that lacks a copy, or that it is not settled who leads it.
func (g group) unclean() bool {
	return g.State != "Started/Primary/Active/Clean" && !strings.HasPrefix(g.State, "Started/ReplicaActive")
}

// answerPatience is how long a daemon may take to answer before it is taken to hang. It takes milliseconds, on a busy machine a tenth of
// a second.
const answerPatience = 3 * time.Second

// hangs says of a daemon that runs that it does not answer: one that starts or ends refuses to.
func (s *server) hangs(ctx context.Context, name string) bool {
	patient, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	return s.ready(patient, name) != nil && patient.Err() != nil && ctx.Err() == nil
}

// Restart implements workload.DaemonServer.
func (s *server) Restart(ctx context.Context) error {
	for _, name := range s.names() {
		var err error
		if s.hangs(ctx, name) {
			err = s.daemon(name).Kill()
		}
		if err == nil && s.daemon(name).Err() != nil {
			err = s.launch(name)
		}
		if err != nil {
			return fmt.Errorf("restart ceph-%s: %w", name, err)
		}
	}
	for _, name := range s.names() {
		if err := s.await(ctx, name, func(ctx context.Context) error { return s.ready(ctx, name) }); err != nil {
			return fmt.Errorf("restart ceph-%s: %w", name, err)
		}
	}
	return nil
}

// answerRoom is the longest answer that is read from a daemon.
const answerRoom = 16 << 20

// ask puts a question to a daemon by its admin socket, which takes no network, and unpacks the answer. The protocol: a command in
// JSON ended by a zero byte; four bytes with the length of the answer, most significant first, and the answer in JSON.
func ask(ctx context.Context, h *daemon.Sandbox, name, command string, answer any) error {
	fail := func(err error) error {
		return fmt.Errorf("ask ceph-%s for %s by its admin socket: %w", name, command, err)
	}
	var conn net.Conn
	err := h.Do(func() (err error) { // only there is the socket seen
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", place(h, name+".asok"))
		return err
	})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = conn.Close() }() // nothing is left to be written
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	text, err := exchange(conn, command)
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	if err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fail(fmt.Errorf("%w: %.200q", err, text))
	}
	return nil
}

// exchange sends a command and reads the answer to it.
func exchange(conn io.ReadWriter, command string) ([]byte, error) {
	request, err := json.Marshal(map[string]string{"prefix": command, "format": "json"})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(request, 0)); err != nil {
		return nil, err
	}
	var length uint32
	if err := binary.Read(conn, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	if length > answerRoom {
		return nil, fmt.Errorf("an answer of %d bytes, more than %d", length, answerRoom)
	}
	text := make([]byte, length)
	_, err = io.ReadFull(conn, text)
	return text, err
}
