package lab

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/internal/procfile"
)

// Each namespace that a lab makes carries the lab's mark, as the alias of its device lo. What runs there is found by that mark: a
// program can overwrite its own environment (many do, to show a title in lists of processes) and become another user's. The mark ends
// with the namespace. The environment's mark finds the others: those that have gone on to a namespace of their own, and those in
// namespaces that others have made.

// inhabitants lists the processes of labs, whether these live or have died.
func inhabitants() ([]owner.Process, error) {
	pids, err := procfile.Processes("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	marks := spaceMarks{}
	var found []owner.Process
	for _, pid := range pids {
		if p, ok := marks.inhabitant(pid); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// spaceMarks are the marks of namespaces that were looked at, "" where there is none.
type spaceMarks map[netns.ID]string

// inhabitant looks at one process; ok is false where it is not proven to be of a lab.
func (marks spaceMarks) inhabitant(pid int) (p owner.Process, ok bool) {
	mark := marks.around(pid)
	o, err := owner.Parse(mark)
	if err != nil {
		p, ok := owner.ProcessOf(pid)
		return p, ok && p.Proven()
	}
	name, fields, err := procfile.Stat("/proc", pid)
	if err != nil {
		return owner.Process{}, false
	}
	start, err := strconv.ParseUint(fields[procfile.StatStart], 10, 64)
	if err != nil || start < o.Start {
		return owner.Process{}, false // what is older than the lab is but a visitor
	}
	return owner.Process{PID: pid, Name: name, Owner: o, Mark: mark}, true
}

// around is the mark of the namespace that a process is in.
func (marks spaceMarks) around(pid int) string {
	ns, err := netns.Of(pid)
	if err != nil {
		return "" // it has ended, or is somebody else's
	}
	defer func() { _ = ns.Close() }() // it was only looked at
	mark, known := marks[ns.ID()]
	if !known {
		mark = spaceMark(ns, pid)
		marks[ns.ID()] = mark
	}
	return mark
}

// spaceMark reads the mark of the namespace that a process is in. It is "" where none counts: in the namespace of this program, and in
// those of other users, who may write into them what they like.
func spaceMark(ns *netns.Namespace, pid int) string {
	own, err := netns.Own()
	if err != nil {
		return ""
	}
	defer func() { _ = own.Close() }() // it was only looked at
	if own.ID() == ns.ID() {
		return ""
	}
	if uid, err := userOf(ns); err != nil || uid != os.Geteuid() {
		return ""
	}
	var mark string
	if err := ns.Do(func() (err error) {
		mark, err = markHere()
		return err
	}); err == nil {
		return mark
	}
	// A user without root has its labs in user namespaces, which no program with several threads can enter.
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	enter := fmt.Sprintf("/proc/%d/ns/", pid)
	said, err := exec.Command("nsenter", "--preserve-credentials", "--user="+enter+"user", "--net="+enter+"net", "--", self, markVerb).Output()
	if err != nil {
		return ""
	}
	return string(said)
}

// userOf is the user whose namespace it is.
func userOf(ns *netns.Namespace) (uid int, err error) {
	const nsGetUserNS, nsGetOwnerUID = 0xb701, 0xb704 // NS_GET_USERNS and NS_GET_OWNER_UID of linux/nsfs.h
	err = ns.WithFD(func(fd int) error {
		above, err := unix.IoctlRetInt(fd, nsGetUserNS)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(above) }()
		owner, err := unix.IoctlGetUint32(above, nsGetOwnerUID)
		uid = int(owner)
		return err
	})
	return uid, err
}

// markHere reads the mark of the namespace that this thread is in.
func markHere() (string, error) {
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return "", err
	}
	defer nl.Close()
	lo, err := nl.LinkByIndex(1)
	if err != nil {
		return "", err
	}
	return lo.Attrs().Alias, nil
}

// markVerb is the argument with which this program tells the mark of the namespace that it was started in.
const markVerb = "lab-mark"

// AskedForMark says whether this program was started to tell the mark of a namespace, with TellMark.
func AskedForMark() bool { return len(os.Args) == 2 && os.Args[1] == markVerb }

// TellMark tells the mark of the lab whose namespace this program was started in, and returns its exit status.
func TellMark(out, errs io.Writer) int {
	mark, err := markHere()
	if err == nil {
		_, err = io.WriteString(out, mark)
	}
	if err != nil {
		_, _ = fmt.Fprintln(errs, "netdelta "+markVerb+":", err) // the status says so too
		return 1
	}
	return 0
}
