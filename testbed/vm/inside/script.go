package inside

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/testbed/rpc"
	"netdelta/testbed/vm/wire"
)

// outputLate is how long output is waited for after a program has ended, where others hold it open.
const outputLate = 500 * time.Millisecond

// runScript runs programs one after another, as a guest does that takes no requests: nothing that comes from outside can then
// change what it does when. The first that fails ends it.
func (g *guest) runScript(text []byte) error {
	var script []wire.Command
	if err := json.Unmarshal(text, &script); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	fd, err := unix.Open(wire.ScriptDevice, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the way to the host: %w", err)
	}
	if err := rawLine(fd); err != nil {
		return err
	}
	device := os.NewFile(uintptr(fd), wire.ScriptDevice)
	w := rpc.NewWriter(device)
	if err := w.JSON(rpc.Ready, hello()); err != nil {
		return err
	}
	for _, command := range script {
		exit := g.run(command, nil, w)
		if err := w.JSON(rpc.Exited, exit); err != nil {
			return err
		}
		if exit.Status != 0 {
			break
		}
	}
	if err := drain(fd); err != nil {
		return err
	}
	return device.Close()
}

// rawLine has a serial line pass all bytes as they are.
func rawLine(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("set up the serial line: %w", err)
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
	t.Ispeed, t.Ospeed = unix.B115200, unix.B115200
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
		return fmt.Errorf("set up the serial line: %w", err)
	}
	return nil
}

// drain waits until all is sent.
func drain(fd int) error {
	if err := unix.IoctlSetInt(fd, unix.TCSBRK, 1); err != nil {
		return fmt.Errorf("wait for the serial line: %w", err)
	}
	return nil
}
