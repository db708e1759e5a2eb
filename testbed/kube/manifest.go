package kube

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"netdelta/internal/daemon"
	"netdelta/testbed/kube/inside"
	"netdelta/unit"
)

// Wish is a pod that is wanted.
type Wish struct {
	// Name is what follows "netdelta-RUN-" in the pod's name.
	Name string
	Role Role
	// Labels and Annotations are further ones.
	Labels, Annotations map[string]string
	// HostNetwork puts the pod into its node's own network namespace.
	HostNetwork bool
	// Node is the name of the node that it has to be on; "" leaves it to the scheduler.
	Node string
	// Security is the container's security context; nil is what Pod Security "restricted" asks for.
	Security *corev1.SecurityContext
	// Resources are further ones that a node hands out by number, by name.
	Resources map[string]int64
	// First and Last are the ports that its servers listen on, 0 for the usual ones.
	First, Last uint16
	// Claim is the name of the volume claim that it mounts, "" for none.
	Claim string
	// Memory is what its daemons keep in memory at most, 0 for none.
	Memory unit.Bytes
}

// Manifest is the pod of a wish: labelled, without rights of its own in the cluster, gone a second after it is told to, and up
// only as long as somebody uses it.
func (l *Launcher) Manifest(w Wish) *corev1.Pod {
	o := l.options
	security, user := w.Security, unprivileged
	if security == nil {
		security = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	if security.RunAsUser != nil {
		user = *security.RunAsUser
	}
	labels := o.Run.Labels(w.Role)
	maps.Copy(labels, w.Labels)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.Run.Name(w.Name), Namespace: l.cluster.Namespace, Labels: labels, Annotations: w.Annotations,
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(terminationGrace),
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			HostNetwork: w.HostNetwork, Affinity: onNodes(w.Node),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(user != 0), RunAsUser: &user, RunAsGroup: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: containerName, Image: o.Image, ImagePullPolicy: o.PullPolicy, Command: []string{programInImage, inside.Verb, inside.Wait},
				SecurityContext: security, Resources: l.resources(w),
				Env:          []corev1.EnvVar{{Name: daemon.FolderVariable, Value: folderOfHomes}},
				VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/tmp"}, {Name: "homes", MountPath: folderOfHomes}},
			}},
			Volumes: []corev1.Volume{
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				// What daemons keep is in memory, as in a lab: disks are not what is measured.
				{Name: "homes", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse(amount(w.Memory, defaultMemory)))}}},
			},
		},
	}
	o.apply(pod)
	if w.HostNetwork {
		pod.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	if w.Claim != "" {
		mountClaim(&pod.Spec, w.Claim)
	}
	if o.Image == "" {
		l.stream(&pod.Spec)
	}
	return pod
}

// stream changes a pod so that the program can be streamed into it.
func (l *Launcher) stream(spec *corev1.PodSpec) {
	c := &spec.Containers[0]
	c.Image, c.Command = l.options.BaseImage, []string{"sh", "-c", awaitProgram()}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "program", MountPath: folderOfStreamed})
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "program", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
}

// awaitProgram is the pod's first program until netdelta is there. As netdelta does then, it gives up when there was no process but
// itself for long: who brings the program is a process, too.
func awaitProgram() string {
	seconds := strconv.Itoa(int(inside.Lonely.Seconds()))
	return "i=0; until [ -x " + programStreamed + " ]; do set -- /proc/[0-9]*; [ $# -eq 1 ] || i=0; [ $i -lt " + seconds +
		" ] || exit 0; i=$((i+1)); sleep 1; done; exec " + programStreamed + " " + inside.Verb + " " + inside.Wait
}

// resources are what a pod asks for by its class of service.
func (l *Launcher) resources(w Wish) corev1.ResourceRequirements {
	o := l.options
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	switch o.QoS {
	case Guaranteed:
		cpu, memory := resource.MustParse(cmp.Or(o.CPU, defaultCPU)), resource.MustParse(cmp.Or(o.Memory, amount(w.Memory, defaultMemory)))
		limits[corev1.ResourceCPU], limits[corev1.ResourceMemory] = cpu, memory
		requests[corev1.ResourceCPU], requests[corev1.ResourceMemory] = cpu, memory
	case Burstable:
		requests[corev1.ResourceCPU], requests[corev1.ResourceMemory] = resource.MustParse(requestedCPU), resource.MustParse(amount(w.Memory, requestedMemory))
		if o.Memory != "" {
			limits[corev1.ResourceMemory] = resource.MustParse(o.Memory)
			requests[corev1.ResourceMemory] = resource.MustParse(o.Memory)
		}
	case BestEffort:
	}
	for name, count := range w.Resources {
		limits[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

// amount is how much memory a pod asks for whose daemons take so much: that, and what is usual for the rest.
func amount(daemons unit.Bytes, usual string) string {
	sum := resource.MustParse(usual)
	sum.Add(*resource.NewQuantity(int64(daemons), resource.BinarySI))
	return sum.String()
}

// onNodes has the scheduler put a pod on one of some nodes, so that it has a say in whether the pod fits there; on any where none is named.
func onNodes(names ...string) *corev1.Affinity {
	var terms []corev1.NodeSelectorTerm
	for _, name := range names {
		if name != "" {
			field := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}
			terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{field}})
		}
	}
	if len(terms) == 0 {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// WriteManifest prints objects as YAML without what only the API server fills in.
func WriteManifest(w io.Writer, objects ...runtime.Object) error {
	for _, object := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
		delete(fields, "status")
		dropTimes(fields)
		text, err := yaml.Marshal(fields)
		if err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
		if _, err = fmt.Fprintf(w, "%s---\n", text); err != nil {
			return err
		}
	}
	return nil
}

// dropTimes removes times of creation, which the types print though there are none.
func dropTimes(fields map[string]any) {
	for name, value := range fields {
		if inner, ok := value.(map[string]any); ok {
			dropTimes(inner)
		}
		if name == "creationTimestamp" && value == nil {
			delete(fields, name)
		}
	}
}
