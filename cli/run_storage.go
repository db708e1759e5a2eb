package cli

import (
	"fmt"
	"slices"
	"strings"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/testbed/kube"
)

// storageFlag names the classes of a cluster's volumes that are measured.
const storageFlag = "storage-class"

// volumeWorkload is the workload that keeps its blocks in a volume.
const volumeWorkload = "block"

// collectStorage has the workload that uses volumes take the place of the study's where no flag names any.
func (o *runOptions) collectStorage() {
	if len(o.overrides.StorageClass) > 0 && len(o.overrides.Workloads) == 0 {
		o.overrides.Workloads = []string{volumeWorkload}
	}
}

// toStorage has a study compare where clients with a volume stand, in the nodes' network and in the pods': other networks of a cluster
// say how netdelta's own servers are reached. A volume is on the node of its pod. What flags ask for stays. It says what was changed.
func toStorage(s *study.Study, o study.Overrides) (note string) {
	if len(o.StorageClass) == 0 {
		return ""
	}
	var changed []string
	if before := slices.Clone(s.Networks); len(o.Networks) == 0 {
		if clientNetworks(s, o, kube.Host, kube.Pod); !slices.Equal(before, s.Networks) {
			changed = append(changed, "the networks are where the pod with the volume is: "+strings.Join(s.Networks, ", "))
		}
	}
	if only := []result.Placement{result.SameNode}; len(o.Placement) == 0 && !slices.Equal(s.Placement, only) {
		s.Placement = only
		changed = append(changed, fmt.Sprintf("the placement is %s: a volume is mounted on the node of its pod", result.SameNode))
	}
	return strings.Join(changed, "; ")
}
