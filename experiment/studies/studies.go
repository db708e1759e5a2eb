// Package studies holds the built-in studies: study files that ship inside the program.
package studies

import (
	_ "embed"

	"netdelta/internal/gather"
)

//go:embed latency.yaml
var latency string

//go:embed streams.yaml
var streams string

//go:embed search.yaml
var search string

//go:embed bonding.yaml
var bonding string

//go:embed storage.yaml
var storage string

//go:embed database.yaml
var database string

//go:embed throughput.yaml
var throughput string

//go:embed kubernetes.yaml
var kubernetes string

// Default is the name of the study that runs when none is named, and Cluster of the one that does on a Kubernetes cluster.
const (
	Default = "latency"
	Cluster = "kubernetes"
)

// File is a built-in study as a file.
type File struct {
	Name string // what the user types, and the name in the study
	Data []byte
}

// All returns the built-in studies, the default first.
func All() []File {
	return []File{
		{Name: Default, Data: []byte(latency)},
		{Name: "streams", Data: []byte(streams)},
		{Name: "search", Data: []byte(search)},
		{Name: "bonding", Data: []byte(bonding)},
		{Name: "storage", Data: []byte(storage)},
		{Name: "database", Data: []byte(database)},
		{Name: "throughput", Data: []byte(throughput)},
		{Name: "kubernetes", Data: []byte(kubernetes)},
	}
}

// Names are the names of the built-in studies.
func Names() []string { return gather.Each(All(), func(f File) string { return f.Name }) }

// Find returns the built-in study of this name.
func Find(name string) (File, bool) {
	return gather.First(All(), func(f File) bool { return f.Name == name })
}

// Path is the place that messages about a built-in study name.
func (f File) Path() string { return "builtin:" + f.Name + ".yaml" }
