package network

import (
	"fmt"
	"reflect"
	"slices"
)

// Everywhere in place of a node's number stands for all nodes.
const Everywhere = -1

// Part is what of a plan concerns one node, or with Everywhere all nodes, where nodes are machines of their own that are joined
// already: there is no switch, and each node's port is a card of its machine, or a bond of several. Pods, endpoints and paths stay as in the
// whole. The error is a *NotPossibleError for a network that needs the nodes' links to be its own.
func (p Plan) Part(node int) (Plan, error) {
	part := p
	part.Underlay, part.Ops, part.Settings = nil, nil, nil
	part.partial, part.node = true, node
	for _, o := range p.Settings {
		if part.has(o.In) {
			part.Settings = append(part.Settings, o)
		}
	}
	if p.Found {
		return part, nil
	}
	ports, cards := 0, map[int]int{} // cards by node
	for _, op := range p.Underlay {
		near, err := p.without(op)
		if err != nil {
			return Plan{}, err
		}
		if u, is := near.(Uplink); is {
			u.Number = cards[u.In.Index]
			cards[u.In.Index]++
			near = u
		}
		if isPort(near) {
			ports++
		}
		if near != nil && part.has(spacesOf(near)[0]) {
			part.Underlay = append(part.Underlay, near)
		}
	}
	if ports != len(p.Nodes) {
		return Plan{}, p.inseparable("it has no port on each node that a card of the node's machine could be")
	}
	for _, op := range p.Ops {
		spaces := spacesOf(op)
		if slices.ContainsFunc(spaces, func(s Space) bool { return p.nodeOf(s) != p.nodeOf(spaces[0]) }) {
			return Plan{}, p.inseparable(fmt.Sprintf("%q joins namespaces of different nodes", op))
		}
		// What names no namespace is done on each node's machine.
		if len(spaces) == 0 || part.has(spaces[0]) {
			part.Ops = append(part.Ops, op)
		}
	}
	return part, nil
}

// isPort says whether an operation makes a node's port: of a card, or of a bond of several.
func isPort(op Op) bool {
	return op != nil && slices.ContainsFunc(op.makes(), func(m Made) bool { return m.Role == RolePort })
}

// without is an operation of the underlay without the switch: nil for what is in the switch alone.
func (p Plan) without(op Op) (Op, error) {
	v, joins := op.(Veth)
	if joins && p.nodeOf(v.A.In) >= 0 && v.B.In == InSwitch() {
		return Uplink{Device: v.A.Device, Role: v.A.Role, MAC: v.A.MAC, MTU: v.MTU}, nil
	}
	spaces := spacesOf(op)
	if slices.Contains(spaces, InSwitch()) {
		return nil, nil
	}
	if len(spaces) == 0 {
		return nil, p.inseparable(fmt.Sprintf("%q needs the links between the nodes to be the network's own", op))
	}
	if b, bonds := op.(Bond); bonds {
		return op, p.bondedCards(b)
	}
	return op, nil
}

// bondedCards refuses bonds that can't share cards with the bonds of other networks, at switches that are not the network's own.
func (p Plan) bondedCards(b Bond) error {
	var why string
	switch b.Mode {
	case ModeLACP:
		why = "a port of a switch agrees with one partner on its links, and each network has a bond of its own over the cards: " + ModeXOR + " shares by the same hashes"
	case ModeBroadcast:
		why = "packets would arrive by each link, since no switch of the network's own keeps one"
	default:
		return nil
	}
	return &NotPossibleError{Network: p.Network, Condition: "bond.mode=" + b.Mode + " over cards of machines", Why: why}
}

func (p Plan) inseparable(why string) error {
	return &NotPossibleError{Network: p.Network, Condition: "nodes that are machines", Why: why}
}

// nodeOf is the node that a namespace is on, -1 for the switch.
func (p Plan) nodeOf(s Space) int {
	switch s.Kind {
	case NodeSpace:
		return s.Index
	case PodSpace:
		return p.Pods[s.Index].Node
	}
	return -1
}

// has says whether a namespace is one of those that the plan makes.
func (p Plan) has(s Space) bool {
	if !p.partial {
		return true
	}
	n := p.nodeOf(s)
	return n >= 0 && (p.node == Everywhere || p.node == n)
}

// spacesOf are the namespaces that an operation names, found in its fields, so that a new kind of operation needs no entry here.
func spacesOf(op Op) []Space {
	var found []Space
	var look func(v reflect.Value)
	look = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[Space]() {
				if s := (Space{Kind: SpaceKind(v.Field(0).Int()), Index: int(v.Field(1).Int())}); !slices.Contains(found, s) {
					found = append(found, s)
				}
				return
			}
			for i := range v.NumField() {
				look(v.Field(i))
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				look(v.Index(i))
			}
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				look(v.Elem())
			}
		}
	}
	look(reflect.ValueOf(op))
	return found
}
