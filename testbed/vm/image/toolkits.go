package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// triple is what Debian calls the folder of libraries of this machine.
const triple = "x86_64-linux-gnu"

// emulatorPackages are what emulates the machine.
func emulatorPackages() []string {
	return []string{"qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios", "ipxe-qemu"}
}

// toolkit is which files of which packages go into an archive.
type toolkit struct {
	archive  Archive
	packages []string
	// files are patterns below the packages' root folder, under either of / and /usr. Programs come with their libraries.
	files []string
	links map[string]string
}

// toolkits are in the order in which they are unpacked over one another.
func toolkits() []toolkit {
	return []toolkit{
		{
			archive:  Base,
			packages: []string{"busybox-static", "dash", "iproute2", "iptables", "ipset"},
			files: []string{"bin/busybox", "bin/dash", "bin/ip", "bin/ss", "sbin/tc", "sbin/bridge", "sbin/xtables-nft-multi",
				"sbin/xtables-legacy-multi", "sbin/ipset", "lib/" + triple + "/xtables/*.so"},
			// Debian's busybox as a shell would run its own ip in place of the real one.
			links: map[string]string{"bin/sh": "dash", "sbin/modprobe": "/bin/busybox"},
		},
		{
			archive:  Tools,
			packages: []string{"nftables", "ipvsadm", "ethtool", "tcpdump", "wireguard-tools", "conntrack", "iperf3", "sockperf"},
			files: []string{"sbin/nft", "sbin/ipvsadm", "sbin/ethtool", "bin/tcpdump", "sbin/tcpdump", "bin/wg", "sbin/conntrack", "bin/iperf3",
				"bin/sockperf"},
		},
		{
			archive:  CNI,
			packages: []string{"containernetworking-plugins"},
			files: []string{"lib/cni/bridge", "lib/cni/ptp", "lib/cni/macvlan", "lib/cni/ipvlan", "lib/cni/host-local", "lib/cni/portmap",
				"lib/cni/bandwidth", "lib/cni/loopback"},
		},
		{
			archive:  Services,
			packages: []string{"nginx", "wrk", "nbd-server", "fio"},
			files:    []string{"sbin/nginx", "bin/wrk", "bin/nbd-server", "sbin/nbd-server", "bin/fio"},
		},
	}
}

// Has says whether an archive brings a program of this name.
func Has(program string) bool {
	return slices.ContainsFunc(toolkits(), func(t toolkit) bool {
		return slices.ContainsFunc(t.files, func(f string) bool { return filepath.Base(f) == program })
	})
}

// applets are the names that busybox gets.
func applets() []string {
	return []string{"awk", "basename", "cat", "chmod", "clear", "cp", "cut", "date", "dd", "depmod", "df", "dirname", "dmesg", "du", "echo", "env",
		"false", "find", "free", "grep", "head", "hexdump", "hostname", "id", "insmod", "kill", "ln", "ls", "lsmod", "md5sum", "mkdir", "mkfifo",
		"mknod", "mktemp", "more", "mount", "mv", "nproc", "od", "pgrep", "ping", "pkill", "poweroff", "printf", "ps", "pwd", "readlink", "realpath", "rm",
		"rmdir", "rmmod", "sed", "seq", "setsid", "sha256sum", "sleep", "sort", "stat", "stty", "sync", "sysctl", "tail", "tar", "tee", "test", "time",
		"timeout", "top", "touch", "tr", "true", "tty", "umount", "uname", "uniq", "unshare", "uptime", "vi", "watch", "wc", "which", "xargs", "yes"}
}

// xtables are the names of the two programs that are iptables.
func xtables() []string {
	return []string{"iptables", "iptables-restore", "iptables-save", "ip6tables", "ip6tables-restore", "ip6tables-save"}
}

// write adds the toolkit's files, which were unpacked below tools. Libraries that an archive before has are left out; shared
// keeps account of them.
func (t toolkit) write(r *Root, tools string, shared map[string]bool) error {
	var programs []string
	added := map[string]bool{}
	for _, pattern := range t.files {
		found, err := below(tools, pattern)
		if err != nil {
			return err
		}
		for _, f := range found {
			name := "/" + pattern
			if strings.Contains(pattern, "*") {
				name = "/" + filepath.Join(filepath.Dir(pattern), filepath.Base(f))
			}
			// Where packages put what the pattern calls lib.
			if strings.HasPrefix(pattern, "lib/") {
				name = "/usr" + name
			}
			if added[name] {
				continue
			}
			added[name] = true
			if err := r.Copy(f, name); err != nil {
				return err
			}
			programs = append(programs, f)
		}
	}
	if err := libraries(r, tools, programs, shared); err != nil {
		return err
	}
	if t.archive == Base {
		if err := names(r); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.links)) {
		if err := r.Link(name, t.links[name]); err != nil {
			return err
		}
	}
	return nil
}

// names adds the other names of programs.
func names(r *Root) error {
	var err error
	for _, a := range applets() {
		err = errors.Join(err, r.Link("bin/"+a, "busybox"))
	}
	for _, x := range xtables() {
		legacy := strings.Replace(x, "tables", "tables-legacy", 1)
		nft := strings.Replace(x, "tables", "tables-nft", 1)
		err = errors.Join(err, r.Link("sbin/"+x, "xtables-nft-multi"), r.Link("sbin/"+nft, "xtables-nft-multi"),
			r.Link("sbin/"+legacy, "xtables-legacy-multi"))
	}
	return err
}

// below finds the files of a pattern, wherever the packages put them: newer ones have everything under /usr.
func below(root, pattern string) ([]string, error) {
	for _, prefix := range []string{"", "usr"} {
		found, err := filepath.Glob(filepath.Join(root, prefix, pattern))
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	// Some programs are in one of two places, from release to release.
	if strings.HasPrefix(pattern, "bin/") || strings.HasPrefix(pattern, "sbin/") {
		return nil, nil
	}
	return nil, fmt.Errorf("the packages hold no %s", pattern)
}

// libraries adds what the programs are linked with: from the packages where they have it, else the host's own.
func libraries(r *Root, root string, programs []string, shared map[string]bool) error {
	for next := programs; len(next) > 0; {
		var more []string
		for _, p := range next {
			l, err := ReadLinked(p)
			if err != nil {
				return err
			}
			if l.Loader != "" && !shared[l.Loader] {
				shared[l.Loader] = true
				if err := r.Copy(l.Loader, l.Loader); err != nil {
					return err
				}
			}
			for _, n := range l.Libraries {
				if shared[n] || strings.HasPrefix(n, "ld-linux") {
					continue
				}
				shared[n] = true
				found, err := library(root, n)
				if err != nil {
					return fmt.Errorf("find what %s is linked with: %w", filepath.Base(p), err)
				}
				if err := r.Copy(found, "/usr/lib/"+triple+"/"+n); err != nil {
					return err
				}
				more = append(more, found)
			}
		}
		next = more
	}
	return nil
}

// Linked is what a program or a library is linked with.
type Linked struct {
	Libraries []string // names
	Loader    string   // path of the program that loads it; "" for a static program and a library
	Folders   []string // where it says its libraries are (RPATH and RUNPATH)
}

// ReadLinked reads what a file is linked with. The error matches an *elf.FormatError where it is no program and no library.
func ReadLinked(path string) (l Linked, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return l, fmt.Errorf("read the program %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text, err := io.ReadAll(p.Open())
			if err != nil {
				return l, fmt.Errorf("read the loader of %s: %w", path, err)
			}
			l.Loader = strings.TrimRight(string(text), "\x00")
		}
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		said, _ := f.DynString(tag) // most have none
		for _, s := range said {
			l.Folders = append(l.Folders, strings.Split(s, ":")...)
		}
	}
	if l.Libraries, err = f.ImportedLibraries(); err != nil {
		return l, fmt.Errorf("read what %s is linked with: %w", path, err)
	}
	return l, nil
}

func library(root, name string) (string, error) {
	for _, r := range []string{root, "/"} {
		for _, d := range []string{"lib/" + triple, "usr/lib/" + triple, "lib", "usr/lib"} {
			path := filepath.Join(r, d, name)
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
			// A package's private libraries are in a folder of their own.
			if own, err := filepath.Glob(filepath.Join(r, d, "*", name)); err == nil && len(own) > 0 {
				return own[0], nil
			}
		}
	}
	return "", &fs.PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
}
