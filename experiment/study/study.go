// Package study reads, checks and writes study files: what an experiment compares, on what, with which loads, and which
// published findings it puts to the test. It is pure: what exists (networks, workloads, testbeds) is handed in as Known.
package study

import (
	"slices"
	"time"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Study is an experiment file, checked and with its defaults filled in. It is plain data.
type Study struct {
	// Name is letters, digits, dots, dashes and underscores: it becomes part of the run folder's name.
	Name     string
	Question string
	Testbed  Testbed
	// Baseline is the network that all others are held against; it is one of Networks.
	Baseline string
	Networks []string
	// Changes are those networks among them that change the cluster for as long as they are measured.
	Changes   []testbed.Change
	Placement []result.Placement
	Workloads []Workload
	// Named says that the user named the workloads by a flag, in place of the study's own.
	Named bool
	// Factors are levels that every workload is measured at.
	Factors Levels
	// Parameters are all that can have levels, with those that the known workloads declare; nil takes what all have.
	Parameters []result.Parameter
	Design     Design
	Claims     []Claim
	// Goals are what has to hold of the deltas, as ParseGoal reads them.
	Goals []string
}

// Testbed is what the study runs on.
type Testbed struct {
	Kind  string // lab, vm, ssh, kubernetes, what-if or docker
	Nodes int    // 1 to 64
	Pods  int    // on each node, 1 to 64
	// NIC says over which cards nodes on servers are joined, as --nic does; "" leaves it to the testbed.
	NIC string
	// Via names the card by which packets must leave each node of a cluster; "" means the card of the route to the other node.
	Via  string
	Link Link
	// CPU are the processors that the ends of workloads are pinned to, each on its own server; nil leaves them to the kernels there.
	CPU *result.Pins
}

// Link describes each link between a node and the underlay.
type Link struct {
	// MTU is 576 to 65535 bytes.
	MTU unit.Bytes
	// Rate limits each direction; zero is unlimited.
	Rate unit.BitsPerSecond
}

// Workload is one load of the study with the levels of its own parameters.
type Workload struct {
	Name   string
	Levels Levels
}

// Levels holds, for each parameter of a workload by its key, the levels it is measured at, in the order of the file. A parameter
// without levels is at the workload's default. Levels are of the type of the parameter's kind.
type Levels map[string][]any

// Design says how the experiment is carried out and what its verdicts rest on.
type Design struct {
	// Burst is how long a cell is measured in each round (1 ms to 10 s).
	Burst time.Duration
	// Builds is how many set-ups of the networks are planned (1 to 1000); intervals need at least 6.
	Builds int
	// Rounds is the number of rounds in each build (up to 100,000); zero lets the budget decide.
	Rounds int
	// Blocks is the number of independent passes (builds, or blocks where bursts can't be) at which the run ends, up to 1000;
	// zero lets the budget decide.
	Blocks int
	// Confidence of every interval, as a fraction: 0.95.
	Confidence float64
	// Margin within which a difference counts as none, as a fraction: 0.02 is 2%.
	Margin float64
	// TimeBudget is how long the run may take.
	TimeBudget time.Duration
	// Seed fixes all random orders; zero draws one at the start of the run.
	Seed uint64
}

// Claim is a published finding that a run can confirm or contradict.
type Claim struct {
	ID        string `yaml:"id"`
	Says      string `yaml:"says"` // the finding, in words
	Source    string `yaml:"source,omitempty"`
	Published string `yaml:"published,omitempty"` // the published figure, in words; "" when the source gives none
	// Differs says in words how the study departs from what the source measured: another metric, other conditions, another range or
	// baseline. Such a claim is measured, and neither confirmed nor contradicted.
	Differs string `yaml:"differs,omitempty"`
	// Expect is the finding as a statement about deltas, in the language of ParseExpectation.
	Expect string `yaml:"expect"`
}

// Untested are claims as a run has them before it is judged.
func Untested(claims []Claim) []result.Claim {
	all := make([]result.Claim, len(claims))
	for i, c := range claims {
		all[i] = result.Claim{ID: c.ID, Says: c.Says, Source: c.Source, Published: c.Published, Differs: c.Differs, Expect: c.Expect, Verdict: "not-tested"}
	}
	return all
}

// Defaults of a study that does not say otherwise.
const (
	DefaultBurst      = 5 * time.Millisecond
	DefaultBuilds     = 12
	DefaultConfidence = 0.95
	DefaultMargin     = 0.02
	DefaultTimeBudget = time.Minute
	DefaultMTU        = unit.Bytes(1500)
)

// Known is what exists outside the study: the catalogues, as far as a study file refers to them.
type Known struct {
	Testbeds  []string
	Networks  []string
	Workloads []KnownWorkload
	// ReadNetwork reads a network that is described elsewhere, in a file that its name gives. is tells whether it is a name of
	// that kind, and the error what is wrong with the description; nil knows none.
	ReadNetwork func(name string) (is bool, err error)
	// CheckMTU returns an error that says what the network needs when it can't carry the version of IP over an underlay of
	// this MTU; nil accepts every MTU.
	CheckMTU func(network string, family result.Family, mtu unit.Bytes) error
	// On says more of some of the testbeds, by their names.
	On map[string]KnownTestbed

	// elsewhere are networks that the study's testbed does not have: only claims may name them.
	elsewhere []string
}

// parameters are all that can have levels.
func (k Known) parameters() []result.Parameter {
	var own []result.Parameter
	for _, w := range k.Workloads {
		own = append(own, w.Parameters...)
	}
	return result.Parameters(own...)
}

// parameters are all that can have levels.
func (s *Study) parameters() []result.Parameter {
	if s.Parameters == nil {
		return result.Parameters()
	}
	return s.Parameters
}

// KnownTestbed is a testbed that has networks of its own, which have no MTU that a study could ask about.
type KnownTestbed struct {
	// Cards says that its nodes are joined over cards of machines, Changes that a study can change it as a whole.
	Cards, Changes bool
	// Names are its networks.
	Names []string
	// Added says that the testbed has all other networks, too.
	Added bool
	// Read is as Known.ReadNetwork.
	Read func(name string) (is bool, err error)
}

// has says whether a network is one of these.
func (n KnownTestbed) has(name string) (is bool, err error) {
	if slices.Contains(n.Names, name) || n.Read == nil {
		return slices.Contains(n.Names, name), nil
	}
	return n.Read(name)
}

// of is what exists for a study on a testbed.
func (k Known) of(testbed string) Known {
	own, has := k.On[testbed]
	if !has {
		return k
	}
	if own.Added {
		check, read := k.CheckMTU, k.ReadNetwork
		k.CheckMTU = func(network string, family result.Family, mtu unit.Bytes) error {
			if is, _ := own.has(network); is || check == nil {
				return nil
			}
			return check(network, family, mtu)
		}
		k.ReadNetwork = func(name string) (is bool, err error) {
			if is, err = own.has(name); is || read == nil {
				return is, err
			}
			return read(name)
		}
		k.Networks, k.On = slices.Concat(k.Networks, own.Names), nil
		return k
	}
	k.elsewhere = k.Networks
	k.Networks, k.ReadNetwork, k.CheckMTU, k.On = own.Names, own.Read, nil, nil
	return k
}

// KnownWorkload is a workload of the catalogue.
type KnownWorkload struct {
	Name     string
	Defaults result.Params
	// Parameters are those that it declares itself.
	Parameters []result.Parameter
	// Check returns an error that names the parameter and its range when the parameters can't be used; nil accepts all.
	Check func(result.Params) error
}
