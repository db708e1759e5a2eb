package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"netdelta/experiment"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/lab"
	"netdelta/testbed/vm/wire"
	"netdelta/workload"
)

// Verb is the verb of the command line that does a job inside a guest, JobFile where it finds the job, and Line the serial line
// that its words go over.
const (
	Verb    = "guest-exact"
	JobFile = "/job.json"
	Line    = wire.ScriptDevice
)

// Job is what one guest whose clock counts instructions has to do. It has nothing of the host in it: two jobs of the same seed
// are the same to the last byte, and so is what comes of them.
type Job struct {
	experiment.ExactJob
	// Filtered are networks that get so many firewall rules in addition to what they are: a known change, for tests.
	Filtered map[string]int `json:"filtered,omitempty"`
	// Clock is the clock source that the guest must use, "" for any.
	Clock string `json:"clock,omitempty"`
}

// exactSettle is how long a new network and a new connection are left alone.
const exactSettle = 200 * time.Millisecond

// Exact does a job and tells the host of each trial, and of its end.
func Exact(ctx context.Context, job Job, networks []network.Network, workloads []workload.Workload, to *Writer) error {
	environment, err := exact(ctx, job, networks, workloads, to)
	end := End{Environment: environment}
	if err != nil {
		end.Error = err.Error()
	}
	return to.Send(Message{End: &end})
}

func exact(ctx context.Context, job Job, networks []network.Network, workloads []workload.Workload, to *Writer) (result.Environment, error) {
	about, err := machine.Describe(machine.Version())
	if err != nil {
		return about, err
	}
	if job.Clock != "" && about.Clock != job.Clock {
		return about, fmt.Errorf("the guest's clock is %s, not %s: it would not count instructions", about.Clock, job.Clock)
	}
	driver := lab.NewDriver(filtered(networks, job.Filtered))
	cells, err := experiment.Supported(ctx, job.Cells, driver)
	if err != nil {
		return about, err
	}
	var measured []result.Cell
	lacks := map[string]string{}
	for _, c := range cells {
		if c.Unsupported != "" {
			lacks[c.ID] = c.Unsupported
		} else {
			measured = append(measured, c)
		}
	}
	if err := to.Send(Message{Unsupported: lacks}); err != nil {
		return about, err
	}
	job.Cells = measured
	seen, err := experiment.MeasureExact(ctx, experiment.ExactConfig{
		ExactJob: job.ExactJob, Settle: exactSettle, Driver: driver, Workloads: workloads, CPU: 0,
	}, func(t result.Trial) error { return to.Send(Message{Trial: &t}) })
	about.Links, about.Sysctls = seen.Links, seen.Sysctls
	return about, err
}

// filtered puts rules into the networks that a test names, under their own names: a comparison of runs shows that they have changed.
func filtered(networks []network.Network, rules map[string]int) []network.Network {
	all := make([]network.Network, len(networks))
	for i, n := range networks {
		all[i] = n
		if count := rules[n.Name]; count > 0 {
			all[i] = network.Filtered(n, count)
			all[i].Name = n.Name
		}
	}
	return all
}

// ReadJob reads a job from a file.
func ReadJob(path string) (Job, error) {
	var job Job
	text, err := os.ReadFile(path)
	if err != nil {
		return job, fmt.Errorf("read the job: %w", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&job); err != nil {
		return job, fmt.Errorf("read the job in %s: %w", path, err)
	}
	return job, nil
}
