// Package schedule writes the manifest of a CronJob that measures a cluster each night from inside and compares each night with the last.
// It prints what a user applies, and makes nothing by itself.
package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
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
