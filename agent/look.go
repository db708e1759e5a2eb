package agent

import (
	"context"
	"time"

	"netdelta/internal/machine"
	"netdelta/result"
)

// lookDeadline bounds a look at an agent's machine. It takes a millisecond, less a stream over a busy server between.
const lookDeadline = 10 * time.Second

// Counters reads what the agent's machine counts of its processors.
func (a *Agent) Counters(ctx context.Context) (machine.Counters, error) {
	return invoke[machine.Counters](ctx, a, opCounters, struct{}{}, lookDeadline)
}

// Machine describes the agent's machine, as far as the pod shows it: the host name is the pod's own, and so is the system.
func (a *Agent) Machine(ctx context.Context) (result.Environment, error) {
	return invoke[result.Environment](ctx, a, opMachine, struct{}{}, lookDeadline)
}
