package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// CheckFolder refuses a folder in which others than this program's user and root can put what the program then runs, follows or
// believes: one that is another user's, that others may write to, that is a link, or that stands where others can replace it. A folder
// that is not there is no error. The variable is the one that names another place for it.
func CheckFolder(path, variable string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find the folder %s: %w", path, err)
	}
	instead := fmt.Sprintf("set %s to a folder of your own", variable)
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a link, and netdelta follows none there: remove it, or set %s to where it leads", path, variable)
	} else if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no folder: remove it, or %s", path, instead)
	} else if err == nil && info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to %s (%v), from which netdelta runs programs: chmod go-w %[1]s, or %[3]s", path, info.Mode(), instead)
	}
	whose, err := intruder(path, maxLinks)
	if err != nil {
		return fmt.Errorf("look at the folder %s: %w; %s", path, err, instead)
	}
	if whose != "" {
		return fmt.Errorf("the folder %s is not this user's (%s) alone: %s, and so could have netdelta run programs as %[2]s: call netdelta as that user, or %[4]s",
			path, named(os.Geteuid()), whose, instead)
	}
	return nil
}

// maxLinks is how many links a path may lead through, as for the kernel.
const maxLinks = 40

// intruder says who else than this program's user and root can replace what a path leads to, "" where nobody can: the owner of each
// folder and link on the way, and whoever may write to a folder. In one for all (/tmp) nobody can replace what is another's.
func intruder(path string, links int) (string, error) {
	if links == 0 {
		return "", &os.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
	}
	root, err := os.Stat("/") // its owner is root, whatever number root has here: see user_namespaces(7)
	if err != nil {
		return "", err
	}
	at := "/"
	for _, name := range strings.Split(path, "/") {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if uid := uidOf(info); uid != os.Geteuid() && uid != 0 && (uid != uidOf(root) || at == path) {
			return fmt.Sprintf("%s belongs to %s", at, named(uid)), nil
		}
		if info.IsDir() && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Sprintf("everybody may write to %s (%v)", at, info.Mode()), nil
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(at)
			if err != nil {
				return "", err
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(at), to)
			}
			return intruder(filepath.Join(to, strings.TrimPrefix(path, at)), links-1)
		}
	}
	return "", nil
}

func uidOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// named is a user's name and number, the number alone where there is no name.
func named(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s, uid %d", u.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}
