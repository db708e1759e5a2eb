// Package inside is what netdelta is in a pod of a cluster in addition to an agent: what keeps the pod up while it is used, what
// starts programs in it, and what tries whether a way is open before anything is measured on it. It speaks over standard input and
// output, as one verb of the program.
package inside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"netdelta/testbed"
)

// answer sends back what a port receives, by TCP and by UDP, until its input ends. It writes a line when it is ready.
func answer(port string, in io.Reader, out io.Writer) error {
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is no port", port)
	}
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // the program ends with it
	packets, err := listenWhole(port)
	if err != nil {
		return err
	}
	defer func() { _ = packets.Close() }() // likewise
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c) // the client sees what is missing
				_ = c.Close()
			}()
		}
	}()
	go answerPackets(packets)
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// Trial is a way to be tried until it is open, or for so long.
type Trial struct {
	At     []netip.AddrPort `json:"at"` // all of them must answer
	Within time.Duration    `json:"within_ns"`
	// Whole says that packets as large as the devices at both ends take are tried as well, to the first of them.
	Whole bool `json:"whole,omitempty"`
}

// Outcome is what came of a Trial.
type Outcome struct {
	Took  time.Duration `json:"took_ns"`
	Error string        `json:"error,omitempty"` // "" where all ways are open
	// Out and Back are how large packets can be to the other end and back from there, where that was tried.
	Out  Passing `json:"out"`
	Back Passing `json:"back"`
	// Stuck says that a stream by TCP, whose packets are as large as its ends take, did not come back.
	Stuck bool `json:"stuck,omitempty"`
}

// tryOnce is how long one attempt may take, and tryPause the time between two.
const (
	tryOnce  = time.Second
	tryPause = 50 * time.Millisecond
)

// try tries ways by TCP and UDP, and writes the outcome.
func try(trial string, out io.Writer) error {
	var t Trial
	if err := json.Unmarshal([]byte(trial), &t); err != nil {
		return err
	}
	began := time.Now()
	for _, at := range t.At {
		for _, protocol := range []string{"tcp", "udp"} {
			for {
				err := echo(protocol, at)
				if err == nil {
					break
				}
				if time.Since(began) >= t.Within {
					return say(out, Outcome{Took: time.Since(began), Error: fmt.Sprintf("%s by %s: %v", at, protocol, err)})
				}
				time.Sleep(tryPause)
			}
		}
	}
	o := Outcome{}
	if t.Whole && len(t.At) > 0 {
		var err error
		if o, err = tryWhole(t.At[0]); err != nil {
			return fmt.Errorf("try large packets to %s: %w", t.At[0], err)
		}
	}
	o.Took = time.Since(began)
	return say(out, o)
}

// echo sends something and waits for it to come back.
func echo(protocol string, at netip.AddrPort) error {
	c, err := net.DialTimeout(protocol, at.String(), tryOnce)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it has served
	if err := c.SetDeadline(time.Now().Add(tryOnce)); err != nil {
		return err
	}
	words := []byte("netdelta")
	if _, err := c.Write(words); err != nil {
		return err
	}
	back := make([]byte, len(words))
	if _, err := io.ReadFull(c, back); err != nil {
		return err
	}
	if !bytes.Equal(back, words) {
		return errors.New("something else answers there")
	}
	return nil
}

// resolveWithin is how long a name server may take.
const resolveWithin = 3 * time.Second

// Resolved is what a name stands for.
type Resolved struct {
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Error     string       `json:"error,omitempty"`
}

// resolve asks the pod's name server for the addresses of a name, of the family "ip4" or "ip6".
func resolve(name, family string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), resolveWithin)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, family, name)
	r := Resolved{}
	if err != nil {
		r.Error = err.Error()
	}
	for _, a := range found {
		r.Addresses = append(r.Addresses, a.Unmap())
	}
	return say(out, r)
}

// Device is a network device of the pod's namespace.
type Device struct {
	Name      string   `json:"name"`
	MTU       int      `json:"mtu"`
	Addresses []string `json:"addresses,omitempty"`
}

// Seen is what there is in the pod's namespace: its devices, and the kernel's settings by name.
type Seen struct {
	Devices []Device          `json:"devices"`
	Sysctls map[string]string `json:"sysctls"`
}

// devices writes what there is. What can't be read is left out.
func devices(out io.Writer) error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	var seen Seen
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		d := Device{Name: i.Name, MTU: i.MTU}
		addresses, err := i.Addrs()
		if err != nil {
			return err
		}
		for _, a := range addresses {
			d.Addresses = append(d.Addresses, a.String())
		}
		seen.Devices = append(seen.Devices, d)
	}
	seen.Sysctls, _ = testbed.ReadSettings(testbed.Settings()) // what can't be read is left out
	return say(out, seen)
}
