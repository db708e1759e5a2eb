package words

import (
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/network"
	"netdelta/result"
)

// TestCalicoRecipes: commands that Calico takes, and by which pods of different nodes go on reaching each other. A pool that never
// encapsulates takes the routes between nodes with it, and FelixConfiguration has no field mtu: both were tried on a cluster.
func TestCalicoRecipes(t *testing.T) {
	r := moveRecipe(network.Move{
		From: network.Product{Name: "calico-vxlan", System: "Calico", Network: "vxlan-routed"},
		To:   network.Product{Name: "calico-native", System: "Calico", Network: "routed"},
	})
	for _, c := range []struct {
		commands []string
		want     string
	}{
		{r.how, `"vxlanMode":"CrossSubnet"`},
		{r.how, `"value":"VXLANCrossSubnet"`},
		{r.undo, `"vxlanMode":"Always"`},
		{recipeOf(insight.Change{Factor: "mtu", From: "1500", To: "9000"}, result.Run{}).how, `"veth_mtu":"0"`},
	} {
		if all := strings.Join(c.commands, "\n"); !strings.Contains(all, c.want) {
			t.Errorf("the commands are\n%s\nwant %s", all, c.want)
		}
	}
}
