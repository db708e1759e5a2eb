package lab

import (
	"fmt"
	"strings"

	"netdelta/internal/suggest"
	"netdelta/network"
)

// Mark is what the environment variable owner.Variable holds in each process of this lab. A process that carries it ends with
// the lab, no matter what started it.
func (l *Testbed) Mark() string { return l.mark }

// NameError says that a lab has no pod or node of this name.
type NameError struct {
	Name    string
	Nearest string // the known name closest to it, "" where none is close
	Known   []string
}

// Error implements error.
func (e *NameError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("there is no pod or node %q in this lab: did you mean %q?", e.Name, e.Nearest)
	}
	const shown = 12
	known := strings.Join(e.Known[:min(len(e.Known), shown)], ", ")
	if len(e.Known) > shown {
		known += ", ..."
	}
	return fmt.Sprintf("there is no pod or node %q in this lab: there are %s", e.Name, known)
}

// Within calls f with a descriptor of the network namespace of a pod, a node or the switch, which stays open meanwhile.
// Sockets that f opens are to the network like the pods' own. The
// error for an unknown name is a *NameError.
func (l *Testbed) Within(name string, f func(fd int) error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return ErrClosed
	}
	where, err := l.place(name)
	if err != nil {
		return err
	}
	s := l.spaces[where]
	if s == nil {
		return fmt.Errorf("%s has no network namespace: the last swap failed; another may fix that", name)
	}
	return s.ns.WithFD(func(fd int) error { return l.amongPods(func() error { return f(fd) }) })
}

// place finds the namespace of a pod, which under host networking is its node's, of a node, or of the switch.
func (l *Testbed) place(name string) (network.Space, error) {
	var known []string
	for j, p := range l.Topology.Pods {
		if p.Name == name {
			return l.Plan().Pods[j].In, nil
		}
		known = append(known, p.Name)
	}
	for i, n := range l.Topology.Nodes {
		if n.Name == name {
			return network.InNode(i), nil
		}
		known = append(known, n.Name)
	}
	if name == network.InSwitch().String() {
		return network.InSwitch(), nil
	}
	known = append(known, network.InSwitch().String())
	nearest, _ := suggest.Nearest(name, known)
	return network.Space{}, &NameError{Name: name, Nearest: nearest, Known: known}
}
