package image

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// ProgramsReference is what the image of programs is called in a cluster.
const ProgramsReference = "localhost/netdelta/programs:1"

// Packages are the distribution's packages whose programs workloads run.
func Packages() []string {
	return []string{
		"ceph-base", "ceph-common", "ceph-mon", "ceph-osd", "fio", "galera-4", "iperf3", "mariadb-client-core", "mariadb-server-core", "nbd-server",
		"nginx-light", "sockperf", "sysbench", "wrk",
	}
}

// WritePrograms makes the image of the programs that workloads run, as far as this machine has their packages, over a busybox, and
// writes it to a file, as an archive that containerd imports. It returns the packages that are lacking. With the path of a netdelta the
// image holds that too, and serves runs as --image; "" leaves it to be streamed.
func WritePrograms(archive, busybox, netdelta string) (lacking []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make the image %s: %w", ProgramsReference, err)
		}
	}()
	files := newGathering("/")
	var roots []string
	for _, p := range Packages() {
		if installed(p) {
			roots = append(roots, p)
		} else {
			lacking = append(lacking, p)
		}
	}
	packages, err := closure(roots)
	if err != nil {
		return lacking, err
	}
	for _, p := range packages {
		if err := files.addPackage(p); err != nil {
			return lacking, err
		}
	}
	if netdelta != "" {
		if netdelta, err = filepath.Abs(netdelta); err != nil {
			return lacking, err
		}
		if err := files.addAs(netdelta, "/netdelta"); err != nil {
			return lacking, err
		}
	}
	content, err := os.CreateTemp("", "netdelta-programs-*.tar")
	if err != nil {
		return lacking, err
	}
	defer func() { _ = os.Remove(content.Name()) }() // a temporary file
	if err := errors.Join(files.write(content, busybox), content.Close()); err != nil {
		return lacking, err
	}
	// Nodes are on this machine: to write and read it as it is takes less time than to compress it.
	layer, err := tarball.LayerFromFile(content.Name(), tarball.WithCompressionLevel(gzip.NoCompression))
	if err != nil {
		return lacking, err
	}
	return lacking, store(archive, ProgramsReference, layer)
}

// installed says whether this machine has a package.
func installed(name string) bool {
	out, err := exec.Command("dpkg-query", "--show", "--showformat=${db:Status-Status}", name).Output()
	return err == nil && string(out) == "installed"
}

// families begin the names of packages that programs need. Libraries are found by what is linked.
func families() []string { return []string{"ceph", "mariadb", "nginx", "python3", "libpython3"} }

// closure adds to packages what they depend on, as far as it is of the families.
func closure(names []string) ([]string, error) {
	all := slices.Clone(names)
	for i := 0; i < len(all); i++ {
		out, err := exec.Command("dpkg-query", "--show", "--showformat=${Pre-Depends},${Depends}", all[i]).Output()
		if err != nil {
			return nil, fmt.Errorf("ask what package %s depends on: %w", all[i], err)
		}
		for _, one := range strings.FieldsFunc(string(out), func(r rune) bool { return r == ',' || r == '|' }) {
			name, _, _ := strings.Cut(strings.TrimSpace(one), " ")
			name, _, _ = strings.Cut(name, ":")
			family := slices.ContainsFunc(families(), func(f string) bool { return strings.HasPrefix(name, f) })
			if family && !slices.Contains(all, name) && installed(name) {
				all = append(all, name)
			}
		}
	}
	return all, nil
}

// addPackage gathers what a package brings, but for what people read.
func (g *gathering) addPackage(name string) error {
	out, err := exec.Command("dpkg-query", "--listfiles", name).Output()
	if err != nil {
		return fmt.Errorf("list the files of package %s: %w", name, err)
	}
	for line := range strings.Lines(string(out)) {
		p := strings.TrimSpace(line)
		if !path.IsAbs(p) || unread(p) {
			continue
		}
		if err := g.add(p); err != nil {
			return fmt.Errorf("package %s: %w", name, err)
		}
	}
	return nil
}

// unread says of a path that no program needs it.
func unread(p string) bool {
	for _, above := range []string{
		"/etc/", "/var/", "/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/lintian/", "/usr/share/bash-completion/",
		"/usr/share/info/", "/usr/include/", "/lib/systemd/", "/usr/lib/systemd/", "/lib/udev/", "/usr/lib/udev/",
	} {
		if strings.HasPrefix(p, above) {
			return true
		}
	}
	// Tools of Ceph's that fix, inspect and serve what no workload has are the largest files of all.
	base := path.Base(p)
	return strings.HasPrefix(base, "cephfs-") || strings.HasPrefix(base, "ceph-") && strings.HasSuffix(base, "-tool") || base == "radosgw-admin"
}

// write writes the layer: what was gathered, and busybox where nothing else has a program's name.
func (g *gathering) write(to io.Writer, busybox string) error {
	names, err := applets(busybox)
	if err != nil {
		return err
	}
	if err := g.addAs(busybox, "/usr/bin/busybox"); err != nil {
		return err
	}
	for _, applet := range names {
		if !g.hasProgram(applet) {
			g.links["/usr/bin/"+applet] = "busybox"
		}
	}
	w := tar.NewWriter(to)
	err = errors.Join(folder(w, "etc/", 0o755), folder(w, "run/", 0o755), folder(w, "tmp/", 0o1777), folder(w, "var/", 0o755))
	for _, name := range merged() {
		err = errors.Join(err, link(w, name, "usr/"+name))
	}
	return errors.Join(err, file(w, "etc/passwd", 0o644, []byte(users)), g.pack(w), w.Close())
}
