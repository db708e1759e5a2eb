// Package server is what runs on a server that is a node of a testbed. A supervisor stays in the server's own network namespace: it makes
// the cards that the node gets, or moves a spare one, and puts back what it found when the node ends, however that ends. The node itself
// is a process in a network namespace of its own, which serves testbed/joined.
package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/machine"
	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/result"
	"netdelta/testbed/lab"
)

// Cleaned is what was found of killed runs and removed or restored, for people.
type Cleaned struct {
	Removed []string `json:"removed"`
}

// abandoned is how old a folder is that no supervisor was started in: sending the program takes less.
const abandoned = 10 * time.Minute

// clean puts back what killed supervisors left, but for the one with these notes. Older versions kept their notes in the folders of the
// programs: anybody can make folders there, and so nothing is read from one that is not this user's alone.
func clean(ctx context.Context, mine *result.Files) (done Cleaned, err error) {
	orphans, err := lab.Cleanup(ctx)
	for _, o := range orphans {
		done.Removed = append(done.Removed, o.String())
	}
	for _, parent := range []string{filepath.Dir(mine.Dir()), Parent} {
		folders, failed := filepath.Glob(filepath.Join(parent, Prefix+"*"))
		err = errors.Join(err, failed)
		for _, path := range folders {
			if path == mine.Dir() || !isSession(filepath.Base(path)) {
				continue
			}
			what, failed := cleanFolder(path)
			done.Removed, err = append(done.Removed, what...), errors.Join(err, failed)
		}
	}
	return done, err
}

// cleanFolder puts back what the supervisor of a folder left, if it has certainly died, and removes its folders.
func cleanFolder(path string) (done []string, err error) {
	f, err := result.OpenPrivateFiles(path)
	if err != nil {
		return nil, nil // it is none of ours
	}
	defer func() { _ = f.Close() }() // nothing was written by it
	if !left(f) {
		return nil, nil
	}
	if done, err = putBack(f); err != nil {
		return done, err
	}
	return append(done, "directory "+path), errors.Join(os.RemoveAll(path), os.RemoveAll(programs(path)))
}

// programs is the folder of a supervisor's program, by the one of its notes.
func programs(notes string) string { return filepath.Join(Parent, filepath.Base(notes)) }

// left says whether a folder is one whose supervisor has certainly died.
func left(f *result.Files) bool {
	mark, err := f.Read(ownerFile, noteMost)
	if err == nil {
		who, err := owner.Parse(string(mark))
		return err == nil && who.Dead()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	about, err := os.Lstat(f.Dir())
	return err == nil && time.Since(about.ModTime()) > abandoned && !runs(f)
}

// runs says whether a supervisor runs of which the program is in a folder, which has a lock on it, or is about to: it is being sent.
func runs(f *result.Files) bool {
	program, err := f.Open(machine.AgentName)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = program.Close() }() // with the lock
	about, err := program.Stat()
	return err != nil || time.Since(about.ModTime()) < abandoned || unix.Flock(int(program.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

// putBack makes the cards what they were that a supervisor had taken.
func putBack(f *result.Files) (done []string, err error) {
	text, err := f.Read(cardFile, noteMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := parseNote(text)
	if err != nil {
		return nil, err
	}
	own, err := netns.Own()
	if err != nil {
		return nil, err
	}
	defer func() { _ = own.Close() }()
	for _, t := range all {
		if failed := t.giveBack(own, nil); failed != nil {
			err = errors.Join(err, failed) // the other cards go back all the same
			continue
		}
		done = append(done, "card "+t.Name+", as it was")
	}
	return done, err
}

// sys is where the kernel has its devices.
const sys = "/sys"

// device is the folder with the files of a card's driver.
func device(card string) string { return filepath.Join(sys, "class/net", card, "device") }

// number reads a file that holds one; it is 0 where there is none.
func number(file string) int {
	text, _ := os.ReadFile(file) // what can't be read holds no number
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}

// functionsOf is how many virtual functions a card can have.
func functionsOf(card string) int { return number(filepath.Join(device(card), "sriov_totalvfs")) }

// functionsFile is the file of a card by which it is told how many virtual functions it has.
const functionsFile = "sriov_numvfs"

// makeFunctions has a card have so many virtual functions. Its file may have been read from a note: nothing outside of /sys is written.
func makeFunctions(file string, count int) error {
	fail := func(err error) error { return fmt.Errorf("make %d virtual functions: %w", count, err) }
	name, inside := strings.CutPrefix(file, sys+"/")
	if !inside || filepath.Clean(file) != file || filepath.Base(file) != functionsFile {
		return fail(fmt.Errorf("%q is no file of a card below %s", file, sys))
	}
	root, err := os.OpenRoot(sys)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = root.Close() }() // nothing was written by it
	opened, err := root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return fail(err)
	}
	_, err = opened.WriteString(strconv.Itoa(count))
	if err = errors.Join(err, opened.Close()); err != nil {
		return fail(err)
	}
	return nil
}

// functionWithin is how long the driver of a virtual function may take to make its device.
const functionWithin = 20 * time.Second

// function is the device of the card's virtual function that the order names. Where the card has no functions yet they are made, up to
// that one, which is noted first: what is made here ends with the node.
func (o Order) function(card string) (t taken, err error) {
	fail := func(err error) (taken, error) {
		return t, fmt.Errorf("take virtual function %d of the card %s: %w", o.Function, card, err)
	}
	folder, err := filepath.EvalSymlinks(device(card))
	if err != nil {
		return fail(err)
	}
	most, file := functionsOf(card), filepath.Join(folder, functionsFile)
	if o.Function >= most {
		return fail(fmt.Errorf("it can have %d", most))
	}
	there := number(file)
	if there == 0 {
		t = taken{Name: fmt.Sprintf("%s/%d", card, o.Function), Made: file}
		if err := o.note(t); err != nil {
			return fail(err)
		}
		if err := makeFunctions(file, o.Function+1); err != nil {
			return fail(errors.Join(err, o.notes.Remove(cardFile)))
		}
	} else if o.Function >= there {
		return fail(fmt.Errorf("it has %d, numbered from 0: name one of these", there))
	}
	made := t.Made
	name, err := functionDevice(folder, o.Function)
	if err == nil {
		err = o.spare(name)
	}
	if err == nil {
		t, err = noted(name)
	}
	if err == nil {
		t.Made = made
		return t, nil
	}
	if made != "" {
		err = errors.Join(err, makeFunctions(made, 0), o.notes.Remove(cardFile))
	}
	return fail(err)
}

// functionDevice waits for the device of a virtual function, and returns its name.
func functionDevice(folder string, number int) (string, error) {
	for until := time.Now().Add(functionWithin); ; time.Sleep(20 * time.Millisecond) {
		found, err := filepath.Glob(filepath.Join(folder, fmt.Sprintf("virtfn%d", number), "net", "*"))
		if err != nil || len(found) > 0 {
			return filepath.Base(append(found, "")[0]), err
		}
		if time.Now().After(until) {
			return "", errors.New("it has no device: is the driver of virtual functions loaded, and has no virtual machine or container taken it?")
		}
	}
}

// spare refuses a virtual function that the server uses.
func (o Order) spare(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	has, err := o.carriesUs(link)
	if err != nil {
		return err
	}
	why, err := o.notTaken(link, has)
	if err == nil && why != "" {
		err = fmt.Errorf("%s: %s", name, why)
	}
	return err
}
