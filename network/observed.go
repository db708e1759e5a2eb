package network

// Unforeseen says that a device is one that the plan can't name: what plugins have made besides the pods' own devices. It may
// carry what its neighbours on the way do.
func (p Plan) Unforeseen(d Device) bool {
	if !p.Observed || d.In.Kind == SwitchSpace || d.Name == "lo" {
		return false
	}
	for _, op := range p.Underlay {
		switch op := op.(type) {
		case Veth:
			if op.A.Device == d || op.B.Device == d {
				return false
			}
		case Bond:
			if op.Device == d {
				return false
			}
		}
	}
	for _, op := range p.Ops {
		if a, is := op.(Attach); is && a.Device == d {
			return false
		}
	}
	return true
}
