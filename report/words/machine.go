package words

import (
	"fmt"
	"strings"

	"netdelta/result"
	"netdelta/unit"
)

// Machine says in a few words each where a run was made: its testbed, the cluster, processors, whether they are a virtual machine's,
// and the kernel. It leaves out what the record does not know.
func Machine(run result.Run) []string {
	e := run.Environment
	var all []string
	add := func(given bool, format string, a ...any) {
		if given {
			all = append(all, fmt.Sprintf(format, a...))
		}
	}
	add(run.Testbed != "", "%s", testbedWords(run.Testbed))
	if c := e.Cluster; c != nil {
		add(c.Version != "", "Kubernetes %s", c.Version)
		add(c.Network != "", "%s", c.Network)
		add(len(c.Nodes) > 0, "%s", unit.Counted(len(c.Nodes), "node"))
	}
	model := strings.Join(strings.Fields(strings.NewReplacer("(R)", "", "(TM)", "", "(tm)", "").Replace(e.CPU.Model)), " ")
	if model != "" {
		model = " (" + model + ")"
	}
	add(e.CPU.Count > 0, "%s%s", unit.Counted(e.CPU.Count, "processor"), model)
	add(e.Virtual != "", "virtual machine (%s)", e.Virtual)
	add(e.Kernel != "", "Linux %s", strings.TrimPrefix(e.Kernel, "Linux "))
	return all
}

// testbedWords is a kind of testbed with what it is made of, where its name alone does not say that.
func testbedWords(kind string) string {
	if kind == "lab" {
		return "lab (namespaces of one machine)"
	}
	return kind
}
