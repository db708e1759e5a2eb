package html

import (
	"bytes"
	"strings"
	"testing"

	"netdelta/result"
)

// A run over bonds shows what each of their links carried; a run without them says nothing of links.
func TestLinksAreShown(t *testing.T) {
	run := result.Run{Study: "bonding", Cells: []result.Cell{{ID: "host", Network: "host", Placement: result.CrossNode, Role: result.RoleBaseline}}}
	page := func() string {
		var b bytes.Buffer
		if err := Write(&b, run, nil); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const title = "How bonds used their links"
	if strings.Contains(page(), title) {
		t.Error("a run without bonds speaks of links")
	}
	run.Links = []result.LinkShare{
		{Cell: "host", Network: "host", Setting: result.Setting{Workload: "tcp-stream"}, Bond: "node0/eth0", Device: "node0/eth0p0", Share: 0.97, Used: 0.99},
		{Cell: "host", Network: "host", Setting: result.Setting{Workload: "tcp-stream"}, Bond: "node0/eth0", Device: "node0/eth0p1", Share: 0.03, Used: 0.031},
	}
	for _, want := range []string{title, "node0/eth0", "97% 3%", "99% 3%"} {
		if !strings.Contains(page(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
