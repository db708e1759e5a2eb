package experiment

import (
	"fmt"

	"netdelta/experiment/measure"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/internal/netns"
	"netdelta/result"
	"netdelta/unit"
)

// What a run on this machine holds at once, while one build is measured and the next is set up: of each set-up of a network, of each agent
// and for each cell. The figures were measured of the plainest networks with 4 to 160 cells, so that no run is refused that would
// do; eBPF and tunnels take more.
const (
	filesBase  = 92
	filesGroup = 48
	filesCell  = 3

	buildsHeld = 2

	memoryBase  = unit.Bytes(40 << 20)
	memoryAgent = unit.Bytes(5 << 20)
	memoryCell  = unit.Bytes(4 << 20)
)

// room is the least that a run holds at once.
type room struct {
	files, namespaces int
	memory            unit.Bytes
}

// roomFor is the room that cells take, with so many namespaces for each set-up of a network.
func roomFor(cells []result.Cell, blocks bool, spaces int) room {
	groups := map[measure.GroupKey]bool{}
	ends := map[measure.GroupKey]map[result.Placement]bool{}
	agents := 0
	for _, c := range cells {
		g := measure.GroupOf(c)
		if !groups[g] {
			groups[g], ends[g] = true, map[result.Placement]bool{}
			agents++
		}
		if !ends[g][c.Placement] {
			ends[g][c.Placement] = true
			agents++
		}
	}
	n := len(groups)
	if blocks { // one network at a time
		n, agents = 1, 2
	}
	return room{
		files: filesBase + n*filesGroup + len(cells)*filesCell, namespaces: buildsHeld * n * spaces,
		memory: memoryBase + unit.Bytes(buildsHeld*agents)*memoryAgent + unit.Bytes(len(cells))*memoryCell,
	}
}

// checkRoom refuses a run that this machine has no room for, before anything is built: else networks fail one by one.
func (p *Plan) checkRoom(s *study.Study) error {
	kept := plan.Measured(p.Cells)
	spaces := 1 + max(1, s.Testbed.Nodes)*(1+max(1, s.Testbed.Pods))
	files, err := machine.OpenFiles()
	if err != nil {
		return err
	}
	free, err := machine.FreeMemory()
	if err != nil {
		return err
	}
	return roomFor(kept, p.Blocks, spaces).in(room{files, netns.Limit(), free})
}

// in says what a run needs that is not there, and how to have it.
func (r room) in(have room) error {
	const fewer = "or measure fewer networks at once by --networks"
	switch {
	case r.files > have.files:
		return fmt.Errorf("%w: its networks take at least %d open files at once, and the limit is %d; %s, %s", record.ErrNothing, r.files, have.files, machine.MoreOpenFiles, fewer)
	case r.namespaces > have.namespaces:
		return fmt.Errorf("%w: its networks take at least %d network namespaces at once, and the limit is %d; %s, %s", record.ErrNothing, r.namespaces, have.namespaces, netns.RaiseLimit, fewer)
	case r.memory > have.memory:
		return fmt.Errorf("%w: its networks take at least %v of memory at once, and %v are free; %s, %s", record.ErrNothing, r.memory, have.memory, machine.MoreMemory, fewer)
	}
	return nil
}
