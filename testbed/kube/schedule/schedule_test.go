package schedule

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"netdelta/internal/golden"
)

// usual are options that nothing is wrong with.
func usual() Options {
	return Options{
		Name: "netdelta", Namespace: "measuring", Image: "registry.example.org/netdelta:1", Schedule: "0 2 * * *", Study: "latency", Keep: 30, Storage: "2Gi",
	}
}

// deployed are the options of deploy/kubernetes/nightly.yaml.
func deployed() Options {
	o := usual()
	o.Namespace, o.NewNamespace, o.Image = "netdelta", true, "registry.example.org/netdelta:VERSION"
	return o
}

// rich are options with all that can be asked for.
func rich() Options {
	o := usual()
	o.Name, o.Zone, o.Text, o.Margin, o.Keep, o.StorageClass = "weekly", "Europe/Berlin", []byte("study: mine\n"), "5%", 8, "fast"
	o.Schedule, o.Budget, o.NodeAgent, o.NewNamespace = "30 3 * * 1-5", 20*time.Minute, true, true
	return o
}

func written(t *testing.T, o Options) string {
	t.Helper()
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Write(&out, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// objects reads a manifest as kubectl does.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var fields map[string]any
		if err := d.Decode(&fields); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(fields) > 0 {
			all = append(all, &unstructured.Unstructured{Object: fields})
		}
	}
}

func TestGolden(t *testing.T) {
	for path, o := range map[string]Options{"testdata/usual.yaml": usual(), "testdata/rich.yaml": rich(), "../../../deploy/kubernetes/nightly.yaml": deployed()} {
		golden.Check(t, filepath.FromSlash(path), written(t, o))
	}
}

// All that a job needs is in the manifest, and in one namespace.
func TestObjects(t *testing.T) {
	for _, o := range []Options{usual(), rich(), deployed()} {
		found := map[string]int{}
		for _, object := range objects(t, written(t, o)) {
			found[object.GetKind()]++
			if ns := object.GetNamespace(); ns != "" && ns != o.Namespace {
				t.Errorf("%s %s is in %s", object.GetKind(), object.GetName(), ns)
			}
			if strings.Contains(object.GetLabels()["app.kubernetes.io/managed-by"], "netdelta") {
				t.Errorf("%s %s looks like what a run made: cleanup would remove it", object.GetKind(), object.GetName())
			}
		}
		for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding", "PersistentVolumeClaim", "CronJob"} {
			if found[kind] == 0 {
				t.Errorf("there is no %s", kind)
			}
		}
		if (found["Namespace"] == 1) != o.NewNamespace {
			t.Errorf("%d namespaces are part of the manifest", found["Namespace"])
		}
		if (found["ConfigMap"] == 1) != (o.Text != nil) {
			t.Errorf("%d studies are part of the manifest", found["ConfigMap"])
		}
	}
}

// cronJob is the one of a manifest.
func cronJob(t *testing.T, o Options) (job batchv1.CronJob) {
	t.Helper()
	all := objects(t, written(t, o))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all[len(all)-1].Object, &job); err != nil {
		t.Fatal(err)
	}
	return job
}

// The account that is bound is the one that the pod has, and the volume the one that it mounts.
func TestNamesMeet(t *testing.T) {
	o := rich()
	subjects := 0
	for _, object := range objects(t, written(t, o)) {
		switch object.GetKind() {
		case "RoleBinding", "ClusterRoleBinding":
			bound, _, err := unstructured.NestedSlice(object.Object, "subjects")
			if err != nil || len(bound) != 1 {
				t.Fatalf("%v: %v", bound, err)
			}
			who := bound[0].(map[string]any)
			if who["kind"] != "ServiceAccount" || who["namespace"] != o.Namespace || who["name"] != o.Name {
				t.Errorf("%s binds %v", object.GetKind(), who)
			}
			subjects++
		}
	}
	spec := cronJob(t, o).Spec.JobTemplate.Spec.Template.Spec
	if subjects == 0 || spec.ServiceAccountName != o.Name || spec.Volumes[0].PersistentVolumeClaim.ClaimName != o.Name {
		t.Errorf("%d bindings; the pod is %+v", subjects, spec)
	}
	want := []string{"kube", "nightly", StudyFile, "--runs", Folder, "--keep", "8", "--margin", "5%", "--", "--namespace", "measuring",
		"--image", "registry.example.org/netdelta:1", "--time-budget", "20m0s", "--node-agent"}
	if got := spec.Containers[0].Args; !slices.Equal(got, want) {
		t.Errorf("the pod runs %q", got)
	}
}

func TestCheck(t *testing.T) {
	for want, spoil := range map[string]func(o *Options){
		`name "Net": at most 52`:                      func(o *Options) { o.Name = "Net" },
		`at most 52 small letters`:                    func(o *Options) { o.Name = strings.Repeat("x", 53) },
		`--namespace is missing`:                      func(o *Options) { o.Namespace = "" },
		`--image is missing`:                          func(o *Options) { o.Image = "" },
		`image "a b"`:                                 func(o *Options) { o.Image = "a b" },
		`schedule "0 25 * * *": end of range`:         func(o *Options) { o.Schedule = "0 25 * * *" },
		`schedule "nightly": expected exactly 5`:      func(o *Options) { o.Schedule = "nightly" },
		`give the time zone by --time-zone`:           func(o *Options) { o.Schedule = "TZ=Etc/UTC 0 2 * * *" },
		`time zone "Local": write a name`:             func(o *Options) { o.Zone = "Local" },
		`time zone "a b"`:                             func(o *Options) { o.Zone = "a b" },
		`storage "2 GB": need an amount`:              func(o *Options) { o.Storage = "2 GB" },
		`storage "0"`:                                 func(o *Options) { o.Storage = "0" },
		`storage class "A" is no name`:                func(o *Options) { o.StorageClass = "A" },
		`1 runs to keep: need 2 at least`:             func(o *Options) { o.Keep = 1 },
		`a time budget of -1s: need more`:             func(o *Options) { o.Budget = -time.Second },
		`the study has 524289 bytes: at most 524288 `: func(o *Options) { o.Text = make([]byte, MostStudy+1) },
	} {
		o := usual()
		spoil(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
	for _, schedule := range []string{"@daily", "*/5 * * * *", "0 2 * * MON-FRI"} {
		o := usual()
		o.Schedule = schedule
		if err := o.Check(); err != nil {
			t.Error(err)
		}
	}
}

// Whatever is asked for, what passes the check is a manifest with the same number of objects, and its text stays text.
func FuzzWrite(f *testing.F) {
	f.Add("netdelta", "measuring", "REF:1", "0 2 * * *", "5%", "study: a\n")
	f.Add("a", "b", "x", "@daily", "---\nkind: Pod", "a: b\n---\nkind: Secret\n")
	f.Fuzz(func(t *testing.T, name, namespace, image, when, margin, text string) {
		o := deployed()
		o.Name, o.Namespace, o.Image, o.Schedule, o.Margin, o.Text = name, namespace, image, when, margin, []byte(text)
		if o.Check() != nil {
			return
		}
		plain := rich() // it has a study of its own, too
		all := objects(t, written(t, o))
		if want := objects(t, written(t, plain)); len(all) != len(want) {
			t.Fatalf("%q makes %d objects, want %d", []string{name, namespace, image, when, margin, text}, len(all), len(want))
		}
	})
}
