package ssh_test

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/result"
)

// passed is a TCP packet with something in it, by when it came.
type passed struct {
	at      time.Duration
	control bool // of a connection of SSH
}

// listen keeps what passes a device of the controller's namespace. The function that is returned ends that and says what passed.
func (l *lan) listen(t *testing.T, device string) func() []passed {
	t.Helper()
	fd := -1
	must(t, l.between.Do(func() error {
		link, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		ip := int(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL)))
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, ip); err != nil {
			return err
		}
		wait := unix.NsecToTimeval((20 * time.Millisecond).Nanoseconds())
		return errors.Join(
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(ip), Ifindex: link.Index}), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		)
	}))
	var all []passed
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		frame, more := make([]byte, 128), make([]byte, 128)
		for {
			n, control, _, _, err := unix.Recvmsg(fd, frame, more, 0)
			select {
			case <-stop:
				return
			default:
			}
			if err != nil {
				continue // none came for a while
			}
			p, is := tcp(frame[:n])
			stamps, err := unix.ParseSocketControlMessage(more[:control])
			if is && err == nil && len(stamps) == 1 {
				s := stamps[0].Data
				p.at = time.Duration(binary.NativeEndian.Uint64(s))*time.Second + time.Duration(binary.NativeEndian.Uint64(s[8:]))
				all = append(all, p)
			}
		}
	}()
	return func() []passed {
		close(stop)
		<-stopped
		_ = unix.Close(fd)
		return all
	}
}

// tcp reads a frame, and says whether it is a TCP packet over IPv4 with something in it.
func tcp(frame []byte) (p passed, is bool) {
	const ethernet, ipv4, proto = 14, 0x0800, 6
	if len(frame) < ethernet+40 || binary.BigEndian.Uint16(frame[12:]) != ipv4 || frame[ethernet+9] != proto {
		return p, false
	}
	header := int(frame[ethernet]&15) * 4
	segment := frame[ethernet+header:]
	if len(segment) < 20 {
		return p, false
	}
	length := int(binary.BigEndian.Uint16(frame[ethernet+2:])) - header - int(segment[12]>>4)*4
	p.control = binary.BigEndian.Uint16(segment) == 22 || binary.BigEndian.Uint16(segment[2:]) == 22
	return p, length > 0
}

// TestSilentDuringBurstsWhenQuiet: where control traffic goes over the same card as what is measured, nothing of it passes while a burst runs.
func TestSilentDuringBurstsWhenQuiet(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	const burst = 100 * time.Millisecond
	text := strings.NewReplacer("[metal, host, routed, vxlan]", "[metal, host]", "builds: 6, rounds: 3", "builds: 1, rounds: 12", "burst: 2ms", "burst: "+burst.String()).Replace(study)
	must(t, os.WriteFile(filepath.Join(p.dir, "small.yaml"), []byte(text), 0o600))
	seen := f.listen(t, "port0-0")
	said, _ := p.command(t.Context(), "run", "small.yaml", "--quiet", "--builds", "1", "--out", "out", "--nodes", f.nodes()).CombinedOutput()
	all := seen()
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	if err != nil || len(contents.Trials) != 3 {
		t.Fatalf("there are %d trials, %v\n%s", len(contents.Trials), err, said)
	}
	// Between the control packet that asks for a burst and the one that answers, its warm-up and the burst pass. What is said meanwhile would
	// leave two shorter pauses.
	whole, control := 0, 0
	var last, first, latest time.Duration
	for _, one := range all {
		if !one.control {
			if first < last {
				first = one.at
			}
			latest = one.at
			continue
		}
		if first > last && latest-first > burst/2 && one.at-last > burst*11/10 {
			whole++
		}
		control++
		last = one.at
	}
	if whole < 36 || control == 0 {
		t.Errorf("%d bursts passed as a whole between two control packets of %d", whole, control)
	}
}
