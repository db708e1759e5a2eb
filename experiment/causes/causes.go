// Package causes loads paths in turn and reads what the kernel counts meanwhile, at both ends and on every node between them. It changes
// nothing: what it read says what is wrong (package insight/cause).
package causes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/measure"
	"netdelta/internal/gather"
	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/probe/drops"
	"netdelta/probe/evidence"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/nsmonitor"
)

// Config is what is read.
type Config struct {
	Experiment experiment.Config
	// Cells are the paths, one of each network, which stand side by side.
	Cells []result.Cell
	// Lasting is how long to go on loading them; each is loaded twice at least.
	Lasting time.Duration
	// Built is called with each path's testbed before anything is loaded, such as by a test that plants a fault; it may be nil.
	Built func(result.Cell, testbed.Testbed) error
}

// visitsLeast is how often each path is loaded at least.
const visitsLeast = 2

// burstsEach is how many bursts a visit has: what is read before and after takes a few milliseconds, which are to be few beside them.
const burstsEach = 10

// machineSpace is what the counters of the whole machine are called.
const machineSpace = "machine"

// Read builds the paths, loads each in turn, in random order, and returns what was counted meanwhile, in the order of the cells. Without
// the right or the kernel to read why packets are dropped it goes without, and says so among the notes.
func Read(ctx context.Context, c Config) (paths []evidence.Path, notes []string, err error) {
	counter, err := drops.Open()
	var lacks *testbed.UnsupportedError
	var refused *testbed.PermissionError
	switch {
	case errors.As(err, &lacks), errors.As(err, &refused):
		notes = append(notes, err.Error())
	case err != nil:
		return nil, nil, err
	default:
		defer func() { err = errors.Join(err, counter.Close()) }()
	}
	shared := measure.NewContext(c.Experiment.Config, c.Experiment.Run)
	build, err := shared.OpenProven(ctx, 0, c.Cells)
	if err != nil {
		return nil, nil, err
	}
	paths, err = c.read(ctx, shared, build, counter)
	return paths, notes, errors.Join(err, build.Close())
}

// read visits the sessions of a build until the time is up.
func (c Config) read(ctx context.Context, shared *measure.Context, build *measure.Build, counter *drops.Counter) (paths []evidence.Path, err error) {
	rounds := measure.NewRounds(shared, time.Now(), false) // what it reads the machine from is closed with the configuration
	readers := make([]*reader, len(build.Sessions))
	for i, s := range build.Sessions {
		if readers[i], err = newReader(s, counter); err != nil {
			return nil, err
		}
		if c.Built != nil {
			if err := c.Built(s.Cell, s.Testbed()); err != nil {
				return nil, fmt.Errorf("prepare %s: %w", s.Cell.ID, err)
			}
		}
	}
	if err := rounds.Warm(ctx, build.Sessions); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(c.Experiment.Run.Seed, 0))
	round := 0
	for began := time.Now(); round < visitsLeast*burstsEach || time.Since(began) < c.Lasting; round += burstsEach {
		for _, i := range random.Perm(len(build.Sessions)) {
			load := func() error {
				for k := range burstsEach {
					if _, _, err := rounds.Run(ctx, 0, build.Sessions[i:i+1], round+k); err != nil {
						return err
					}
				}
				return ctx.Err()
			}
			if build.Sessions[i].Failed != nil {
				continue // what was counted until then may say why
			}
			if err := readers[i].visit(load); err != nil {
				return nil, fmt.Errorf("load %s: %w", build.Sessions[i].Cell.ID, err)
			}
		}
	}
	for i := range readers {
		if readers[i].path.Ends, err = readers[i].differences(); err != nil {
			return nil, err
		}
	}
	trials := build.Collect(ctx)
	for _, cell := range c.Cells {
		i := slices.IndexFunc(build.Sessions, func(s *measure.Session) bool { return s.Cell.ID == cell.ID })
		if i < 0 {
			continue
		}
		t := trials[i]
		p := readers[i].path
		p.Failed = t.Failed
		p.Transactions, p.Histogram = t.Transactions+t.Errors+t.Lost, t.Histogram
		paths = append(paths, p)
	}
	return paths, nil
}

// reader reads one path.
type reader struct {
	path    evidence.Path
	shows   testbed.Instruments
	spaces  []network.Space
	numbers map[uint32]network.Space
	counter *drops.Counter // nil where drops can't be counted
}

func newReader(s *measure.Session, counter *drops.Counter) (*reader, error) {
	shows := s.Testbed().Instruments()
	if shows.Observer == nil || shows.Within == nil {
		return nil, &testbed.UnsupportedError{
			Feature: "reading what the kernel counts on this testbed", Need: "a testbed that shows its network namespaces", Fix: "leave --testbed out: the lab shows them",
		}
	}
	numbers, err := measure.SpaceNumbers(shows)
	if err != nil {
		return nil, err
	}
	return &reader{
		path: evidence.Path{Network: s.Cell.Network}, shows: shows, spaces: shows.Observer.Plan().Spaces(), numbers: numbers, counter: counter,
	}, nil
}

// state is what all namespaces of a path have counted at one time.
type state struct {
	counters map[string]evidence.Counters
	drops    drops.Counts
}

// visit reads before and after a load, and adds what was counted in between.
func (r *reader) visit(load func() error) error {
	before, err := r.now()
	if err != nil {
		return err
	}
	loadErr := load()
	after, err := r.now()
	if err := errors.Join(loadErr, err); err != nil {
		return err
	}
	v := evidence.Visit{Counters: map[string]evidence.Counters{}}
	for space, counters := range after.counters {
		v.Counters[space] = counters.Since(before.counters[space])
	}
	for place, n := range after.drops.Since(before.drops) {
		space, own := r.numbers[place.Space]
		if !own {
			continue // of another path, or of other programs
		}
		v.Drops = append(v.Drops, evidence.Drop{Space: space.String(), Device: r.device(space, place.Device), Reason: place.Reason, Packets: n})
	}
	r.path.Visits = append(r.path.Visits, v)
	return nil
}

// now reads what all namespaces have counted.
func (r *reader) now() (state, error) {
	s := state{counters: map[string]evidence.Counters{}}
	machine := evidence.Counters{}
	for _, space := range r.spaces {
		err := r.inside(space, func() error {
			counters, err := evidence.ReadCounters()
			for name, n := range counters {
				if evidence.OfMachine(name) {
					machine[name] = n
					delete(counters, name)
				}
			}
			s.counters[space.String()] = counters
			return err
		})
		if err != nil {
			return s, fmt.Errorf("read the counters of %s: %w", space, err)
		}
	}
	s.counters[machineSpace] = machine
	if r.counter == nil {
		return s, nil
	}
	var err error
	s.drops, _, err = r.counter.Read()
	return s, err
}

// inside runs f in one of the path's network namespaces.
func (r *reader) inside(space network.Space, f func() error) error {
	return r.shows.Within(space.String(), func(fd int) error { return netns.Within(fd, f) })
}

// device names a device by its number, "" where it has gone or there is none.
func (r *reader) device(space network.Space, number uint32) (name string) {
	if number == 0 {
		return ""
	}
	_ = r.inside(space, func() error { // without a name the namespace has to do
		device, err := net.InterfaceByIndex(int(number))
		if err == nil {
			name = device.Name
		}
		return err
	})
	return name
}

// differences are the settings in which places that should be alike differ: both ends, and each two nodes.
func (r *reader) differences() ([]evidence.Difference, error) {
	configs := map[network.Space]nsmonitor.Config{}
	var features []string
	for _, space := range r.spaces {
		err := r.inside(space, func() (err error) {
			if configs[space], err = nsmonitor.ReadConfig(sysctls(), nil); err != nil || features != nil {
				return err
			}
			e, err := nsmonitor.OpenEthtool()
			if err != nil {
				return err
			}
			defer e.Close()
			features, err = e.FeatureNames("lo")
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the settings of %s: %w", space, err)
		}
	}
	var all []evidence.Difference
	for _, group := range [][]network.Space{
		gather.Where(r.spaces, func(s network.Space) bool { return s.Kind == network.PodSpace }),
		gather.Where(r.spaces, func(s network.Space) bool { return s.Kind == network.NodeSpace }),
	} {
		for _, other := range group[min(1, len(group)):] {
			one, another := configs[group[0]], configs[other]
			for _, d := range shared(one, another).Changes(shared(another, one), features) {
				all = append(all, evidence.Difference{Place: group[0].String(), Other: other.String(), ConfigChange: d})
			}
		}
	}
	return all, nil
}

// sysctls are the settings that change what is measured, and those by which a namespace drops packets or has them sent smaller.
func sysctls() []string {
	return append(testbed.Settings(),
		"net.core.somaxconn", "net.ipv4.conf.all.rp_filter", "net.ipv4.icmp_ratelimit", "net.ipv4.ip_no_pmtu_disc", "net.ipv4.tcp_adv_win_scale",
		"net.ipv4.tcp_moderate_rcvbuf", "net.ipv4.tcp_recovery")
}

// shared are the settings that two places may be expected to have alike: those of devices that both have by the same name, but for what
// names a device or its neighbours, and their sysctls.
func shared(c, other nsmonitor.Config) nsmonitor.Config {
	own := nsmonitor.Config{}
	for setting, value := range c {
		_, both := other[setting]
		alike := setting.Device == "" && strings.HasPrefix(setting.Name, "net.") || slices.Contains(ofDevice(), setting.Name) || strings.HasPrefix(setting.Name, "qdisc ")
		if both && alike {
			own[setting] = value
		}
	}
	return own
}

// ofDevice are the settings of a device that are compared.
func ofDevice() []string {
	return []string{"features", "mtu", "txqueuelen", "gso_max_size", "gso_max_segs", "gro_max_size", "gso_ipv4_max_size", "gro_ipv4_max_size"}
}
