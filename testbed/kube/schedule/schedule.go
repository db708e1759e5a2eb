// Package schedule writes the manifest of a CronJob that measures a cluster each night from inside and compares each night with the last.
// It prints what a user applies, and makes nothing by itself.
package schedule

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

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

// Limits of the pod that measures. It holds the figures of a run and is otherwise idle while something is measured.
const (
	podCPU         = "100m"
	podMemory      = "256Mi"
	podMostMemory  = "1Gi"
	withoutBudget  = 6 * time.Hour
	besideBudget   = time.Hour
	goodJobsKept   = 3
	failedJobsKept = 7
)

// Write prints the manifest: an account, the rights that a run takes, a volume for run folders, the study where it came from a file, and
// the CronJob. The options must have passed Check.
func Write(w io.Writer, o Options) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# netdelta measures this cluster by the schedule below, and compares each run with the last: a job that fails has found a\n"+
		"# regression (its log says which), or could not measure.\n")
	if o.NodeAgent {
		fmt.Fprintf(out, "#\n# Node agents take a namespace that admits pods in their node's network, with NET_ADMIN and NET_RAW:\n"+
			"#   kubectl label namespace %s pod-security.kubernetes.io/enforce=privileged --overwrite\n"+
			"# Whoever may make pods in it may then make such pods: let it be one of its own.\n", o.Namespace)
	}
	objects := append([]runtime.Object{account(o)}, rights(o)...)
	objects = append(objects, volume(o))
	if o.Text != nil {
		objects = append(objects, study(o))
	}
	return errors.Join(kube.WriteManifest(out, append(objects, CronJob(o))...), out.Flush())
}

// labels find what belongs to the schedule. They differ from the labels of a run's objects, which cleanup removes.
func labels(o Options) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "netdelta", "app.kubernetes.io/instance": o.Name, "app.kubernetes.io/component": "schedule"}
}

func head(o Options) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, Labels: labels(o)}
}

func account(o Options) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: head(o)}
}

// volume keeps the runs: the next night is compared with them.
func volume(o Options) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: head(o),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(o.Storage)}},
		},
	}
	if o.StorageClass != "" {
		claim.Spec.StorageClassName = &o.StorageClass
	}
	return claim
}

func study(o Options) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: head(o), Data: map[string]string{path.Base(StudyFile): string(o.Text)},
	}
}

// CronJob is the schedule itself: one job at a time, none of which is tried again, since a regression does not go away by that. Its pod
// meets Pod Security "restricted".
func CronJob(o Options) *batchv1.CronJob {
	deadline := int64(withoutBudget.Seconds())
	if o.Budget > 0 {
		deadline = int64((o.Budget + besideBudget).Seconds())
	}
	job := &batchv1.CronJob{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"}, ObjectMeta: head(o),
		Spec: batchv1.CronJobSpec{
			Schedule: o.Schedule, ConcurrencyPolicy: batchv1.ForbidConcurrent,
			SuccessfulJobsHistoryLimit: new(int32(goodJobsKept)), FailedJobsHistoryLimit: new(int32(failedJobsKept)),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(o)},
				Spec: batchv1.JobSpec{
					BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: &deadline,
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(o)}, Spec: pod(o)},
				},
			},
		},
	}
	if o.Zone != "" {
		job.Spec.TimeZone = &o.Zone
	}
	return job
}

// pod is what measures and compares.
func pod(o Options) corev1.PodSpec {
	user := int64(oci.User)
	spec := corev1.PodSpec{
		ServiceAccountName: o.Name, RestartPolicy: corev1.RestartPolicyNever, EnableServiceLinks: new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
			FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "netdelta", Image: o.Image, Command: []string{oci.Entrypoint}, Args: o.arguments(), WorkingDir: Folder,
			// What a run has to remember beyond its end is kept on the volume of the runs.
			Env: []corev1.EnvVar{{Name: "HOME", Value: Folder}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(podCPU), corev1.ResourceMemory: resource.MustParse(podMemory)},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(podMostMemory)},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			VolumeMounts:             []corev1.VolumeMount{{Name: "runs", MountPath: Folder}, {Name: "scratch", MountPath: "/tmp"}},
		}},
		Volumes: []corev1.Volume{
			{Name: "runs", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: o.Name}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
	if o.Text != nil {
		c := &spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "study", MountPath: path.Dir(StudyFile), ReadOnly: true})
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "study", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: o.Name}},
		}})
	}
	return spec
}

// rights are the roles that a run takes and their bindings to the account: in the namespace, and for what belongs to none. Names of the
// latter hold the namespace, so that schedules in several don't take one another's.
func rights(o Options) []runtime.Object {
	needs := slices.DeleteFunc(survey.Needs(o.Namespace), func(n survey.Need) bool {
		return n.For == survey.ForDoctor || n.For == survey.ForFleets
	})
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: o.Name, Namespace: o.Namespace}
	of := metav1.ObjectMeta{Name: o.Namespace + "-" + o.Name, Labels: labels(o)}
	return append(
		survey.Grant(head(o), head(o).Name, account, survey.Rules(needs, o.Namespace)),
		survey.Grant(of, of.Name, account, survey.Rules(needs, ""))...)
}
