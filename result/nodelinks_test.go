package result

import (
	"strings"
	"testing"
	"time"

	"netdelta/unit"
)

func TestNodeLinksThatDoNotRead(t *testing.T) {
	for text, says := range map[string]string{
		"client:25Gbit/s":               "does not begin with a node",
		"node0":                         "does not begin with a node",
		"node00:25Gbit/s":               "does not begin with a node",
		"node-1:25Gbit/s":               "does not begin with a node",
		"node0:":                        "the rate is not one of 1kbit/s to 1Tbit/s",
		"node0:2x":                      "the rate is not one of",
		"node0:3MB":                     "the rate is not one of",
		"node0:0x1Gbit/s":               "links is not one of 1 to 16",
		"node0:17x1Gbit/s":              "links is not one of 1 to 16",
		"node0:1Gbit/s@1h":              "the delay is not one of up to 10s",
		"node0:1Gbit/s@":                "the delay is not one of up to 10s",
		"node0:1Gbit/s+":                `"": it does not begin with a node`,
		"node0:1Gbit/s+node0:2x1Gbit/s": "node0 is there twice",
	} {
		if links, err := ParseNodeLinks(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is read as %v, error %v, want one that says %q", text, links, err, says)
		}
	}
}

// A node without a link of its own has the common one. What bounds a stream is the end that can do least, all its links together.
func TestLinkOfNode(t *testing.T) {
	c := Conditions{LinkRate: 100 * unit.Gbit, LinkDelay: time.Millisecond, NodeLinks: "node0:2x25Gbit/s+node2:200Gbit/s@3ms"}
	for node, want := range []NodeLink{
		{0, 2, 25 * unit.Gbit, time.Millisecond}, {1, 1, 100 * unit.Gbit, time.Millisecond}, {2, 1, 200 * unit.Gbit, 3 * time.Millisecond},
	} {
		if got := c.LinkOf(node); got != want {
			t.Errorf("node%d is joined by %s, want %s", node, got, want)
		}
	}
	for _, k := range []struct {
		Conditions
		want string
	}{
		{c, "node0:2x25Gbit/s"}, {Conditions{LinkRate: unit.Gbit, NodeLinks: "node1:2x25Gbit/s"}, "node0:1Gbit/s"},
		{Conditions{NodeLinks: "node1:2x25Gbit/s"}, "node1:2x25Gbit/s"}, {Conditions{LinkCount: 2}, "node0:2x"},
	} {
		if got := k.SlowestLink().String(); got != k.want {
			t.Errorf("the slowest link of %+v is %s, want %s", k.Conditions, got, k.want)
		}
	}
}
