// Package server is what runs on a server that is a node of a testbed. A supervisor stays in the server's own network namespace: it makes
// the cards that the node gets, or moves a spare one, and puts back what it found when the node ends, however that ends. The node itself
// is a process in a network namespace of its own, which serves testbed/joined.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"netdelta/internal/machine"
	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/testbed/lab"
)

// Cleaned is what was found of killed runs and removed or restored, for people.
type Cleaned struct {
	Removed []string `json:"removed"`
}

// abandoned is how old a folder is that no supervisor was started in: sending the program takes less.
const abandoned = 10 * time.Minute

// clean puts back what killed supervisors left, but for the folder of this one.
func clean(ctx context.Context, mine string) (done Cleaned, err error) {
	orphans, err := lab.Cleanup(ctx)
	for _, o := range orphans {
		done.Removed = append(done.Removed, o.String())
	}
	folders, failed := filepath.Glob(filepath.Join(Parent, Prefix+"*"))
	err = errors.Join(err, failed)
	for _, f := range folders {
		if f == mine || !left(f) {
			continue
		}
		what, failed := putBack(f)
		if err = errors.Join(err, failed); failed == nil {
			done.Removed = append(done.Removed, what...)
		}
	}
	return done, err
}

// left says whether a folder is one whose supervisor has certainly died.
func left(folder string) bool {
	about, err := os.Lstat(folder)
	if err != nil || !about.IsDir() || about.Mode().Perm()&0o077 != 0 || int(about.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return false // everybody may make a folder of such a name
	}
	mark, err := os.ReadFile(filepath.Join(folder, ownerFile))
	if errors.Is(err, fs.ErrNotExist) {
		_, missing := os.Stat(filepath.Join(folder, machine.AgentName))
		return missing == nil && time.Since(about.ModTime()) > abandoned
	}
	if err != nil {
		return false
	}
	who, err := owner.Parse(string(mark))
	return err == nil && who.Dead()
}

// putBack makes the cards what they were that a supervisor had taken, and removes its folder.
func putBack(folder string) (done []string, err error) {
	text, err := os.ReadFile(filepath.Join(folder, CardFile))
	if err == nil {
		var all []taken
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, fmt.Errorf("read what cards were like: %w", err)
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
		if err != nil {
			return done, err
		}
	}
	return append(done, "directory "+folder), os.RemoveAll(folder)
}

// device is the folder with the files of a card's driver.
func device(card string) string { return filepath.Join("/sys/class/net", card, "device") }

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

// makeFunctions has a card have so many virtual functions.
func makeFunctions(file string, count int) error {
	if err := os.WriteFile(file, []byte(strconv.Itoa(count)), 0); err != nil {
		return fmt.Errorf("make %d virtual functions: %w", count, err)
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
	most, file := functionsOf(card), filepath.Join(folder, "sriov_numvfs")
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
			return fail(errors.Join(err, os.Remove(filepath.Join(o.Folder, CardFile))))
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
		err = errors.Join(err, makeFunctions(made, 0), os.Remove(filepath.Join(o.Folder, CardFile)))
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
