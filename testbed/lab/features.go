package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/nsmonitor"
)

// features switches offloads of all devices of a namespace. What a device has fixed is left and noted, unless it is fixed on
// all of them: then the condition can't be met here.
func (b *builder) features(op network.Features) error {
	s, err := b.in(op.In)
	if err != nil {
		return err
	}
	links, err := s.links()
	if err != nil {
		return err
	}
	return s.ns.Do(func() error {
		e, err := nsmonitor.OpenEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		for _, f := range op.Each() {
			var fixed []string // kinds of devices
			for _, l := range links {
				met, err := switchFeature(e, l.Attrs().Name, f)
				if err != nil {
					return fmt.Errorf("switch %s of %s %s: %w", f.Name, l.Attrs().Name, f.To, err)
				}
				if !met {
					fixed = append(fixed, l.Type())
				}
			}
			if len(fixed) == len(links) {
				return fmt.Errorf("no device has a %s that can be switched %s: %w", f.Name, f.To, unix.EOPNOTSUPP)
			}
			b.noteFixed(f, fixed)
		}
		return nil
	})
}

// offload is work that a device may do or leave to others, and the commands of ethtool by which it is asked and switched. Where
// the answer holds several, bit is the one that is meant.
type offload struct {
	name          string
	get, set, bit uint32
}

// flagLRO is ETH_FLAG_LRO of linux/ethtool.h.
const flagLRO = 1 << 15

func offloads() []offload {
	return []offload{
		{"rx-checksum", unix.ETHTOOL_GRXCSUM, unix.ETHTOOL_SRXCSUM, 1},
		{"tx-checksum", unix.ETHTOOL_GTXCSUM, unix.ETHTOOL_STXCSUM, 1},
		{"scatter-gather", unix.ETHTOOL_GSG, unix.ETHTOOL_SSG, 1},
		{"tso", unix.ETHTOOL_GTSO, unix.ETHTOOL_STSO, 1},
		{"gso", unix.ETHTOOL_GGSO, unix.ETHTOOL_SGSO, 1},
		{"gro", unix.ETHTOOL_GGRO, unix.ETHTOOL_SGRO, 1},
		{"lro", unix.ETHTOOL_GFLAGS, unix.ETHTOOL_SFLAGS, flagLRO},
	}
}

// switchFeature switches one offload of a device of the calling thread's namespace, and tells whether it is as it should be.
func switchFeature(e nsmonitor.Ethtool, device string, f network.Feature) (met bool, err error) {
	known := offloads()
	i := slices.IndexFunc(known, func(o offload) bool { return o.name == f.Name })
	if i < 0 {
		return false, fmt.Errorf("there is no offload %q", f.Name)
	}
	o := known[i]
	now, err := e.Value(device, o.get, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		now, err = 0, nil // it has none
	}
	if err != nil {
		return false, err
	}
	wanted := now &^ o.bit
	on, err := position(f.To)
	if err != nil {
		return false, err
	}
	if on {
		wanted |= o.bit
	}
	if now == wanted {
		return true, nil
	}
	// A device that has the feature fixed says so, or says nothing and leaves it.
	if _, err := e.Value(device, o.set, wanted); err != nil {
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
			return false, nil
		}
		return false, err
	}
	now, err = e.Value(device, o.get, 0)
	return now == wanted, err
}

// position tells whether a switch is on, and is an error for what is neither on nor off.
func position(s result.Switch) (on bool, err error) {
	if s != result.On && s != result.Off {
		return false, fmt.Errorf("a switch to %q: need %s or %s", s, result.On, result.Off)
	}
	return s == result.On, nil
}

// noteFixed notes kinds of devices that don't have an offload as it should be.
func (b *builder) noteFixed(f network.Feature, kinds []string) {
	if len(kinds) == 0 {
		return
	}
	slices.Sort(kinds)
	b.note(fmt.Sprintf("offload.%s=%s: devices of these kinds have it fixed otherwise and keep it: %s",
		f.Name, f.To, strings.Join(slices.Compact(kinds), ", ")))
}

// note keeps a sentence on what could not be had as the conditions ask, once.
func (b *builder) note(sentence string) {
	if !slices.Contains(b.notes, sentence) {
		b.notes = append(b.notes, sentence)
	}
}

// Notes is testbed.Instruments.Notes.
func (l *Testbed) Notes() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.notes)
}

// offloadsOf asks which offloads a device of the calling thread's namespace has, and which of them are on.
func offloadsOf(device string) (map[string]bool, error) {
	e, err := nsmonitor.OpenEthtool()
	if err != nil {
		return nil, err
	}
	defer e.Close()
	found := map[string]bool{}
	for _, o := range offloads() {
		value, err := e.Value(device, o.get, 0)
		switch {
		case err == nil && o.name == "lro":
			found[o.name] = value&o.bit != 0
		case err == nil:
			found[o.name] = value != 0
		case !errors.Is(err, unix.EOPNOTSUPP):
			return nil, fmt.Errorf("ask for %s: %w", o.name, err)
		}
	}
	return found, nil
}
