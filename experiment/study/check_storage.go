package study

import (
	"fmt"
	"regexp"

	"netdelta/result"
)

// className is what Kubernetes takes as the name of a StorageClass.
var className = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// storageClass checks a level of the class of a cluster's volumes.
func (c *checker) storageClass(path, v string) {
	if !className.MatchString(v) {
		c.fail(path, fmt.Sprintf("storage_class %s is not the name of a StorageClass", printed(v)), "use one of those that kubectl get storageclass lists")
	}
}

// stored refuses levels of what only netdelta's own stores have, where a volume of a cluster takes their place. The workload can't: it
// is asked about parameters that have their defaults.
func (c *checker) stored(all Levels, where func(key string) string) {
	if len(all.StorageClass) > 0 && len(all.Store) > 0 {
		c.fail(where("store"), "store changes nothing: with a storage_class, the blocks lie in a volume of that class",
			"leave store out, or storage_class, to measure a store of netdelta's own")
	}
}

// beside are the parameters that a level of a workload is asked about together with: how large a volume's file is means something only
// where there is a volume.
func (c *checker) beside(w Workload, known KnownWorkload) result.Params {
	p := known.Defaults
	if classes := w.Levels.Join(c.study.Factors).StorageClass; len(classes) > 0 {
		p.StorageClass = classes[0]
		if known.Check(p) != nil {
			return known.Defaults // the class is the one that is wrong
		}
	}
	return p
}
