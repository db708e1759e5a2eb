package testbed

// Versioner is a testbed that uses programs of the machine to build its networks, whose versions change what is measured.
type Versioner interface {
	// Versions asks the programs for theirs, by the programs' names.
	Versions() (map[string]string, error)
}
