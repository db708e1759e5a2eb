// Package schedule writes the manifest of a CronJob that measures a cluster each night from inside and compares each night with the last.
// It prints what a user applies, and makes nothing by itself.
package schedule

import (
	"bytes"
	_ "embed" // manifest.yaml
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/robfig/cron/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"netdelta/testbed/kube"
	"netdelta/testbed/kube/oci"
	"netdelta/testbed/kube/survey"
)

// Where things are in the pod, and what must hold them.
const (
	// Folder is where run folders are kept.
	Folder = "/runs"
	// StudyFile is where the study is that came with the manifest.
	StudyFile = "/study/study.yaml"
	// MostStudy is how large a study may be, in bytes: what a ConfigMap holds.
	MostStudy = 512 << 10
)

// Options say what is measured when.
type Options struct {
	// Name is the name of all objects; names of jobs are made of it, so that it has at most 52 characters.
	Name string
	// Namespace is where they are, and where pods are measured.
	Namespace string
	// NewNamespace has the namespace itself in the manifest, with the level of Pod Security that the pods take.
	NewNamespace bool
	// Image holds netdelta at /netdelta: it measures, and its pods are measured.
	Image string
	// Schedule is when, in the five fields of cron, and Zone in which time zone ("" is the zone of the cluster's controllers).
	Schedule, Zone string
	// Study is a built-in one by name. Text is a study file in its place, nil for none.
	Study string
	Text  []byte
	// Margin is the change that counts as none, as netdelta compare takes it; "" is the runs' own.
	Margin string
	// Keep is how many runs stay in the folder.
	Keep int
	// Storage is how large the volume of run folders is, StorageClass what it is made of ("" is the cluster's usual).
	Storage, StorageClass string
	// Budget is how long a run may take, 0 for what the study says.
	Budget time.Duration
	// NodeAgent has runs look at the nodes' devices.
	NodeAgent bool
	// Trust has runs carry out what the study asks for beyond measuring.
	Trust bool
}

// mostName is the longest name of a CronJob: names of its jobs are eleven characters longer.
const mostName = 52

// Check says what is wrong with the options: all of it, and what to write instead.
func (o Options) Check() error {
	var all []error
	fault := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 || len(o.Name) > mostName {
		fault("name %q: at most %d small letters, digits and hyphens, which begin and end with a letter or digit", o.Name, mostName)
	}
	if o.Namespace == "" {
		fault("--namespace is missing: the namespace that all is in, and that pods are measured in")
	} else if problems := validation.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		fault("namespace %q: small letters, digits and hyphens, which begin and end with a letter or digit", o.Namespace)
	}
	if o.Image == "" {
		fault("--image is missing: one that the nodes can pull; netdelta image --push REF makes it")
	} else if strings.ContainsFunc(o.Image, func(r rune) bool { return r <= ' ' || r > '~' }) {
		fault("image %q: it has characters that no image's name has", o.Image)
	}
	if err := checkSchedule(o.Schedule); err != nil {
		all = append(all, err)
	}
	// Which zones there are, the cluster knows: this machine need not have a list of them.
	if o.Zone != "" && (o.Zone == "Local" || !regexp.MustCompile(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`).MatchString(o.Zone)) {
		fault("time zone %q: write a name such as Europe/Berlin or Etc/UTC", o.Zone)
	}
	if amount, err := resource.ParseQuantity(o.Storage); err != nil || amount.Sign() <= 0 {
		fault("storage %q: need an amount as Kubernetes writes it: 500Mi, 2Gi", o.Storage)
	}
	if problems := validation.IsDNS1123Subdomain(o.StorageClass); o.StorageClass != "" && len(problems) > 0 {
		fault("storage class %q is no name of one; kubectl get storageclass lists them", o.StorageClass)
	}
	if o.Keep < 2 {
		fault("%d runs to keep: need 2 at least, since each is compared with the one before", o.Keep)
	}
	if o.Budget < 0 {
		fault("a time budget of %v: need more than nothing", o.Budget)
	}
	if len(o.Text) > MostStudy {
		fault("the study has %d bytes: at most %d go into a manifest", len(o.Text), MostStudy)
	}
	return errors.Join(all...)
}

// checkSchedule refuses what a cluster's controllers would: they read the five fields of cron, and the words that stand for some.
func checkSchedule(text string) error {
	if strings.Contains(text, "TZ") {
		return fmt.Errorf("schedule %q: give the time zone by --time-zone", text)
	}
	if _, err := cron.ParseStandard(text); err != nil {
		return fmt.Errorf("schedule %q: %w; write minute, hour, day, month and weekday, such as \"0 2 * * *\" for each night at two, or @daily", text, err)
	}
	return nil
}

// arguments of netdelta in the pod.
func (o Options) arguments() []string {
	what := o.Study
	if o.Text != nil {
		what = StudyFile
	}
	all := []string{"kube", "nightly", what, "--runs", Folder, "--keep", fmt.Sprint(o.Keep)}
	if o.Margin != "" {
		all = append(all, "--margin", o.Margin)
	}
	run := []string{"--", "--namespace", o.Namespace, "--image", o.Image}
	if o.Budget > 0 {
		run = append(run, "--time-budget", o.Budget.String())
	}
	if o.NodeAgent {
		run = append(run, "--node-agent")
	}
	if o.Trust {
		run = append(run, "--trust")
	}
	return slices.Concat(all, run)
}

// How long a job may take: without a time budget, and beside one.
const (
	withoutBudget = 6 * time.Hour
	besideBudget  = time.Hour
)

// manifest is a template of what Write prints. Its pod holds the figures of a run and is otherwise idle while something is measured. Its labels
// differ from those of a run's objects, which cleanup removes.
//
//go:embed manifest.yaml
var manifest string

// Write prints the manifest: the namespace where it is new, an account, the rights that a run takes, a volume for run folders, the study where it came from a file, and
// the CronJob. The options must have passed Check.
func Write(w io.Writer, o Options) error {
	var granted bytes.Buffer
	if err := kube.WriteManifest(&granted, rights(o)...); err != nil {
		return err
	}
	written := func(text string) (string, error) {
		out, err := yaml.Marshal(text)
		if bytes.Count(out, []byte("\n")) > 1 { // JSON is YAML, too, and can stand anywhere
			out, err = json.Marshal(text)
		}
		return strings.TrimSuffix(string(out), "\n"), err
	}
	storage := resource.MustParse(o.Storage)
	words := struct {
		Options
		Rights, Data, Storage, Program string
		Arguments                      []string
		User                           int
		Deadline                       int64 // seconds
	}{
		Options: o, Rights: granted.String(), Storage: storage.String(), Program: oci.Entrypoint, Arguments: o.arguments(),
		User: oci.User, Deadline: int64(withoutBudget.Seconds()),
	}
	if o.Budget > 0 {
		words.Deadline = int64((o.Budget + besideBudget).Seconds())
	}
	if o.Text != nil {
		data, err := yaml.Marshal(map[string]any{"data": map[string]string{path.Base(StudyFile): string(o.Text)}})
		if err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
		words.Data = string(data)
	}
	t := template.Must(template.New("manifest").Funcs(template.FuncMap{"yaml": written}).Parse(manifest))
	return t.Execute(w, words)
}

// rights are the roles that a run takes and their bindings to the account: in the namespace, and for what belongs to none. Names of the
// latter hold the namespace, so that schedules in several don't take one another's.
func rights(o Options) []runtime.Object {
	needs := slices.DeleteFunc(survey.Needs(o.Namespace), func(n survey.Need) bool {
		return n.For == survey.ForDoctor || n.For == survey.ForFleets
	})
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: o.Name, Namespace: o.Namespace}
	labels := map[string]string{"app.kubernetes.io/name": "netdelta", "app.kubernetes.io/instance": o.Name, "app.kubernetes.io/component": "schedule"}
	here := metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, Labels: labels}
	of := metav1.ObjectMeta{Name: o.Namespace + "-" + o.Name, Labels: labels}
	return append(
		survey.Grant(here, here.Name, account, survey.Rules(needs, o.Namespace)),
		survey.Grant(of, of.Name, account, survey.Rules(needs, ""))...)
}
