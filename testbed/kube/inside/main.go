package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"netdelta/internal/procfile"
)

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
