package cause

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"

	"netdelta/probe/evidence"
)

//go:embed symptoms/*.yaml
var files embed.FS

// Symptom is a sign of something wrong, or expensive, on a path: a file in symptoms.
type Symptom struct {
	// Name is the file's; Says is the finding in a sentence, without the figures.
	Name string `yaml:"-" json:"name"`
	Says string `json:"says"`
	// Family is what kind of cause it points to, such as checksums, loss, mtu or queue.
	Family string `json:"family"`
	// Rank orders findings: what names a place and a reason is 1, what says how much is 2, and what follows from others is 3.
	Rank int `json:"rank"`
	// Reads are patterns (path.Match) of what is counted: the kernel's names, such as TcpExt.DelayedACKs, "rx_drop" and "tbf drops" of
	// devices, and "dropped REASON".
	Reads []string `json:"-"`
	// Timers are latencies that it leaves in the distribution.
	Timers []time.Duration `json:"-"`
	// Settings are patterns of settings that may be the reason, where two ends differ in them. Setting says that such a difference is a
	// finding by itself.
	Settings []string `json:"-"`
	Setting  bool     `json:"-"`
	// Least is how often it is counted for each 1,000 transactions at least; Times is how many times as often as on the other path, 0 for 3.
	Least float64 `json:"-"`
	Times float64 `json:"-"`
	// Cause is what it usually is, Confirm how to be sure, Change what to do and Risk what that may break.
	Cause   string `json:"cause"`
	Confirm string `json:"confirm"`
	Change  string `json:"change,omitempty"`
	Risk    string `json:"risk,omitempty"`
	// Incidents are public threads in which it was found.
	Incidents []string `json:"incidents,omitempty"`
}

// reads says whether something that is counted shows the symptom.
func (s Symptom) reads(k key) bool { return matches(s.Reads, k.what) }

// names says whether a setting that differs may be the symptom's reason.
func (s Symptom) names(d evidence.Difference) bool { return matches(s.Settings, d.Setting) }

func matches(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		is, err := path.Match(p, text)
		return is && err == nil
	})
}

// Symptoms are all that there are, in the order of their names. It is a fresh list each time.
func Symptoms() []Symptom { return slices.Clone(known()) }

var known = sync.OnceValue(func() []Symptom {
	all, err := readSymptoms(files)
	if err != nil {
		panic(err.Error()) // a mistake that every test finds
	}
	return all
})

// readSymptoms reads the files of a folder symptoms.
func readSymptoms(from fs.FS) ([]Symptom, error) {
	names, err := fs.Glob(from, "symptoms/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Symptom
	for _, name := range names {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, err
		}
		s := Symptom{Name: strings.TrimSuffix(path.Base(name), ".yaml")}
		if err := yaml.Load(text, &s, yaml.WithKnownFields()); err != nil {
			return nil, fmt.Errorf("read the symptom %s: %w", name, err)
		}
		all = append(all, s)
	}
	return all, nil
}
