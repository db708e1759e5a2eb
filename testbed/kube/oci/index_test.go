package oci

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"netdelta/internal/require"
)

// programFor builds a small program for a kind of processor, and looks at it.
func programFor(t *testing.T, arch string) Program {
	t.Helper()
	t.Setenv("GOARCH", arch)
	p, err := Inspect(program(t, false))
	if err != nil || p.Arch != arch {
		t.Fatalf("a program for %s is for %q, %v", arch, p.Arch, err)
	}
	return p
}

func indexOf(t *testing.T, programs ...Program) v1.ImageIndex {
	t.Helper()
	index, err := Index(programs...)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// indexArchiveOf writes an index's archive into a file.
func indexArchiveOf(t *testing.T, index v1.ImageIndex, ref string) string {
	t.Helper()
	return written(t, func(w io.Writer) error { return WriteArchive(w, index, reference(t, ref)) })
}

// An index leads each kind of processor to its own program, whatever order they are given in; two of one kind are refused.
func TestIndex(t *testing.T) {
	amd, arm := programFor(t, "amd64"), programFor(t, "arm64")
	index := indexOf(t, arm, amd)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	one, err := index.Digest()
	other, otherErr := indexOf(t, amd, arm).Digest()
	if err := errors.Join(err, otherErr); err != nil || one != other {
		t.Errorf("the order makes %v of %v, %v", other, one, err)
	}
	if _, err := Index(amd, arm, amd); !errors.Is(err, ErrSameProcessor) || !strings.Contains(err.Error(), amd.Path) {
		t.Errorf("two of one kind: %v", err)
	}
}

// A registry gives each kind of processor the image of its program, under one name.
func TestPushIndex(t *testing.T) {
	amd, arm := programFor(t, "amd64"), programFor(t, "arm64")
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // the user's own credentials are not the test's
	ref := strings.TrimPrefix(server.URL, "http://") + "/tools/netdelta:1"
	pushed, err := Push(t.Context(), indexOf(t, amd, arm), reference(t, ref))
	if err != nil {
		t.Fatal(err)
	}
	at, err := name.NewDigest(pushed)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Program{amd, arm} {
		image, err := remote.Image(at, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: p.Arch}))
		if err != nil {
			t.Fatal(err)
		}
		want, err := Image(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := image.Digest()
		digest, wantErr := want.Digest()
		if err := errors.Join(err, wantErr, validate.Image(image)); err != nil || got != digest {
			t.Errorf("%s is given %v, want %v: %v", p.Arch, got, digest, err)
		}
	}
}

// What nodes of clusters run takes the archive of an index, and all that it leads to.
func TestContainerdImportsIndex(t *testing.T) {
	ctr := require.Tool(t, "ctr")
	socket := containerd(t)
	index := indexOf(t, programFor(t, "amd64"), programFor(t, "arm64"))
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	path := indexArchiveOf(t, index, "localhost/netdelta/index:1")
	call := func(args ...string) string {
		out, err := exec.Command(ctr, append([]string{"-a", socket, "--connect-timeout", patience.String()}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("ctr %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	call("images", "import", "--all-platforms", "--snapshotter", "native", path)
	listed := strings.Join(strings.Fields(call("images", "list", "name==localhost/netdelta/index:1")), " ")
	for _, part := range []string{"localhost/netdelta/index:1 ", want.String(), "linux/amd64", "linux/arm64"} {
		if !strings.Contains(listed, part) {
			t.Errorf("%q is not in %s", part, listed)
		}
	}
	found := strings.Fields(call("images", "check", "--snapshotter", "native", "name==localhost/netdelta/index:1"))
	if !slices.Contains(found, "complete") {
		t.Errorf("the image of this machine's processor is not whole: %v", found)
	}
}
