package network

import (
	"netdelta/result"
)

// Features switches offloads of all devices of a namespace, lo among them. A device that has a feature fixed keeps it.
type Features struct {
	In                 Space
	TSO, GSO, GRO, LRO result.Switch
}

func (Features) isOp() {}

// String renders the step.
func (o Features) String() string {
	s := o.In.String() + ": all devices:"
	for _, f := range o.Each() {
		s += " " + f.Name + " " + string(f.To)
	}
	return s
}

// Feature is an offload and the position that it is to be in.
type Feature struct {
	Name string // "tso"
	To   result.Switch
}

// Each lists the offloads that are to be switched.
func (o Features) Each() []Feature {
	var all []Feature
	// TSO and LRO rest on the others: they go last.
	for _, f := range []Feature{{"gso", o.GSO}, {"gro", o.GRO}, {"tso", o.TSO}, {"lro", o.LRO}} {
		if f.To != "" {
			all = append(all, f)
		}
	}
	return all
}
