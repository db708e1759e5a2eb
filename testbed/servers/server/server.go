package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/joined"
)

// Verb is the argument with which the program becomes the supervisor.
const Verb = "server"

// inside is the argument after Verb with which the program becomes the node.
const inside = "inside"

// The modes in which a node gets its cards.
const (
	// Macvlan makes devices over a card that stays with the server: the server's own network is not touched.
	Macvlan = `macvlan`
	// IPVlan makes devices over a card that stays with the server, which all have the card's own MAC address.
	IPVlan = `ipvlan`
	// Take moves a spare card away from the server, and makes macvlan devices over it.
	Take = "take"
	// VF moves a virtual function of a card away from the server, and makes ipvlan devices over it: a card sends and receives nothing under
	// another MAC address than the one that its function has.
	VF = "vf"
)

// OneMAC says that all devices of a node have one MAC address in a mode, so that packets find theirs by the address of its node alone.
func OneMAC(mode string) bool { return mode == IPVlan || mode == VF }

// Cards are the names of the cards that are written as "eth2+eth3"; "" is one without a name.
func Cards(text string) []string { return strings.Split(text, "+") }

// Wires are the names of the devices of a node by which so many testbeds reach other nodes: each has one device over each card.
func Wires(count int, cards string) [][]string {
	all := make([][]string, count)
	for w := range all {
		for k := range Cards(cards) {
			all[w] = append(all[w], deviceName(k*count+w))
		}
	}
	return all
}

// deviceName is the name of a device of a node, by its number: those over the first card come first.
func deviceName(number int) string { return fmt.Sprintf("wire%d", number) }

// What a supervisor is started for.
const (
	Node  = "node"  // be a node
	Look  = "look"  // report, and change nothing
	Ways  = "ways"  // find out how large packets can be that get to other servers, and change nothing
	Clean = "clean" // remove what killed supervisors left, and say what
)

// Order is what a supervisor is told.
type Order struct {
	Do string `json:"do"`
	// Folder is the private folder that the program was sent to, if it was; it is removed at the end. The folder of the supervisor's notes has
	// the same name.
	Folder string `json:"folder"`
	// Mode and Card say how the node gets its cards, of which Card may name several (Cards). Where Card is "", it is the card with the
	// address Address, by which the server was reached. Function is the number of the card's virtual function.
	Mode     string `json:"mode"`
	Card     string `json:"card"`
	Function int    `json:"function,omitempty"`
	Address  string `json:"address"`
	// MACs are the addresses of the devices to make, as many as there are to be over all cards, also where they have the card's.
	MACs []string `json:"macs"`
	// Peers are the addresses of the servers that Ways lead to.
	Peers []string `json:"peers,omitempty"`
	// Silence is how long the controller may be silent, which asks more often than that. After it the connection is half open.
	Silence time.Duration `json:"silence"`

	notes *result.Files // what has to be known when the supervisor is killed
}

// Parent is where the programs of supervisors are sent to, each to a folder of its own: others may make folders there, too. Prefix begins
// their names, and sessionLength hexadecimal digits follow.
const (
	Parent        = "/tmp"
	Prefix        = "netdelta-"
	sessionLength = 16
)

// isSession says whether a folder's name is one that a supervisor has: other parts of netdelta have folders in the same places.
func isSession(name string) bool {
	digits, is := strings.CutPrefix(name, Prefix)
	_, err := hex.DecodeString(digits)
	return is && err == nil && len(digits) == sessionLength
}

// The files of a supervisor's notes.
const (
	ownerFile = "owner"     // the mark of the supervisor
	cardFile  = "card.json" // what the cards were like that it took
)

// notesFolder is where supervisors of this user have the folders of their notes: no other user can write there.
func notesFolder() string { return owner.RuntimeFolder(os.Getenv, "netdelta-servers") }

// openNotes makes the folder of a supervisor's notes.
func openNotes(name string) (*result.Files, error) {
	parent := notesFolder()
	path := filepath.Join(parent, name)
	err := os.Mkdir(parent, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil {
		var above *result.Files // else another user could have made it
		if above, err = result.OpenPrivateFiles(parent); err == nil {
			err = errors.Join(os.Mkdir(path, 0o700), above.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make a private folder: %w", err)
	}
	return result.OpenPrivateFiles(path)
}

// grace is how long a node has to give back what it has when it is told to end.
const grace = 15 * time.Second

// Do carries out an order, or is the node.
func Do(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == inside:
		silence, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		return serve(ctx, in, out, silence)
	case len(args) != 1:
		return errors.New("this is started by netdelta on a server: it takes one order")
	}
	var o Order
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return fmt.Errorf("read the order: %w; use the same netdelta on both sides", err)
	}
	if filepath.Dir(o.Folder) != Parent || !isSession(filepath.Base(o.Folder)) {
		return fmt.Errorf("the folder %q is not one that netdelta makes", o.Folder)
	}
	program, err := os.Open("/proc/self/exe")
	if err == nil {
		defer func() { _ = program.Close() }()
		err = unix.Flock(int(program.Fd()), unix.LOCK_SH) // a cleanup sees by it that the program is used
	}
	if err != nil {
		return fmt.Errorf("lock the program: %w", err)
	}
	if o.notes, err = openNotes(filepath.Base(o.Folder)); err != nil {
		return err
	}
	defer func() { _ = o.notes.Close() }() // each file in it is closed
	// A connection that is cut must not end this before all is put back.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	err = o.carryOut(ctx, in, out)
	path := o.notes.Dir()
	if _, missing := os.Lstat(filepath.Join(path, cardFile)); missing != nil { // else cleanup may put the card back
		err = errors.Join(err, os.RemoveAll(path))
	}
	return errors.Join(err, os.RemoveAll(o.Folder))
}

func (o Order) carryOut(ctx context.Context, in io.Reader, out io.Writer) error {
	self, err := owner.Self()
	if err != nil {
		return err
	}
	if err := write(o.notes, ownerFile, []byte(self.String())); err != nil {
		return fmt.Errorf("note who uses the folder: %w", err)
	}
	if o.Do == Clean {
		done, err := clean(ctx, o.notes)
		return errors.Join(err, json.NewEncoder(out).Encode(done))
	}
	if o.Do == Ways {
		return json.NewEncoder(out).Encode(o.ways())
	}
	own, err := netns.Own()
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }() // it ends with the process in any case
	cards, report, err := o.look()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(report); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if o.Do == Look {
		return nil
	}
	return o.beNode(ctx, own, cards, in, out)
}

// beNode starts the node, gives it its cards and stays until it has ended.
func (o Order) beNode(ctx context.Context, own *netns.Namespace, cards []string, in io.Reader, out io.Writer) (err error) {
	ready, release, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { _ = release.Close() }()
	runtime.LockOSThread() // the node is told when the thread ends that started it
	node := exec.CommandContext(ctx, "/proc/self/exe", Verb, inside, o.Silence.String())
	outside, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return fmt.Errorf("open this server's network namespace: %w", err)
	}
	defer func() { _ = outside.Close() }()
	node.Stdin, node.Stdout, node.Stderr, node.ExtraFiles = in, out, os.Stderr, []*os.File{ready, outside}
	node.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	node.Cancel = func() error { return node.Process.Signal(syscall.SIGTERM) }
	node.WaitDelay = grace
	err = node.Start()
	_ = ready.Close() // the node has its own
	if err != nil {
		return fmt.Errorf("start the node in a network namespace: %w", err)
	}
	ns, err := netns.Of(node.Process.Pid)
	if err == nil {
		// Kept open: a card that was taken must not be lost with the node.
		defer func() { _ = ns.Close() }()
		var back func() error
		if back, err = o.give(own, ns, cards); back != nil {
			defer func() { err = errors.Join(err, back()) }()
		}
	}
	if err == nil {
		_, err = release.Write([]byte{1})
	}
	if err != nil {
		_ = node.Process.Kill() // it has not begun
		return errors.Join(err, ignoreExit(node.Wait()))
	}
	return node.Wait()
}

// ignoreExit drops that a process ended as it was told to.
func ignoreExit(err error) error {
	if _, is := errors.AsType[*exec.ExitError](err); is {
		return nil
	}
	return err
}

// watched is standard input and output, whose reader is known to be there.
type watched struct {
	io.Reader
	io.Writer
	timer   *time.Timer
	silence time.Duration
}

// Read implements io.Reader.
func (w watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	w.timer.Reset(w.silence)
	return n, err
}

// Close implements io.Closer: a read that is under way ends with the process.
func (watched) Close() error { return nil }

// Networks are those that can join servers.
func Networks() []network.Network { return append(network.Found(), network.Catalogue()...) }

// serve is the node: it waits for its cards and serves the controller. It ends with its input, and when the controller is silent.
func serve(ctx context.Context, in io.Reader, out io.Writer, silence time.Duration) error {
	ready := os.NewFile(3, "ready")
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		return errors.New("the supervisor ended before the node had its cards")
	}
	_ = ready.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := watched{in, out, time.AfterFunc(silence, cancel), silence}
	// A write to a half-open connection must not keep the node: what it has ends with the process.
	context.AfterFunc(ctx, func() { time.AfterFunc(grace-time.Second, func() { os.Exit(1) }) })
	own, err := netns.OfFile(4)
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }() // it ends with the process in any case
	return joined.ServeBeside(ctx, w, Networks(), own)
}
