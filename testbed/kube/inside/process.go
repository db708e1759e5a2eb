package inside

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/daemon"
	"netdelta/internal/native"
	"netdelta/internal/procfile"
)

// Lonely is how long a pod stays up without any process but the one that keeps it up.
const Lonely = 60 * time.Second

// wait is the pod's first process. It returns when the pod was not used for Lonely: then the program that made it is gone, since
// agents end with their input. It takes the status of orphaned processes.
func wait() error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGTERM, unix.SIGINT)
	used := time.Now()
	for time.Since(used) < Lonely {
		select {
		case <-ended:
			return nil
		case <-time.After(time.Second):
		}
		reap()
		daemon.EndOrphans()
		if inUse("/proc", os.Getpid()) {
			used = time.Now()
		}
	}
	return nil
}

// reap takes the status of children that have ended.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// inUse says whether there are living processes other than the given one.
func inUse(proc string, self int) bool {
	pids, _ := procfile.Processes(proc) // none where there is no such file system
	for _, pid := range pids {
		if pid == self {
			continue
		}
		if _, fields, err := procfile.Stat(proc, pid); err == nil && fields[procfile.StatState] != "Z" && fields[procfile.StatState] != "X" {
			return true
		}
	}
	return false
}

// Order is a program to start.
type Order struct {
	Path string   `json:"path"` // "" is this program
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"` // nil takes an almost empty environment
	CPUs []int    `json:"cpus,omitempty"`
}

// Started is the first line that a program which was started writes: its number in the pod, or why it was not started.
type Started struct {
	PID   int    `json:"pid,omitempty"`
	Error string `json:"error,omitempty"`
}

// start becomes the program of an order, under the number that it has told before.
func start(order string, out io.Writer) error {
	runtime.LockOSThread() // a program inherits the processors of the thread that starts it
	var o Order
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return say(out, Started{Error: err.Error()})
	}
	path, err := prepare(o)
	if err != nil {
		return say(out, Started{Error: err.Error()})
	}
	env := o.Env
	if env == nil {
		env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	}
	// What a pod may write to is /tmp, and the folder of homes.
	for name, value := range map[string]string{"HOME": "/tmp", daemon.FolderVariable: os.Getenv(daemon.FolderVariable)} {
		if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			env = append(env, name+"="+value)
		}
	}
	_, _ = unix.Setsid() // it may be at the head of a session already
	if err := say(out, Started{PID: os.Getpid()}); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", path, unix.Exec(path, append([]string{path}, o.Args...), env))
}

// prepare checks an order and pins this thread to its processors.
func prepare(o Order) (path string, err error) {
	if path = o.Path; path == "" {
		if path, err = os.Executable(); err != nil {
			return "", err
		}
	}
	if !filepath.IsAbs(path) {
		return "", errors.New("the path must be absolute")
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return path, native.Pin(o.CPUs...)
}

// kill ends a program that was started, and what it has started. One that has ended is no error.
func kill(pid string) error {
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 {
		return fmt.Errorf("%q is no number of a process that was started", pid)
	}
	err = unix.Kill(-n, unix.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		err = unix.Kill(n, unix.SIGKILL)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", n, err)
	}
	return nil
}

// digest writes the SHA-256 of this program's file.
func digest(out io.Writer) error {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, hex.EncodeToString(h.Sum(nil)))
	return err
}

// Verb is the program's hidden one for pods.
const Verb = "pod"

// What the verb can do, as its first argument.
const (
	Wait    = "wait"    // keep the pod up while other processes are in it
	Start   = "start"   // ORDER: become a program
	Kill    = "kill"    // PID: end a program that was started
	Digest  = "digest"  // say the SHA-256 of this program
	Killed  = "killed"  // say how many processes the kernel killed for want of memory
	Answer  = "answer"  // PORT: answer TCP and UDP until the input ends
	Try     = "try"     // TRIAL: try whether an answerer can be reached
	Watch   = "watch"   // VIGIL: probe an answerer until the input ends, and say when the way opens and closes
	Call    = "call"    // VISIT: probe an answerer from the first moment on, and leave what came of it
	Resolve = "resolve" // NAME FAMILY: look a name up
	Devices = "devices" // list the pod's network devices and settings
	Hold    = "hold"    // do nothing until the input ends, which keeps the pod up
	Lacking = "lacking" // NAMES: say which of these programs are not in the pod
)

// Do does what the arguments after Verb say.
func Do(args []string) error { return do(args, os.Stdin, os.Stdout) }

// task is one of those above.
type task struct {
	name   string
	params int
	run    func(args []string) error
}

// do carries out one task.
func do(args []string, in io.Reader, out io.Writer) error {
	tasks := []task{
		{Wait, 0, func([]string) error { return wait() }},
		{Start, 1, func(a []string) error { return start(a[0], out) }},
		{Kill, 1, func(a []string) error { return kill(a[0]) }},
		{Digest, 0, func([]string) error { return digest(out) }},
		{Killed, 0, func([]string) error { _, err := fmt.Fprintln(out, procfile.Starved(procfile.Groups)); return err }},
		{Answer, 1, func(a []string) error { return answer(a[0], in, out) }},
		{Try, 1, func(a []string) error { return try(a[0], out) }},
		{Watch, 1, func(a []string) error { return watch(a[0], in, out) }},
		{Call, 1, func(a []string) error { return call(a[0], lastWords) }},
		{Resolve, 2, func(a []string) error { return resolve(a[0], a[1], out) }},
		{Devices, 0, func([]string) error { return devices(out) }},
		{Lacking, 1, func(a []string) error { return lacking(a[0], out) }},
		{Hold, 0, func([]string) error { _, err := io.Copy(io.Discard, in); return err }},
	}
	if len(args) == 0 {
		return errors.New("say what to do")
	}
	i := slices.IndexFunc(tasks, func(t task) bool { return t.name == args[0] })
	if i < 0 || len(args)-1 != tasks[i].params {
		return fmt.Errorf("%q is no task with %d arguments", args[0], len(args)-1)
	}
	return tasks[i].run(args[1:])
}

// say writes one line of JSON.
func say(out io.Writer, what any) error { return json.NewEncoder(out).Encode(what) }

// Lacks are programs that are not there.
type Lacks struct {
	Names []string `json:"names,omitempty"`
	Error string   `json:"error,omitempty"` // why it could not be found out
}

// lacking looks for programs, whose names are a list in JSON, and says which are not there.
func lacking(names string, out io.Writer) error {
	var wanted []string
	if err := json.Unmarshal([]byte(names), &wanted); err != nil {
		return fmt.Errorf("read which programs to look for: %w", err)
	}
	var found Lacks
	for _, name := range wanted {
		switch _, err := daemon.Look(name); {
		case errors.Is(err, daemon.ErrMissing):
			found.Names = append(found.Names, name)
		case err != nil:
			return say(out, Lacks{Error: err.Error()})
		}
	}
	return say(out, found)
}
