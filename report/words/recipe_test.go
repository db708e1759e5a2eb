package words

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/internal/require"
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

// Commands for a machine of its own, and those that undo them, do what they say: they are run in a network namespace in which eth0 is a
// veth and bond0 a bond.
func TestRecipesRunInANamespace(t *testing.T) {
	require.Namespaces(t)
	inNamespace := func(script ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "sh", "-ec", strings.Join(script, "\n")).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	for _, c := range []struct{ factor, from, to, before, shows string }{
		{"mtu", "1500", "9000", "ip link add eth0 type veth peer name peer", "cat /sys/class/net/eth0/mtu"},
		{"bond", "2xbalance-rr", "2xbalance-xor,layer3+4", "ip link add bond0 type bond mode balance-rr", "cat /sys/class/net/bond0/bonding/mode"},
	} {
		t.Run(c.factor, func(t *testing.T) {
			_, err := inNamespace(c.before)
			require.Need(t, "the links of "+c.before, err == nil)
			r := recipeOf(insight.Change{Factor: c.factor, From: c.from, To: c.to}, result.Run{})
			script := []string{"mount -t sysfs sysfs /sys", c.before}
			for _, half := range [][]string{r.how, r.undo} {
				for _, command := range half {
					if name, _, _ := strings.Cut(command, " "); name != "kubectl" && name != "helm" { // these take a cluster
						script = append(script, command)
					}
				}
				script = append(script, c.shows)
			}
			out, err := inNamespace(script...)
			lines := strings.Split(out, "\n")
			if err != nil || len(lines) < 2 || lines[len(lines)-1] == lines[len(lines)-2] {
				t.Errorf("from %s to %s and back: %v\n%s", c.from, c.to, err, out)
			}
		})
	}
}

// A word in capitals in a command is the reader's to fill in: a line before says what it is. What a change of Docker's networks leaves
// behind is removed when it is undone, and nothing is created under a name that is taken.
func TestRecipesSayWhatToFillIn(t *testing.T) {
	placeholder := regexp.MustCompile(`\b[A-Z]{3,}(-[A-Z]+)+\b`)
	for name, commands := range book().Configurations {
		said := ""
		for _, command := range commands {
			for _, word := range placeholder.FindAllString(command, -1) {
				if !strings.HasPrefix(command, "#") && !strings.Contains(said, word+":") {
					t.Errorf("%s: %s is not explained before %q", name, word, command)
				}
			}
			said += command
		}
	}
	for _, m := range network.Moves() {
		if m.From.System != "Docker" {
			continue
		}
		r := moveRecipe(m)
		made := regexp.MustCompile(`docker network create .* ([a-z-]+)$`)
		for _, command := range r.how {
			if found := made.FindStringSubmatch(command); found != nil && !slices.ContainsFunc(r.undo, func(u string) bool { return strings.HasPrefix(u, "docker network rm "+found[1]) }) {
				t.Errorf("%s to %s: %s is made and not removed by %q", m.From.Name, m.To.Name, found[1], r.undo)
			}
		}
	}
}
