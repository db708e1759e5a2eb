package kube

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Keys of labels and annotations on every object that netdelta makes in a cluster.
const (
	// LabelManagedBy marks an object as netdelta's: its value is ManagedBy.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelRun is the run that an object belongs to, as text of a RunID.
	LabelRun = "netdelta.dev/run"
	// LabelRole is what an object is for: one of the roles below.
	LabelRole = "netdelta.dev/role"
	// LabelTestbed tells the testbeds of a run apart: a number, counted from 0 in each run.
	LabelTestbed = "netdelta.dev/testbed"
	// LabelPod tells the pods of a testbed apart: a number, counted from 0 in each testbed. Services select by it.
	LabelPod = "netdelta.dev/pod"

	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "netdelta"
)

// Role is the value of LabelRole.
type Role string

// The roles of objects.
const (
	RoleClient    Role = "client"     // a pod that sends what is measured
	RoleServer    Role = "server"     // a pod that answers
	RoleService   Role = "service"    // a Service in front of a server
	RoleNodeAgent Role = "node-agent" // a pod that looks at the devices of its node
	RoleNode      Role = "node"       // a privileged pod that makes nodes of testbeds on its node
	RolePolicy    Role = "policy"     // a NetworkPolicy
	RoleVolume    Role = "volume"     // a claim for a volume
	RoleLease     Role = "lease"      // the Lease that says that a run is under way
)

// RunID tells the runs in a cluster apart: eight hexadecimal digits.
type RunID string

// runIDBytes is the length of a RunID before it is written as digits.
const runIDBytes = 4

// NewRunID draws one.
func NewRunID() RunID {
	var b [runIDBytes]byte
	_, _ = rand.Read(b[:]) // it never fails
	return RunID(hex.EncodeToString(b[:]))
}

// ParseRunID reads one, as it stands in a label. The error says what is wrong with the text.
func ParseRunID(text string) (RunID, error) {
	if len(text) != hex.EncodedLen(runIDBytes) || strings.Trim(text, "0123456789abcdef") != "" {
		return "", fmt.Errorf("run %q: %w", text, errRunID)
	}
	return RunID(text), nil
}

var errRunID = errors.New("need eight digits of 0-9 and a-f")

// Labels mark an object of the run. The map is the caller's, to add to.
func (r RunID) Labels(role Role) map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelRun: string(r), LabelRole: string(role)}
}

// Name makes the name of an object of the run: netdelta-RUN-rest.
func (r RunID) Name(rest string) string { return "netdelta-" + string(r) + "-" + rest }

// Selector is the label selector of all objects of the run.
func (r RunID) Selector() string { return LabelRun + "=" + string(r) + "," + SelectAll }

// SelectAll is the label selector of all objects of all runs.
const SelectAll = LabelManagedBy + "=" + ManagedBy + "," + LabelRun
