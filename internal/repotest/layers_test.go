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

	"go.yaml.in/yaml/v4"
)

// module is the path that all packages start with.
const module = "netdelta/"

// layer is a set of packages that may import the layers before it. Within a layer packages may import one another.
type layer struct {
	name     string
	packages []string // with all folders below them
	reason   string   // why nothing before it may import it
}

// layers is the order of the house, as in docs/architecture.md.
func layers() []layer {
	return []layer{
		{"foundations", []string{
			"unit", "stats", "result", "internal/clock", "internal/daemon", "internal/latency", "internal/machine",
			"internal/native", "internal/netns", "internal/owner", "internal/suggest", "internal/tail",
		}, ""},
		{"network", []string{"network"}, "a foundation knows nothing of what is built on it"},
		{"testbed", []string{"testbed"}, "a network is pure data: testbeds carry it out"},
		{"workload", []string{"workload", "internal/engine"}, "a testbed starts processes in pods and knows not what they do there"},
		{"agent", []string{"internal/agent"}, "a workload runs inside a pod and knows not who asked for it"},
		{"probe", []string{"probe"}, "the agent carries workloads out; what is observed beside them is decided elsewhere"},
		{"experiment", []string{"experiment"}, "a probe observes and knows not what the observation is for"},
		{"insight", []string{"insight"}, "an experiment gathers trials and must not judge them"},
		{"report", []string{"report", "internal/ui"}, "a judgement must not depend on how it is shown"},
		{"cli", []string{"internal/cli"}, "what is not the command line works for any caller"},
		{"main", []string{"cmd"}, "nobody imports a program"},
	}
}

// apart are packages that stand beside the house: they look at all of it, and nothing of it may import them.
var apart = regexp.MustCompile(`^(bench|scripts|internal/repotest)(/|$)`)

// suites are packages that only tests import: the conformance suites, and what all tests share.
var suites = regexp.MustCompile(`^(network/networktest|testbed/testbedtest|workload/workloadtest|probe/probetest|report/reporttest|report/browsertest|internal/leak|internal/require)$`)

// layerOf is the index in layers, -1 for none.
func layerOf(pkg string) int {
	for i, l := range layers() {
		for _, p := range l.packages {
			if pkg == p || strings.HasPrefix(pkg, p+"/") {
				return i
			}
		}
	}
	return -1
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

// TestLayers: a package imports only layers before its own.
func TestLayers(t *testing.T) {
	for _, p := range list(t, "./...") {
		from := strings.TrimPrefix(p.ImportPath, module)
		if apart.MatchString(from) || suites.MatchString(from) {
			continue
		}
		mine := layerOf(from)
		if mine < 0 {
			t.Errorf("%s is in no layer: give it its place in layers and in docs/architecture.md", from)
			continue
		}
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			theirs := layerOf(to)
			switch {
			case apart.MatchString(to):
				t.Errorf("%s imports %s, which stands apart from the program", from, to)
			case suites.MatchString(to):
				t.Errorf("%s imports %s, which is for tests", from, to)
			case theirs < 0:
				t.Errorf("%s imports %s, which is in no layer", from, to)
			case theirs > mine:
				t.Errorf("%s imports %s: %s", from, to, layers()[theirs].reason)
			}
		}
		if layers()[mine].name == "main" && !slices.Equal(ours(p.Imports), []string{"internal/cli"}) {
			t.Errorf("%s imports %v: main only hands over to internal/cli", from, ours(p.Imports))
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
	}, program...)
	for pkg, not := range map[string][]unwanted{
		"cmd/netdelta": program, "internal/agent": pod, "internal/engine": pod, "workload": pod, "stats": pod, "network": pod, "result": pod,
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

// linter is the part of .golangci.yml that repeats the layers.
type linter struct {
	Linters struct {
		Settings struct {
			Depguard struct {
				Rules map[string]struct {
					Files []string `yaml:"files"`
					Deny  []struct {
						Pkg  string `yaml:"pkg"`
						Desc string `yaml:"desc"`
					} `yaml:"deny"`
				} `yaml:"rules"`
			} `yaml:"depguard"`
		} `yaml:"settings"`
	} `yaml:"linters"`
}

// TestLinterKnowsTheLayers: an editor that runs the linter warns of a wrong import before this test does.
func TestLinterKnowsTheLayers(t *testing.T) {
	text, err := os.ReadFile(root + "/.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config linter
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	all := layers()
	for i, l := range all[:len(all)-2] {
		rule, found := config.Linters.Settings.Depguard.Rules[l.name]
		if !found {
			t.Errorf(".golangci.yml has no depguard rule for the layer %s", l.name)
			continue
		}
		var denied, later []string
		for _, d := range rule.Deny {
			denied = append(denied, strings.TrimPrefix(d.Pkg, module))
			if d.Desc == "" {
				t.Errorf("the depguard rule %s gives no reason against %s", l.name, d.Pkg)
			}
		}
		for _, l := range all[i+1 : len(all)-1] {
			later = append(later, l.packages...)
		}
		if !slices.Equal(denied, later) {
			t.Errorf("the depguard rule %s denies %v, want %v", l.name, denied, later)
		}
		for _, p := range l.packages {
			if !slices.Contains(rule.Files, "${config-path}/"+p+"/**") {
				t.Errorf("the depguard rule %s does not cover %s", l.name, p)
			}
		}
	}
}
