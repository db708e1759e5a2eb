package testbedtest

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// request is what a peer is asked to do, a line of JSON.
type request struct {
	Do       string         `json:"do"`
	Protocol string         `json:"protocol,omitempty"`
	At       netip.AddrPort `json:"at"`
	Size     int            `json:"size,omitempty"`
	Count    int            `json:"count,omitempty"`
	Text     string         `json:"text,omitempty"`
}

// answer is what came of it.
type answer struct {
	Error string `json:"error,omitempty"`
	// Sent counts the messages that were sent to have Count of them answered: more where some were lost.
	Sent int `json:"sent,omitempty"`
	// Exchanged counts the messages of the live connection that came back right.
	Exchanged uint64 `json:"exchanged,omitempty"`
	Text      string `json:"text,omitempty"`
}

// tooBig is the error of a datagram that the path's MTU does not let through.
const tooBig = "too big"

// peer is the program in the pod.
type peer struct {
	live   atomic.Uint64
	broken atomic.Pointer[string]
	ignore bool // the end of its input
}

// BePeer is the peer: it answers requests until its input ends, and returns with which status to exit.
func BePeer() int {
	p := &peer{}
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var r request
		if err := requests.Decode(&r); err != nil {
			for p.ignore {
				time.Sleep(time.Hour) // a program that is linked statically takes select{} for a deadlock
			}
			return 0
		}
		a, err := p.do(r)
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return 1
		}
	}
}

func (p *peer) do(r request) (answer, error) {
	switch r.Do {
	case "serve":
		return answer{}, serve(r)
	case "exchange":
		return exchange(r)
	case "probe":
		return answer{}, probe(r)
	case "connect":
		return answer{}, p.connect(r)
	case "progress":
		if why := p.broken.Load(); why != nil {
			return answer{}, errors.New(*why)
		}
		return answer{Exchanged: p.live.Load()}, nil
	case "ignore":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
		p.ignore = true
		return answer{}, nil
	case "stop":
		return answer{}, unix.Kill(os.Getpid(), unix.SIGSTOP)
	case "die":
		fmt.Fprint(os.Stderr, r.Text)
		os.Exit(r.Count)
	case "environment":
		return answer{Text: strings.Join(os.Environ(), "\n")}, nil
	case "read":
		text, err := os.ReadFile(r.Text)
		return answer{Text: string(text)}, err
	case "fork":
		return fork(r)
	}
	return answer{}, fmt.Errorf("unknown request %q", r.Do)
}

// reverse is what a server makes of a message, so that a test knows that each direction carried its own payload.
func reverse(message []byte) []byte {
	back := bytes.Repeat([]byte{0xff}, len(message))
	subtle.XORBytes(back, back, message)
	return back
}

// message is the n-th one.
func message(n, size int) []byte {
	var period [256]byte
	for i := range period {
		period[i] = byte(n + i*7)
	}
	return bytes.Repeat(period[:], size/len(period)+1)[:size]
}

// serve starts a server that turns messages round.
func serve(r request) error {
	if r.Protocol == "udp" {
		c, err := net.ListenUDP(versioned("udp", r.At), net.UDPAddrFromAddrPort(r.At))
		if err != nil {
			return err
		}
		if err := dontFragment(c, r.At); err != nil {
			return err
		}
		go func() {
			buf := make([]byte, 1<<16)
			for {
				n, from, err := c.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				_, _ = c.WriteToUDPAddrPort(reverse(buf[:n]), from) // the client asks again
			}
		}()
		return nil
	}
	l, err := net.ListenTCP(versioned("tcp", r.At), net.TCPAddrFromAddrPort(r.At))
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 1<<16)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					if _, err := c.Write(reverse(buf[:n])); err != nil {
						return
					}
				}
			}()
		}
	}()
	return nil
}

// versioned is the protocol over the version of IP that an address belongs to.
func versioned(protocol string, at netip.AddrPort) string {
	if at.Addr().Is6() {
		return protocol + "6"
	}
	return protocol + "4"
}

// dontFragment has the kernel refuse datagrams that are larger than the MTU.
func dontFragment(c *net.UDPConn, at netip.AddrPort) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		if at.Addr().Is6() {
			inner = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
		} else {
			inner = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
		}
	})
	return errors.Join(err, inner)
}

// WireGuard repeats a handshake that was lost only after 5 s, and until then holds back or drops what it should encrypt: connections and
// datagrams have to be tried for longer than that. Where both ends begin one at once, neither succeeds, and both try again at nearly the same
// time: on an emulated processor, which takes long for one, that may happen several times in a row.
const (
	connectPatience = 40 * time.Second
	answerPatience  = 300 * time.Millisecond
	attempts        = 120
)

// exchange sends messages one after another and compares the answers.
func exchange(r request) (answer, error) {
	if r.Protocol == "udp" {
		return exchangeUDP(r)
	}
	c, err := net.DialTimeout(versioned("tcp", r.At), r.At.String(), connectPatience)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * connectPatience)); err != nil {
		return answer{}, err
	}
	for n := range r.Count {
		if err := trip(c, message(n, r.Size)); err != nil {
			return answer{}, fmt.Errorf("message %d: %w", n, err)
		}
	}
	return answer{Sent: r.Count}, nil
}

// trip sends a message over a stream and compares the answer.
func trip(c net.Conn, m []byte) error {
	if _, err := c.Write(m); err != nil {
		return err
	}
	back := make([]byte, len(m))
	if _, err := io.ReadFull(c, back); err != nil {
		return err
	}
	if !bytes.Equal(back, reverse(m)) {
		return errors.New("the answer is not that to the message")
	}
	return nil
}

func exchangeUDP(r request) (answer, error) {
	c, err := net.DialUDP(versioned("udp", r.At), nil, net.UDPAddrFromAddrPort(r.At))
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	if err := dontFragment(c, r.At); err != nil {
		return answer{}, err
	}
	var a answer
	for n := range r.Count {
		m := message(n, r.Size)
		var err error
		for range attempts {
			a.Sent++
			if err = datagramTrip(c, m); err == nil || errors.Is(err, unix.EMSGSIZE) {
				break
			}
		}
		if err != nil {
			return a, fmt.Errorf("message %d: %w", n, err)
		}
	}
	return a, nil
}

// datagramTrip sends a datagram and waits for its answer, past late ones to others.
func datagramTrip(c *net.UDPConn, m []byte) error {
	if _, err := c.Write(m); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(answerPatience)); err != nil {
		return err
	}
	want, buf := reverse(m), make([]byte, len(m)+1) // a longer answer is none to this message
	for {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		if bytes.Equal(buf[:n], want) {
			return nil
		}
	}
}

// Headers is the size in bytes of the IP and UDP headers of a datagram to an address.
func Headers(to netip.Addr) int {
	if to.Is6() {
		return 40 + 8
	}
	return 20 + 8
}

// probe finds out whether an IP packet of a size goes to a server and back without fragmentation.
func probe(r request) error {
	_, err := exchangeUDP(request{At: r.At, Size: r.Size - Headers(r.At.Addr()), Count: 1})
	if errors.Is(err, unix.EMSGSIZE) {
		return errors.New(tooBig)
	}
	return err
}

// connect opens a connection and keeps it busy for the life of the peer.
func (p *peer) connect(r request) error {
	c, err := net.DialTimeout(versioned("tcp", r.At), r.At.String(), connectPatience)
	if err != nil {
		return err
	}
	go func() {
		for n := 0; ; n++ {
			if err := trip(c, message(n, r.Size)); err != nil {
				why := fmt.Sprintf("the live connection broke after %d messages: %v", n, err)
				p.broken.Store(&why)
				return
			}
			p.live.Add(1)
			time.Sleep(time.Millisecond) // leave the processor to others
		}
	}()
	return nil
}

// fork starts a child that outlives its parent and leaves its session: what a daemon does.
func fork(r request) (answer, error) {
	child, err := os.StartProcess("/bin/sleep", []string{"sleep", fmt.Sprint(r.Count)}, &os.ProcAttr{
		Env: os.Environ(), Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return answer{}, err
	}
	a := answer{Sent: child.Pid} // which Release forgets
	return a, child.Release()
}
