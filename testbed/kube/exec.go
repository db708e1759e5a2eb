package kube

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"netdelta/internal/tail"
	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

// ContainerRef is a container of a pod that is up.
type ContainerRef struct {
	Namespace, Pod, Container string
	// Program is the path of netdelta in the container.
	Program string
	// UID tells the pod from another one of its name, "" where there is none.
	UID types.UID
}

const (
	// grace is how long a program has to end by itself once its standard input is closed.
	grace = 2 * time.Second
	// stderrKept is how much of the end of standard error is kept.
	stderrKept = 8 << 10
	// lineMost bounds a line by which a program says that it has begun, and taskMost what a task says.
	lineMost, taskMost = 64 << 10, 64 << 20
)

// errKilled says that a process was killed, errCut that its stream was lost. A stream that was cut and whose pod is not
// known to be harmed is errDropped, too: by another stream its pod may be reached again.
var (
	errKilled  = errors.New("killed")
	errCut     = errors.New("its stream was cut")
	errDropped = fmt.Errorf("%w", errCut)
)

// stream is a program that runs in a container, at the end of an exec stream.
type stream struct {
	cluster *Cluster
	place   ContainerRef
	what    string // for errors
	pid     int    // in the pod, 0 for one that was not started by an order

	stdin  *io.PipeWriter
	stdout *bufio.Reader
	output *io.PipeReader
	stderr *tail.Tail

	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has ended
	err    error         // set before done is closed

	mu     sync.Mutex
	reason string
	asked  sync.Once

	closing  atomic.Bool // its input was closed
	close    sync.Once
	closeErr error
}

var _ testbed.Process = (*stream)(nil)

// open runs a command in a container. The stream outlives the context, which gives it its values alone.
func open(ctx context.Context, c *Cluster, at ContainerRef, argv []string) (*stream, error) {
	executor, err := c.executor(at, argv)
	if err != nil {
		return nil, fmt.Errorf("prepare to speak to pod %s: %w", at.Pod, err)
	}
	input, stdin := io.Pipe()
	output, stdout := io.Pipe()
	s := &stream{
		cluster: c, place: at, what: fmt.Sprintf("%s in pod %s", argv[0], at.Pod),
		stdin: stdin, output: output, stdout: bufio.NewReader(output), stderr: tail.New(stderrKept), done: make(chan struct{}),
	}
	ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	// What the library would print to standard error is in the error that it returns.
	ctx = klog.NewContext(ctx, logr.Discard())
	go func() {
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: stdout, Stderr: s.stderr})
		s.err = s.ending(ctx, err)
		_ = input.CloseWithError(io.ErrClosedPipe) // neither close ever fails
		_ = stdout.Close()
		s.cancel(nil)
		close(s.done)
	}()
	return s, nil
}

// executor speaks WebSocket, and SPDY to clusters that do not.
func (c *Cluster) executor(at ContainerRef, argv []string) (remotecommand.Executor, error) {
	url := c.API.REST.Post().Resource("pods").Namespace(at.Namespace).Name(at.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: at.Container, Command: argv, Stdin: true, Stdout: true, Stderr: true}, c.API.Parameters).URL()
	websocket, err := remotecommand.NewWebSocketExecutor(c.REST, http.MethodGet, url.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.REST, http.MethodPost, url)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// ending says how the program ended.
func (s *stream) ending(ctx context.Context, err error) error {
	var failed exec.CodeExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errKilled):
		return fmt.Errorf("%s: %w", s.what, errKilled)
	case errors.As(err, &failed):
		err = fmt.Errorf("%s: exit status %d", s.what, failed.Code)
		if failed.Code == killedStatus {
			s.learn(ctx, failed.Code)
		}
	default:
		cut := errCut
		if s.learn(ctx, 0); unharmed(s.known()) && !strings.Contains(err.Error(), notStarted) {
			cut = errDropped
		}
		err = fmt.Errorf("%s: %w: %w", s.what, cut, withFix(err))
	}
	if reason := s.known(); reason != "" {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	if said := strings.TrimSpace(s.stderr.String()); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// notStarted is in the words of a kubelet whose runtime could not start a program.
const notStarted = "executing command in container"

// killedStatus is what containers give as the exit status of a program that was killed.
const killedStatus = 128 + 9

// learn finds out what became of the pod.
func (s *stream) learn(ctx context.Context, status int) {
	s.tell(s.cluster.failureReason(context.WithoutCancel(ctx), s.place, status))
}

// tell keeps a reason.
func (s *stream) tell(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = reason
}

// FailureReason implements testbed.Process. Of a program that ended by itself, as it seems, it is found out now: a stream whose node has died ends as
// one whose program has.
func (s *stream) FailureReason() string {
	select {
	case <-s.done:
	default:
		return s.known()
	}
	s.asked.Do(func() {
		if s.known() == "" && !s.closing.Load() && !errors.Is(s.err, errKilled) {
			if s.learn(context.Background(), 0); s.known() == stillRuns {
				s.tell("its stream was cut, or it ended by itself: " + stillRuns)
			}
		}
	})
	return s.known()
}

// lost is the error of a program that has ended, or is about to, although it was to go on.
func (s *stream) lost() error {
	err, reason := s.Wait(), cmp.Or(s.FailureReason(), "its program ended")
	if err == nil {
		return errors.New(reason)
	}
	if !strings.Contains(err.Error(), reason) {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	return err
}

// known is the reason as far as it was found out.
func (s *stream) known() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// Exec starts a program in a container, by netdelta which is there already: an empty path is netdelta itself. The context covers
// the start, not the life of the process.
func Exec(ctx context.Context, c *Cluster, at ContainerRef, cmd testbed.Command) (testbed.Process, error) {
	return start(ctx, c, at, cmd)
}

// start is Exec. It tries again while the API server can't be asked.
func start(ctx context.Context, c *Cluster, at ContainerRef, cmd testbed.Command) (*stream, error) {
	name := cmp.Or(cmd.Path, at.Program)
	s, err := fetch(ctx, func() (*stream, error) { return greet(ctx, c, at, order(at, cmd)) })
	if err != nil {
		return nil, fmt.Errorf("start %s in pod %s: %w", name, at.Pod, err)
	}
	s.what = fmt.Sprintf("%s in pod %s", name[strings.LastIndexByte(name, '/')+1:], at.Pod)
	return s, nil
}

// greet opens a stream to a program that is started by an order, and hears its number.
func greet(ctx context.Context, c *Cluster, at ContainerRef, argv []string) (*stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := open(ctx, c, at, argv)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.cancel(errKilled) })
	line, err := tail.Line(s.stdout, lineMost)
	stop()
	if err == nil {
		s.pid, err = started(line)
	}
	if err == nil {
		return s, nil
	}
	early := s.pid == 0 && len(line) == 0 // it ended by itself and says why
	if !early {
		s.cancel(errKilled)
	}
	<-s.done
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if early {
		return nil, errors.Join(s.err, fmt.Errorf("it said nothing: %w", err))
	}
	return nil, err
}

// PID implements testbed.Process: the number is no process of this machine, so it is none.
func (s *stream) PID() int { return 0 }

// Read implements testbed.Process.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.stdout.Read(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = io.EOF
	}
	return n, err
}

// Write implements testbed.Process.
func (s *stream) Write(b []byte) (int, error) { return s.stdin.Write(b) }

// Stderr implements testbed.Process.
func (s *stream) Stderr() string { return s.stderr.String() }

// Wait implements testbed.Process.
func (s *stream) Wait() error {
	<-s.done
	return s.err
}

// killWithin bounds what is said to a pod to have a program killed: where it can't be said in this time the pod is lost.
const killWithin = 5 * time.Second

// Kill implements testbed.Process: it kills what the program has started, too. One that can't be reached any more ends with its
// pod; its stream is cut.
func (s *stream) Kill() error {
	select {
	case <-s.done:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), killWithin)
	defer cancel()
	var err error
	if s.pid > 0 {
		if _, err = runOnce(ctx, s.cluster, s.place, task(s.place, inside.Kill, s.pid)); err != nil {
			s.learn(ctx, 0)
		}
	}
	s.cut()
	return err
}

// cut ends the stream, and with it a program that ends with its input.
func (s *stream) cut() {
	_ = s.output.Close() // it never fails; what is still to come is thrown away
	s.cancel(errKilled)
	<-s.done
}

// Close implements testbed.Process. It is idempotent; its error is the process's, or says that it had to be killed.
func (s *stream) Close() error {
	s.close.Do(func() {
		s.closing.Store(true)
		_ = s.stdin.Close()    // neither ever fails
		defer s.output.Close() //nolint:errcheck // as above
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-s.done:
			s.closeErr = s.err
		case <-timer.C:
			s.closeErr = errors.Join(fmt.Errorf("%s did not end within %s of the end of its input: killed", s.what, grace), s.Kill())
		}
	})
	return s.closeErr
}

// runOnce runs a command to its end and returns what it wrote.
func runOnce(ctx context.Context, c *Cluster, at ContainerRef, argv []string) ([]byte, error) {
	s, err := open(ctx, c, at, argv)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	_ = s.stdin.Close() // it never fails
	out, readErr := tail.All(s.stdout, taskMost)
	if errors.Is(readErr, tail.ErrEndless) {
		s.cut()
	}
	err = errors.Join(s.Wait(), readErr)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("%s: %w", s.what, cause)
	}
	return out, err
}

// ask has a task in a pod done that writes one line of JSON. It must be one that may as well be done twice: while its stream is cut and the
// pod lives on, as when the API server is restarted, it is done again.
func ask[T any](ctx context.Context, c *Cluster, at ContainerRef, name string, params ...any) (T, error) {
	return fetch(ctx, func() (T, error) { return askOnce[T](ctx, c, at, name, params...) })
}

// askOnce is ask without another try.
func askOnce[T any](ctx context.Context, c *Cluster, at ContainerRef, name string, params ...any) (answer T, err error) {
	out, err := runOnce(ctx, c, at, task(at, name, params...))
	if err == nil {
		if err = json.Unmarshal(out, &answer); err != nil {
			err = fmt.Errorf("%s said what is no answer: %.80q: %w", at.Pod, out, err)
		}
	}
	return answer, err
}

// listen has a pod answer on a port until the stream is closed. It returns once the port is open.
func listen(ctx context.Context, c *Cluster, at ContainerRef, port uint16) (*stream, error) {
	s, err := open(ctx, c, at, task(at, inside.Answer, port))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	if _, err := tail.Line(s.stdout, lineMost); err != nil {
		if errors.Is(err, tail.ErrEndless) {
			s.cut()
			return nil, fmt.Errorf("listen on port %d: %w", port, err)
		}
		return nil, fmt.Errorf("listen on port %d: %w", port, s.lost())
	}
	return s, nil
}
