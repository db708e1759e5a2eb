package repotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is the path that all packages start with.
const module = "netdelta/"

// room is a top-level folder. Its packages may import one another and the packages of the rooms before it.
type room struct {
	name   string
	reason string // why no room before it may import it
}

// rooms is the order of the house, as in docs/architecture.md.
func rooms() []room {
	return []room{
		{"unit", ""},
		{"stats", "a unit knows no samples"},
		{"result", "statistics know no records"},
		{"internal", "a record is plain data"},
		{"network", "the kernel is asked, whatever network it carries"},
		{"testbed", "a network is pure data: testbeds carry it out"},
		{"engine", "a testbed starts processes in pods and knows not what they do there"},
		{"workload", "a measured loop knows not which workload it serves"},
		{"agent", "a workload runs inside a pod and knows not who asked for it"},
		{"probe", "the agent carries workloads out; what is observed meanwhile is decided elsewhere"},
		{"experiment", "a probe observes and knows not what the observation is for"},
		{"insight", "an experiment gathers trials and must not judge them"},
		{"report", "a judgement must not depend on how it is shown"},
		{"cli", "what is not the command line works for any caller"},
		{"cmd", "no package imports a program"},
	}
}

// apart matches packages outside the layers: they may import all layers, and no layer may import them.
var apart = regexp.MustCompile(`^(extras|scripts|internal/repotest)(/|$)`)

// suites are packages that only tests import: the conformance suites, and what all tests share.
var suites = regexp.MustCompile(`^(network/networktest|testbed/testbedtest(/peertest)?|workload/workloadtest|probe/probetest|report/reporttest|report/browsertest|testbed/kube/kubetest|testbed/docker/dockertest|testbed/vm/armtest|internal/golden|internal/leak|internal/property|internal/require)$`)

// roomOf is the index in rooms, -1 for none.
func roomOf(pkg string) int {
	name, _, _ := strings.Cut(pkg, "/")
	return slices.IndexFunc(rooms(), func(r room) bool { return r.name == name })
}

// listed is the part of a package's description by `go list -json` that matters here.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
	TestImports,
	XTestImports []string
}

// list describes the packages of the patterns, for the platform that netdelta runs on.
func list(t *testing.T, arguments ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Standard,Imports,Deps,TestImports,XTestImports"}, arguments...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaints.String())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all = append(all, p)
	}
}

// TestRooms: a package imports only its own room and those before it.
func TestRooms(t *testing.T) {
	for _, p := range list(t, "./...") {
		from := strings.TrimPrefix(p.ImportPath, module)
		if apart.MatchString(from) || suites.MatchString(from) {
			continue
		}
		mine := roomOf(from)
		if mine < 0 {
			t.Errorf("%s is in no room: give it its place in rooms and in docs/architecture.md", from)
			continue
		}
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			theirs := roomOf(to)
			switch {
			case apart.MatchString(to):
				t.Errorf("%s imports %s, which stands apart from the program", from, to)
			case suites.MatchString(to):
				t.Errorf("%s imports %s, which is for tests", from, to)
			case theirs < 0:
				t.Errorf("%s imports %s, which is in no room", from, to)
			case theirs > mine:
				t.Errorf("%s imports %s: %s", from, to, rooms()[theirs].reason)
			}
		}
		programs := map[string][]string{"cmd/netdelta": {"cli"}, "cmd/netdelta-agent": {"agent/program", "workload/catalogue"}}
		if rooms()[mine].name == "cmd" && !slices.Equal(ours(p.Imports), programs[from]) {
			t.Errorf("%s imports %v, not %v: a program only hands over", from, ours(p.Imports), programs[from])
		}
	}
}

func ours(imports []string) []string {
	var all []string
	for _, i := range imports {
		if p, found := strings.CutPrefix(i, module); found {
			all = append(all, p)
		}
	}
	return all
}

// unwanted is a package, with all below it, that must not become part of another, however indirectly.
type unwanted struct{ pkg, reason string }

// TestDependencies: the program stays small, and what runs in pods smaller.
func TestDependencies(t *testing.T) {
	program := []unwanted{
		{"testing", "a test's tools have no place in the program"},
		{"net/http/httptest", "a test's tools have no place in the program"},
		{"expvar", "it registers a handler in every program that imports it"},
		{"net/http/pprof", "it registers a handler in every program that imports it"},
	}
	pod := append([]unwanted{
		{"net/http", "it starts goroutines and drags half of the standard library to where a measured loop runs"},
		{"k8s.io", "a cluster is one testbed among others; only its driver knows it"},
		{"sigs.k8s.io", "a cluster is one testbed among others; only its driver knows it"},
		{"encoding/gob", "its cost at start is paid in every pod"},
		{"gonum.org", "what is measured is estimated where all of it is at hand, not in pods"},
		{"github.com/parquet-go", "a pod writes no files for others"},
		{"github.com/spf13/cobra", "people do not call an agent by hand"},
		{"crypto/tls", "an agent opens no connections but those that it measures"},
	}, program...)
	sums := slices.DeleteFunc(slices.Clone(pod), func(u unwanted) bool { return u.pkg == "gonum.org" }) // estimates are made with it
	for pkg, not := range map[string][]unwanted{
		"cmd/netdelta": program, "cmd/netdelta-agent": pod, "engine": pod, "workload": pod, "stats": sums, "network": pod, "result": pod,
	} {
		described := list(t, "./"+pkg)
		if len(described) != 1 {
			t.Fatalf("./%s is %d packages", pkg, len(described))
		}
		if len(described[0].Deps) == 0 {
			t.Errorf("%s depends on nothing: this check looks at nothing", pkg)
		}
		for _, dep := range described[0].Deps {
			for _, u := range not {
				if dep == u.pkg || strings.HasPrefix(dep, u.pkg+"/") {
					t.Errorf("%s depends on %s: %s", pkg, dep, u.reason)
				}
			}
		}
	}
}
