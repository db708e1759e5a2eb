package cli_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/unit"
)

// TestStorageClassNeedsACluster: no other testbed has such volumes, and what can't be a class is said before anything is asked.
func TestStorageClassNeedsACluster(t *testing.T) {
	dir := t.TempDir()
	finish(t, command(t, dir, "run", "--storage-class", "fast")).want(t, statusUsage).says(t, "--storage-class goes with --testbed kubernetes")
	finish(t, command(t, dir, "run", "--testbed", "kubernetes", "--storage-class", "Fast")).want(t, statusUsage).says(t, "--storage-class", "not the name of a StorageClass")
	finish(t, command(t, dir, "run", "--testbed", "kubernetes", "--storage-class", "fast", "--workloads", "tcp-rr")).want(t, statusUsage).says(t, "storage_class is no parameter")
	finish(t, command(t, dir, "run", "--testbed", "kubernetes", "--storage-class", "fast", "--factor", "store=nbd")).want(t, statusUsage).says(t, "store changes nothing")
	finish(t, command(t, dir, "run", "--testbed", "kubernetes", "--storage-class", "fast", "--factor", "file=1MiB")).want(t, statusUsage).says(t, "file 1048576 bytes is out of range")
	finish(t, command(t, dir, "run", "--testbed", "kubernetes", "--workloads", "block", "--factor", "file=1GiB")).want(t, statusUsage).says(t, "file is no parameter of this workload")
	write(t, filepath.Join(dir, "volumes.yaml"), "study: volumes\nbaseline: host\nnetworks: [host, bridge]\nplacement: [same-node]\nworkloads:\n  - block: {storage_class: [fast, slow], file: 1GiB}\n")
	finish(t, command(t, dir, "run", "volumes.yaml")).want(t, statusNothing).says(t, "storage class fast is unsupported on testbed lab")
}

// folders is where volumes are on the nodes of the cluster for tests: on the machine's disk.
const folders = "/var/lib/kubelet"

// onNode runs a shell in a pod that sees the folders of a node, "" for any, and says which node it was.
func onNode(t *testing.T, c *kube.Cluster, node, script string) string {
	t.Helper()
	root, grace := int64(0), int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "folders-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "folders", Image: imageOfCluster, ImagePullPolicy: corev1.PullNever, Command: []string{"sh", "-ec", script},
				SecurityContext: &corev1.SecurityContext{RunAsUser: &root}, VolumeMounts: []corev1.VolumeMount{{Name: "node", MountPath: "/node"}},
			}},
			Volumes: []corev1.Volume{{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folders}}}},
		},
	}
	if node != "" {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	pods := c.API.Pods(c.Namespace)
	made, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for ; err == nil && made.Status.Phase != corev1.PodSucceeded && made.Status.Phase != corev1.PodFailed; time.Sleep(200 * time.Millisecond) {
		made, err = pods.Get(ctx, made.Name, metav1.GetOptions{})
	}
	if err != nil || made.Status.Phase != corev1.PodSucceeded {
		t.Fatalf("%s on a node: %v, %+v", script, err, made.Status)
	}
	return made.Spec.NodeName
}

// withVolumes makes so many volumes of each of several storage classes, all on one node, "" for any, and says which. It makes the classes, too, unless
// they are there.
func withVolumes(t *testing.T, c *kube.Cluster, node string, count int, classes ...string) string {
	t.Helper()
	var made []string
	for _, class := range classes {
		for i := range count {
			made = append(made, fmt.Sprintf("%s-%d", class, i))
		}
	}
	place := func(v string) string { return "/node/netdelta-test/" + c.Namespace + "/" + v }
	script := ""
	for _, v := range made {
		script += "mkdir -p " + place(v) + "\n"
	}
	node = onNode(t, c, node, script)
	t.Cleanup(func() { onNode(t, c, node, "rm -rf "+place("")+"; rmdir /node/netdelta-test || true") })
	late, retain := storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimRetain
	for _, class := range classes {
		if _, err := c.API.StorageClasses.Get(t.Context(), class, metav1.GetOptions{}); err == nil {
			continue
		}
		ofTest(t, func(ctx context.Context) error {
			_, err := c.API.StorageClasses.Create(ctx, &storagev1.StorageClass{
				ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &late, ReclaimPolicy: &retain,
			}, metav1.CreateOptions{})
			return err
		}, func(ctx context.Context) error {
			return c.API.StorageClasses.Delete(ctx, class, metav1.DeleteOptions{})
		})
	}
	for _, v := range made {
		class := v[:strings.LastIndexByte(v, '-')]
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: v + "-" + node},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName: class, PersistentVolumeReclaimPolicy: retain,
				PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: strings.Replace(place(v), "/node", folders, 1)}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
				}}}},
			},
		}
		ofTest(t, func(ctx context.Context) error {
			_, err := c.API.PersistentVolumes.Create(ctx, volume, metav1.CreateOptions{})
			return err
		}, func(ctx context.Context) error {
			return c.API.PersistentVolumes.Delete(ctx, volume.Name, metav1.DeleteOptions{})
		})
	}
	return node
}

// ofTest makes an object of the cluster's that the test's end removes.
func ofTest(t *testing.T, create, remove func(ctx context.Context) error) {
	t.Helper()
	if err := create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := remove(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestStorageClassOnCluster: fio in volumes of two storage classes, in the node's network and in the pods'. Their claims go with the
// run, also with one that can't have its volume.
func TestStorageClassOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := equipped(t, 2)
	fast, slow := c.Namespace+"-fast", c.Namespace+"-slow"
	// One to try, and one each for the baseline, its A/A control and the other network.
	node := withVolumes(t, c, "", 4, fast, slow)
	call := func(out string, more ...string) []string {
		return append(append([]string{"run", "--quiet", "--builds", "1", "--rounds", "1", "--out", out, "--nodes", node, "--factor", "file=16MiB"}, flags...), more...)
	}
	dir := t.TempDir()
	finish(t, longCommand(t, dir, call("run", "--storage-class", fast+","+slow)...)).want(t, statusDone).shows(t, "class "+fast, "class "+slow)
	run, err := result.Load(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	measuredVolumes(t, run, trials(t, filepath.Join(dir, "run")))
	if notes := strings.Join(run.Notes, "\n"); !strings.Contains(notes, "leaves from the node's network") || !strings.Contains(notes, "only node "+node+" can mount it") || !strings.Contains(notes, "Retain") {
		t.Errorf("the notes are %q", run.Notes)
	}
	if !slices.ContainsFunc(run.Effects, func(e result.Effect) bool { return e.Factor == "storage_class" && e.From == fast && e.To == slow }) {
		t.Errorf("there is no effect of the storage class: %+v", run.Effects)
	}
	without(t, c)
	// The volumes of one class are used up, and kept.
	cantBeHad(t, c, flags[len(flags)-1], node, slow)
	finish(t, longCommand(t, dir, call("unknown", "--storage-class", fast[:len(fast)-1])...)).want(t, statusFailed).says(t, `did you mean "`+fast+`"?`)
	without(t, c)
}

// TestClientsOfStorageClassOnCluster: clients on two nodes have a volume each, begin each burst together, and leave no claim.
func TestClientsOfStorageClassOnCluster(t *testing.T) {
	t.Parallel()
	c, flags := equipped(t, 2)
	class := c.Namespace + "-each"
	// On each of two nodes one to try, and one each for the baseline and its A/A control.
	one := withVolumes(t, c, "", 3, class)
	list, err := c.API.Nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other := list.Items[slices.IndexFunc(list.Items, func(n corev1.Node) bool { return n.Name != one && len(n.Spec.Taints) == 0 })].Name
	withVolumes(t, c, other, 3, class)
	dir := t.TempDir()
	finish(t, longCommand(t, dir, append([]string{
		// A burst of clients that began one after another does not count, as on a busy machine.
		"run", "--quiet", "--builds", "1", "--rounds", "8", "--out", "run", "--nodes", one + "," + other, "--networks", "pod", "--baseline", "pod",
		"--storage-class", class, "--factor", "file=16MiB", "--factor", "client_pods=2",
	}, flags...)...)).want(t, statusDone).shows(t, "2 client pods")
	all := trials(t, filepath.Join(dir, "run"))
	for _, tr := range all {
		if tr.Failed != "" || tr.Errors > 0 || tr.Transactions == 0 {
			t.Errorf("%s: %d transactions, %d errors, %s", tr.ID(), tr.Transactions, tr.Errors, tr.Failed)
		}
		if len(tr.Clients) != 2 || tr.Clients[0].Node != one || tr.Clients[1].Node != other || min(tr.Clients[0].Rate, tr.Clients[1].Rate) <= 0 {
			t.Errorf("%s: its clients did %+v", tr.ID(), tr.Clients)
		}
	}
	if len(all) != 2 {
		t.Errorf("there are %d trials, want the baseline's and its A/A control's", len(all))
	}
	without(t, c)
}

// cantBeHad makes a pod with a volume of a class that has none left.
func cantBeHad(t *testing.T, c *kube.Cluster, image, node, class string) {
	t.Helper()
	driver, err := kube.NewDriver(c, kube.Options{Image: image, Nodes: []string{node}, Within: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	tb, err := driver.Open(t.Context(), testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: kube.Pod, Volume: testbed.Volume{Class: class, Size: unit.MiB}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = tb.Pods()[0].Start(t.Context(), testbed.Command{Path: "/bin/true"})
	if err == nil || !strings.Contains(err.Error(), "is still pending") || !strings.Contains(err.Error(), "persistent volumes to bind") {
		t.Errorf("a volume that can't be had: %v", err)
	}
	if err := errors.Join(tb.Close(), driver.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// measuredVolumes checks that all cells of a run with volumes were measured, and that none is said to be misrouted.
func measuredVolumes(t *testing.T, run result.Run, all []result.Trial) {
	t.Helper()
	if len(run.Cells) != 6 { // two networks and an A/A control, two classes
		t.Errorf("there are %d cells", len(run.Cells))
	}
	seen := map[string]int64{}
	for _, tr := range all {
		if tr.Failed != "" || tr.Errors > 0 || tr.Path != nil {
			t.Errorf("%s: %d errors, %s, path %+v", tr.ID(), tr.Errors, tr.Failed, tr.Path)
		}
		seen[tr.Cell] += tr.Transactions
	}
	for _, cell := range run.Cells {
		if cell.Unsupported != "" || cell.Placement != result.SameNode || seen[cell.ID] == 0 {
			t.Errorf("%s: %d operations (%s)", cell.ID, seen[cell.ID], cell.Unsupported)
		}
	}
	for _, p := range run.Paths {
		if p.Proved != 0 || len(p.Weak) != 1 || !strings.Contains(p.Weak[0], "so pods have no server") {
			t.Errorf("the path is %+v", p)
		}
	}
}

// without checks that no claim is left.
func without(t *testing.T, c *kube.Cluster) {
	t.Helper()
	left, err := c.API.PersistentVolumeClaims(c.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d volume claims are left: %v", len(left.Items), err)
	}
}
