package image

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/ulikunitz/xz"
	"golang.org/x/sync/errgroup"
)

// wanted returns patterns for the modules that guests get, by path below the kernel's folder: the modules of networks, their
// conditions and the emulated machine. The modules on which these depend are added to them.
func wanted() []string {
	return []string{
		`^net/(802|8021q|bridge|core|ipv4|ipv6|key|llc|netfilter|netlink|nsh|openvswitch|packet|psample|sched|sctp|tls|unix|xfrm|xdp)/`,
		`^drivers/net/[^/]*$`,
		`^drivers/net/(bonding|ipvlan|team|vxlan|wireguard)/`,
		`^drivers/net/ethernet/intel/(igb|igbvf|e1000|e1000e)/`,
		`^drivers/(virtio|dca|ptp|pps)/`,
		`^drivers/char/hw_random/virtio-rng`,
		`^crypto/(?:aead|aes|authenc|authencesn|ccm|chacha|cmac|crc32|crypto|cryptd|ctr|cts|curve25519|deflate|echainiv|ecb|essiv|gcm|geniv|ghash|poly1305|rmd160|seqiv|xcbc|xxhash)`,
		`^arch/x86/crypto/(aesni|chacha|crc32|crc32c|crct10dif|curve25519|ghash|poly1305|sha)`,
		`^lib/`,
	}
}

// unwanted are modules in those folders that no guest uses.
var unwanted = regexp.MustCompile(`^lib/(test_|.*notifier-error|raid6|reed_solomon)|^drivers/net/(vmxnet|xen|hyperv|thunderbolt)|^drivers/ptp/ptp_(vmw|idt|clockmatrix|ocp)`)

// Modules adds to a root folder what guests get of the modules of an unpacked kernel package.
func Modules(ctx context.Context, kernel, release string, r *Root) error {
	m, err := chooseModules(ctx, kernel, release)
	if err != nil {
		return err
	}
	return m.write(r)
}

// module is a kernel module as its file describes it.
type module struct {
	path    string // below the kernel's folder of modules: "kernel/net/ipv4/ipip.ko"
	text    []byte
	needs   []string // names of modules
	aliases []string
}

// modules are the modules of a guest, by name.
type modules struct {
	release string
	folder  string // where they came from
	all     map[string]*module
}

// chooseModules reads the wanted modules of an unpacked kernel package, and those that they need.
func chooseModules(ctx context.Context, kernel, release string) (*modules, error) {
	m := &modules{release: release, folder: filepath.Join(kernel, "lib", "modules", release), all: map[string]*module{}}
	if _, err := os.Stat(m.folder); err != nil {
		m.folder = filepath.Join(kernel, "usr", "lib", "modules", release)
	}
	files, first, err := m.list()
	if err != nil {
		return nil, fmt.Errorf("list the kernel's modules: %w", err)
	}
	for next := first; len(next) > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		read := make([]*module, len(next))
		var g errgroup.Group
		g.SetLimit(runtime.NumCPU())
		for k, name := range next {
			g.Go(func() (err error) {
				read[k], err = m.read(files[name])
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for k, name := range next {
			m.all[name] = read[k]
		}
		next = m.missing(read, files)
	}
	return m, nil
}

// missing are the modules that these need and that were not read yet. What has no file is built into the kernel.
func (m *modules) missing(of []*module, files map[string]string) []string {
	var names []string
	for _, x := range of {
		for _, n := range x.needs {
			if m.all[n] == nil && files[n] != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// list finds the files of all modules by name, and which of them are wanted.
func (m *modules) list() (files map[string]string, first []string, err error) {
	want := regexp.MustCompile(strings.Join(wanted(), "|"))
	files = map[string]string{}
	top := filepath.Join(m.folder, "kernel")
	err = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.Contains(e.Name(), ".ko") {
			return err
		}
		below, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		name := moduleName(e.Name())
		files[name] = path
		if want.MatchString(below) && !unwanted.MatchString(below) {
			first = append(first, name)
		}
		return nil
	})
	if err == nil && len(first) == 0 {
		err = fmt.Errorf("%s holds none of those that are wanted", top)
	}
	slices.Sort(first)
	return files, first, err
}

// moduleName is how modules are called whatever their files are: with underscores.
func moduleName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// read unpacks a module and reads what it says of itself.
func (m *modules) read(path string) (*module, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	plain, packed := strings.CutSuffix(path, ".xz")
	switch {
	case packed:
		r, err := xz.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", path, err)
		}
		var out bytes.Buffer
		if _, err := out.ReadFrom(r); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", path, err)
		}
		text = out.Bytes()
	case !strings.HasSuffix(path, ".ko"):
		return nil, fmt.Errorf("unpack %s: it is packed in a way that netdelta does not know", path)
	}
	below, err := filepath.Rel(m.folder, plain)
	if err != nil {
		return nil, err
	}
	x := &module{path: below, text: text}
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the module %s: %w", path, err)
	}
	info := f.Section(".modinfo")
	if info == nil {
		return nil, fmt.Errorf("read the module %s: it has no .modinfo", path)
	}
	about, err := info.Data()
	if err != nil {
		return nil, fmt.Errorf("read the module %s: %w", path, err)
	}
	for entry := range bytes.SplitSeq(about, []byte{0}) {
		switch key, value, _ := strings.Cut(string(entry), "="); key {
		case "depends":
			for n := range strings.SplitSeq(value, ",") {
				if n != "" {
					x.needs = append(x.needs, moduleName(n))
				}
			}
		case "alias":
			x.aliases = append(x.aliases, value)
		}
	}
	return x, nil
}

// write adds the modules to a guest's files, with the lists that modprobe reads.
func (m *modules) write(r *Root) error {
	folder := "lib/modules/" + m.release
	var dep, alias strings.Builder
	for _, n := range slices.Sorted(maps.Keys(m.all)) {
		x := m.all[n]
		if err := r.Text(folder+"/"+x.path, 0o644, x.text); err != nil {
			return err
		}
		fmt.Fprintf(&dep, "%s:", x.path)
		for _, d := range m.closure(n) {
			fmt.Fprintf(&dep, " %s", m.all[d].path)
		}
		dep.WriteByte('\n')
		for _, a := range x.aliases {
			fmt.Fprintf(&alias, "alias %s %s\n", a, n)
		}
	}
	err := errors.Join(
		r.Text(folder+"/modules.dep", 0o644, []byte(dep.String())),
		r.Text(folder+"/modules.alias", 0o644, []byte(alias.String())),
		r.Text(folder+"/modules.symbols", 0o644, nil),
		r.Copy(filepath.Join(m.folder, "modules.builtin"), folder+"/modules.builtin"),
	)
	config := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(m.folder))), "boot", "config-"+m.release)
	if _, there := os.Stat(config); there == nil {
		err = errors.Join(err, r.Copy(config, "boot/config-"+m.release))
	}
	return err
}

// closure are all that a module needs, so that each stands before those that it needs itself: modprobe goes through them from the
// end.
func (m *modules) closure(name string) []string {
	var order []string
	var visit func(n string)
	visit = func(n string) {
		x := m.all[n]
		if x == nil || slices.Contains(order, n) {
			return
		}
		for _, d := range x.needs {
			visit(d)
		}
		order = append(order, n)
	}
	visit(name)
	slices.Reverse(order)
	return order[1:]
}
