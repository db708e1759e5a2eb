package guest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"netdelta/experiment"
	"netdelta/experiment/guest"
	"netdelta/experiment/plan"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/vm/armtest"
	"netdelta/testbed/vm/image"
)

// armInit is the first process of an arm64 machine that does one job. The guest's line is where its words go anyway.
const armInit = `#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /sbin
/bin/busybox --install -s /bin
export PATH=/bin:/sbin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmpfs /tmp; mount -t tmpfs tmpfs /run
ln -s ttyAMA0 ` + guest.Line + `
ip link set lo up
/netdelta ` + guest.Verb + ` ` + guest.JobFile + `
poweroff -f
`

// countingOnArm starts an arm64 machine whose clock counts instructions. The function that is returned waits for its end, and gives its trials and
// all that it said.
func countingOnArm(t *testing.T, program string, job guest.Job) func() (map[string]result.Trial, string) {
	t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	var console bytes.Buffer
	cmd := armtest.Start(t, armtest.Machine{
		Init: armInit, Console: &console,
		Args: []string{"-smp", "1", "-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off", "-seed", "7", "-rtc", "base=2026-01-01T00:00:00,clock=vm"},
		Root: func(root *image.Root) {
			if err := errors.Join(root.Copy(program, "/netdelta"), root.Text(guest.JobFile, 0o644, text)); err != nil {
				t.Fatal(err)
			}
		},
	})
	return func() (map[string]result.Trial, string) {
		_ = cmd.Wait() // how it ended shows in what it said
		trials := map[string]result.Trial{}
		for line := range strings.Lines(console.String()) {
			var m guest.Message
			if json.Unmarshal([]byte(strings.TrimSpace(line)), &m) == nil && m.Trial != nil {
				trials[m.Trial.Cell] = *m.Trial
			}
		}
		return trials, console.String()
	}
}

// TestCountsOnArm64InGuest: two guests with an arm64 processor that count instructions from one seed give the same figures to the last digit, a
// network against itself is the same, and one with a longer way through the kernel takes more.
func TestCountsOnArm64InGuest(t *testing.T) {
	require.Guests(t) // before the program is compiled, which takes minutes
	cells := plan.Expand(small())
	job := guest.Job{ExactJob: experiment.ExactJob{
		Cells: cells, Seed: 7, Warmup: 200, Transactions: 1000, PerInstruction: 2,
		Testbed: testbed.Spec{Nodes: 2, PodsPerNode: 2, Link: testbed.Link{MTU: 1500}},
	}}
	program := filepath.Join(t.TempDir(), "netdelta")
	require.Program(t, "netdelta", program, "GOARCH=arm64")
	one, other := countingOnArm(t, program, job), countingOnArm(t, program, job)
	first, said := one()
	second, _ := other()
	took := map[string]float64{} // instructions of a round trip
	for _, c := range cells {
		a, b := first[c.ID], second[c.ID]
		if a.Failed != "" || a.Exact == nil || !reflect.DeepEqual(a.Exact, b.Exact) {
			t.Fatalf("%s: %s; one guest counted %+v and the other %+v:\n%s", c.ID, a.Failed, a.Exact, b.Exact, said[max(0, len(said)-4000):])
		}
		took[string(c.Role)+" "+c.Network] = a.Exact.RoundTrip
		t.Logf("%s: %+v", c.ID, *a.Exact)
	}
	base, control, bridge := took[string(result.RoleBaseline)+" host"], took[string(result.RoleControl)+" host"], took[string(result.RoleCell)+" bridge"]
	if base == 0 || math.Abs(control/base-1) > 0.005 || bridge < 1.05*base {
		t.Errorf("a round trip takes %v instructions", took)
	}
}
