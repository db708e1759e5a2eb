package network

import "slices"

// Unforeseen says that a device is one that the plan can't name: what plugins have made besides the pods' own devices. It may
// carry what its neighbours on the way do.
func (p Plan) Unforeseen(d Device) bool {
	if !p.Observed || d.In.Kind == SwitchSpace || d.Name == "lo" {
		return false
	}
	return !slices.ContainsFunc(Of[Veth](p.Underlay), func(v Veth) bool { return v.A.Device == d || v.B.Device == d }) &&
		!slices.ContainsFunc(Of[Bond](p.Underlay), func(b Bond) bool { return b.Device == d }) &&
		!slices.ContainsFunc(Of[Attach](p.Ops), func(a Attach) bool { return a.Device == d })
}
