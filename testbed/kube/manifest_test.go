package kube

import (
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"netdelta/internal/golden"
	"netdelta/result"
)

// testRun is the run of objects in golden files.
const testRun = RunID("0a1b2c3d")

// launcherWith is a launcher for namespace "measured" that speaks to no cluster.
func launcherWith(t *testing.T, o Options) *Launcher {
	t.Helper()
	o.Run = testRun
	if o.Image == "" && o.BaseImage == "" {
		o.Image = "registry.example/netdelta:1"
	}
	l := &Launcher{cluster: &Cluster{Name: "test", Namespace: "measured"}, options: o}
	var err error
	if o.BaseImage != "" {
		o.BaseImage, o.Image = "", "x" // whether this test can be streamed does not matter here
		base := l.options.BaseImage
		if l.options, err = o.complete(); err != nil {
			t.Fatal(err)
		}
		l.options.BaseImage, l.options.Image = base, ""
		return l
	}
	if l.options, err = o.complete(); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestManifests(t *testing.T) {
	server := Wish{Name: "t0-p1", Role: RoleServer, Labels: map[string]string{LabelTestbed: "0", LabelPod: "1"}, Node: "w1"}
	host := server
	host.HostNetwork, host.Annotations = true, map[string]string{annotationPorts: "21000-21040"}
	card := server
	card.Annotations, card.Resources = map[string]string{annotationNetworks: "fast/sriov"}, map[string]int64{"example.com/vf": 1}
	looks := Wish{Name: "look-1", Role: RoleNodeAgent, HostNetwork: true, Node: "w1", Security: NodeAgentSecurity()}
	first, last := uint16(20000), uint16(20001)
	selector := map[string]string{LabelRun: string(testRun), LabelTestbed: "0", LabelPod: "1"}
	service := func(network string, family result.Family) any {
		return serviceManifest("measured", testRun.Name("t0-p1-"+network), network, family, testRun, selector, first, last)
	}
	for name, manifest := range map[string]any{
		"pod-streamed":      launcherWith(t, Options{BaseImage: "busybox:1"}).Manifest(server),
		"pod-image":         launcherWith(t, Options{}).Manifest(server),
		"pod-host":          launcherWith(t, Options{}).Manifest(host),
		"pod-guaranteed":    launcherWith(t, Options{QoS: Guaranteed, CPU: "2"}).Manifest(server),
		"pod-best-effort":   launcherWith(t, Options{QoS: BestEffort}).Manifest(server),
		"pod-limited":       launcherWith(t, Options{Memory: "64Mi"}).Manifest(server),
		"pod-multus":        launcherWith(t, Options{}).Manifest(card),
		"pod-node-agent":    launcherWith(t, Options{BaseImage: "busybox:1"}).Manifest(looks),
		"service-clusterip": service(ClusterIP, result.IPv4),
		"service-nodeport":  service(NodePort, result.IPv6),
		"service-headless":  service(Headless, result.IPv4),
	} {
		t.Run(name, func(t *testing.T) {
			goldenYAML(t, name, manifest)
		})
	}
}

// goldenYAML holds an object against the file of its name below testdata.
func goldenYAML(t *testing.T, name string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", name+".yaml"), string(got))
}
