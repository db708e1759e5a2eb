// Package record keeps the record of strategies that have loops of their own: it gathers their trials, writes them to the run
// folder as they are finished, and says which are there already in a run that is resumed.
package record

import (
	"errors"
	"time"

	"netdelta/experiment/plan"
	"netdelta/result"
)

// Record is a run under way. Its zero value keeps trials in memory only.
type Record struct {
	Run    result.Run
	Trials []result.Trial
	folder *result.Folder
}

// New goes on with the trials that a run folder holds. The folder stays the caller's; nil keeps trials in memory only.
func New(run result.Run, folder *result.Folder) *Record {
	r := &Record{Run: run, folder: folder}
	if folder != nil {
		r.Trials = folder.Contents.Trials
	}
	return r
}

// Begin completes the head of the record and writes it, so that a run that is killed can be shown and resumed.
func (r *Record) Begin(s result.Strategy, cells []result.Cell) error {
	r.Run.Schema, r.Run.Strategy, r.Run.Cells, r.Run.Ended = result.Schema, &s, cells, plan.Running
	if r.Run.Started.IsZero() {
		r.Run.Started = time.Now()
	}
	return r.write()
}

func (r *Record) write() error {
	if r.folder == nil {
		return nil
	}
	return r.folder.WriteResult(r.Run)
}

// Add keeps a finished trial of a cell.
func (r *Record) Add(cell result.Cell, t result.Trial) error {
	t.Schema, t.Cell, t.Role, t.Finished, t.ClientCPU, t.ServerCPU = result.Schema, cell.ID, cell.Role, time.Now(), -1, -1
	r.Trials = append(r.Trials, t)
	if r.folder == nil {
		return nil
	}
	return r.folder.Append(t)
}

// Of counts the trials of a cell.
func (r *Record) Of(cell string) int {
	n := 0
	for _, t := range r.Trials {
		if t.Cell == cell {
			n++
		}
	}
	return n
}

// hasBuild says whether any cell was measured in a build.
func (r *Record) hasBuild(build int) bool {
	for _, t := range r.Trials {
		if t.Build == build {
			return true
		}
	}
	return false
}

// End says how the run ended: err is what kept it from going on, interrupted that the user stopped it.
func (r *Record) End(err error, interrupted bool) {
	r.Run.Finished, r.Run.Ended = time.Now(), plan.EndedBuilds
	switch {
	case interrupted:
		r.Run.Ended = plan.EndedInterrupted
	case err != nil:
		r.Run.Ended = plan.EndedFailed
	}
}

// Save writes the record as it now is, after the caller has judged it.
func (r *Record) Save() error {
	if r.folder == nil {
		return nil
	}
	return errors.Join(r.folder.WriteEnvironment(r.Run.Environment), r.write())
}

// Cells makes the cells of networks under one load: the first is the baseline, and has an A/A control where one is asked for.
func Cells(networks []string, workload string, p result.Params, control bool) []result.Cell {
	var all []result.Cell
	add := func(network string, role result.Role) {
		id := network + "/" + workload
		if role == result.RoleControl {
			id += "/twin"
		}
		all = append(all, result.Cell{
			ID: id, Network: network, Placement: result.CrossNode, Path: "pod", Workload: workload, Params: p, Role: role,
		})
	}
	add(networks[0], result.RoleBaseline)
	if control {
		add(networks[0], result.RoleControl)
	}
	for _, n := range networks[1:] {
		add(n, result.RoleCell)
	}
	return all
}
