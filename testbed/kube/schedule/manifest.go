package schedule

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"netdelta/testbed/kube"
	"netdelta/testbed/kube/oci"
	"netdelta/testbed/kube/survey"
)

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
