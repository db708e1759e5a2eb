package keep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/rpc"
)

// order is what a keeper is started with, on its standard input.
type order struct {
	Name   string       `json:"name"`
	Folder string       `json:"folder"`
	Spec   testbed.Spec `json:"spec"`
}

// deed is what a keeper may be asked to do.
type deed string

const (
	tellStatus deed = "status" // nothing but the answer
	openDoor   deed = "enter"  // hand over the namespaces of a pod or node
	swap       deed = "swap"   // replace the network
	end        deed = "down"   // remove the lab, and end
)

// request is sent to a keeper's socket, one on each connection. One answer comes back, and the end of the connection.
type request struct {
	Do      deed   `json:"do"`
	Where   string `json:"where,omitempty"`
	Network string `json:"network,omitempty"`
}

// answer is what a keeper says, first of all on its standard output. With a door come two descriptors: of the keeper's user
// namespace and of the network namespace.
type answer struct {
	rpc.Greeting
	Status *Status `json:"status,omitempty"`
	Mark   string  `json:"mark,omitempty"`
	Error  string  `json:"error,omitempty"`
	// Unknown says that the error is a name which there is not.
	Unknown bool `json:"unknown,omitempty"`
}

// Status is what a keeper tells of its lab.
type Status struct {
	Name    string        `json:"name"`
	Network string        `json:"network"`
	Family  result.Family `json:"family,omitempty"`
	Nodes   int           `json:"nodes"`
	Started time.Time     `json:"started"`
	PID     int           `json:"pid"` // of the keeper
	// Rootless tells a lab in a user namespace from one of root.
	Rootless bool  `json:"rootless"`
	Pods     []Pod `json:"pods"`
	// Path lists the devices from the first pod to the last, "" where there is but one pod.
	Path string `json:"path,omitempty"`
	// Trouble says why there is nothing here but the name: the keeper does not answer.
	Trouble string `json:"trouble,omitempty"`
}

// Pod is an endpoint of a lab that is up.
type Pod struct {
	Name    string `json:"name"`
	Node    string `json:"node"`
	Address string `json:"address"`
	// Reached is where the first pod reaches a server of this one that listens on Port, the first that is open to all.
	Reached string `json:"reached"`
	Port    uint16 `json:"port"`
}

// maxMessage is far more than the answer of the largest lab.
const maxMessage = 16 << 20

// tell writes a message with descriptors.
func tell(conn *net.UnixConn, message any, fds ...int) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	n, _, err := conn.WriteMsgUnix(text, rights, nil)
	if err == nil && n < len(text) {
		_, err = conn.Write(text[n:])
	}
	return err
}

// hear reads a message up to the end of the connection, or of this direction of it, with at most two descriptors.
func hear(conn *net.UnixConn, message any) (files []*os.File, err error) {
	var text []byte
	part, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(2*4))
	for {
		n, oob, _, _, err := conn.ReadMsgUnix(part, rights)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			var more []*os.File
			more, err = received(rights[:oob])
			files, text = append(files, more...), append(text, part[:n]...)
		}
		if err == nil && len(text) > maxMessage {
			err = fmt.Errorf("a message of more than %d bytes", maxMessage)
		}
		if err != nil {
			return nil, errors.Join(err, closeAll(files))
		}
	}
	if err := json.Unmarshal(text, message); err != nil {
		return nil, errors.Join(fmt.Errorf("a message that is not understood: %w", err), closeAll(files))
	}
	return files, nil
}

// received unpacks descriptors.
func received(rights []byte) (files []*os.File, err error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // it carries something else
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "namespace"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) error {
	var failed error
	for _, f := range files {
		failed = errors.Join(failed, f.Close())
	}
	return failed
}
