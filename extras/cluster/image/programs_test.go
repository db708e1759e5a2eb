package image_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"netdelta/extras/cluster/image"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// asked are the programs that workloads may ask for, with whatever parameters.
func asked() []workload.Program {
	var all []workload.Program
	for _, w := range catalogue.Workloads() {
		for _, change := range []func(*result.Params){
			func(*result.Params) {}, func(p *result.Params) { p.Own = result.OwnOf("store", "ceph") }, func(p *result.Params) { p.Engine = "wrk" },
		} {
			p := w.Defaults
			change(&p)
			all = append(all, w.Demands(p).Programs...)
		}
	}
	return all
}

// What workloads ask for is in the image, also in the one that users make.
func TestPackages(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/programs/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	install := regexp.MustCompile(`(?s)--no-install-recommends(.*?)&&`).FindSubmatch(text)
	if install == nil {
		t.Fatal("the Dockerfile installs nothing")
	}
	if got := strings.Fields(strings.ReplaceAll(string(install[1]), `\`, " ")); !slices.Equal(got, image.Packages()) {
		t.Errorf("deploy/programs/Dockerfile installs %v, the test cluster's image has %v", got, image.Packages())
	}
	for _, p := range asked() {
		if !slices.Contains(image.Packages(), p.Package) {
			t.Errorf("%s is in package %s, which is not in the image", p.Name, p.Package)
		}
	}
}

// The programs' image has them, the shared objects that they load, a shell, and what runs their scripts.
func TestWritePrograms(t *testing.T) {
	busybox := require.Tool(t, "busybox")
	file := filepath.Join(t.TempDir(), "programs.tar")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lacking, err := image.WritePrograms(file, busybox, self)
	if err != nil {
		t.Fatal(err)
	}
	i, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	content := mutate.Extract(i)
	defer content.Close()
	found := map[string]bool{}
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found["/"+path.Clean(h.Name)] = true
	}
	for _, p := range asked() {
		in := found[p.Name] || found["/usr/bin/"+p.Name] || found["/usr/sbin/"+p.Name]
		if !in && !slices.Contains(lacking, p.Package) {
			t.Errorf("the image has no %s", p.Name)
		}
	}
	want := []string{"/usr/bin/sh", "/usr/bin/cat", "/usr/bin/chmod", "/usr/lib64/ld-linux-x86-64.so.2", "/bin", "/lib64", "/netdelta"}
	if !slices.Contains(lacking, "ceph-common") {
		want = append(want, "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/librados.so.2")
	}
	for _, name := range want {
		if !found[name] {
			t.Errorf("the image has no %s", name)
		}
	}
}
