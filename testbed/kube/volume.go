package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/gather"
	"netdelta/testbed"
	"netdelta/unit"
)

const (
	// claimWithin is how long a claim may wait for its volume once a warning says that it can't be had, and claimVolume the volume's name
	// in its pod.
	claimWithin = 45 * time.Second
	claimVolume = "claim"
	// claimStep is what claims ask for in whole numbers, as most storage gives it, and claimRoom what a file system needs for itself.
	claimStep = unit.GiB
	claimRoom = 512 * unit.MiB
	// unboundYet is the scheduler's word for a pod whose claims have no volume yet, which may be about to be made.
	unboundYet = "unbound immediate PersistentVolumeClaims"
	// noProvisioner is the provisioner of classes whose volumes somebody has made before.
	noProvisioner = "kubernetes.io/no-provisioner"
	// claimProtection is the finalizer by which a claim stays until no pod uses it.
	claimProtection = "kubernetes.io/pvc-protection"
)

// claim is the volume of one of a testbed's pods.
type claim struct {
	pod *pod

	mu   sync.Mutex
	made bool
	told bool // its volume was noted
}

// newClaim is the claim that the spec of a pod's testbed asks for, nil for none.
func newClaim(p *pod) *claim {
	if p.bed.spec.Volume.Class == "" {
		return nil
	}
	return &claim{pod: p}
}

// name of the claim in the cluster, "" without a claim.
func (c *claim) name() string {
	if c == nil {
		return ""
	}
	return c.pod.bed.driver.Run().Name(c.pod.name() + "-volume")
}

// manifest is the claim.
func (c *claim) manifest() *corev1.PersistentVolumeClaim {
	return claimManifest(c.pod.bed.driver.cluster.Namespace, c.name(), c.pod.bed.driver.Run(), c.pod.bed.spec.Volume)
}

// claimManifest is a claim for a volume that one node mounts.
func claimManifest(namespace, name string, run RunID, v testbed.Volume) *corev1.PersistentVolumeClaim {
	whole := (v.Size + claimRoom + claimStep - 1) / claimStep * claimStep
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: run.Labels(RoleVolume)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &v.Class, VolumeMode: new(corev1.PersistentVolumeFilesystem),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: *resource.NewQuantity(int64(whole), resource.BinarySI),
			}},
		},
	}
}

// ensure makes the claim unless it is there. Its volume may be made only when the pod has a node.
func (c *claim) ensure(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made {
		return nil
	}
	cluster, manifest := c.pod.bed.driver.cluster, c.manifest()
	claims := cluster.API.PersistentVolumeClaims(cluster.Namespace)
	c.made = true
	_, err := create(ctx, claims, "volume claim", manifest)
	return err
}

// remove takes the claim out of the cluster, once its pod is gone, and waits until it is. It is idempotent.
func (c *claim) remove() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.made {
		return nil
	}
	cluster := c.pod.bed.driver.cluster
	claims := cluster.API.PersistentVolumeClaims(cluster.Namespace)
	return removeAndWait(claims, "volume claim", "pvc", cluster.Namespace, c.name(), func(*corev1.PersistentVolumeClaim) string { return "" })
}

// tell notes once which volume the claim got: what readers can't know from the class.
func (c *claim) tell(ctx context.Context) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told {
		return
	}
	c.told = true
	cluster := c.pod.bed.driver.cluster
	bound, err := cluster.API.PersistentVolumeClaims(cluster.Namespace).Get(ctx, c.name(), metav1.GetOptions{})
	if err != nil || bound.Spec.VolumeName == "" {
		return // it is only there to help
	}
	class := c.pod.bed.spec.Volume.Class
	v, err := cluster.API.PersistentVolumes.Get(ctx, bound.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		c.pod.bed.driver.note(fmt.Sprintf("storage class %s: where its volumes are is not known: %v", class, withFix(err)))
		return
	}
	c.pod.bed.driver.note(fmt.Sprintf("storage class %s: %s", class, aboutVolume(v)))
}

// aboutVolume says where a volume is, and what becomes of it.
func aboutVolume(v *corev1.PersistentVolume) string {
	kind, where := "a volume of the node's kernel", "; its cluster does not say where its blocks are"
	switch s := v.Spec.PersistentVolumeSource; {
	case s.CSI != nil:
		kind = "a volume of the CSI driver " + s.CSI.Driver
		if s.CSI.FSType != "" {
			kind += " with " + s.CSI.FSType
		}
	case s.Local != nil, s.HostPath != nil:
		kind, where = "a folder or disk of the node that mounts it", ""
	case s.NFS != nil:
		kind = "NFS of " + s.NFS.Server
	}
	if nodes := onlyNodes(v); len(nodes) > 0 {
		where = "; only node " + strings.Join(nodes, ", ") + " can mount it"
	}
	text := kind + where
	if v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		text += "; the cluster keeps it after its claim is gone (Retain), and it can be used again only once it is removed: kubectl get pv"
	}
	return text
}

// onlyNodes are the values by which a volume says which nodes can mount it; none where any can, or where it says so in another way.
func onlyNodes(v *corev1.PersistentVolume) []string {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return nil
	}
	var names []string
	for _, term := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn {
				names = append(names, e.Values...)
			}
		}
	}
	return names
}

// Stored is testbed.Capabilities.Stored.
func (d *Driver) Stored(ctx context.Context, v testbed.Volume) ([]string, error) {
	class, err := fetch(ctx, func() (*storagev1.StorageClass, error) {
		return d.cluster.API.StorageClasses.Get(ctx, v.Class, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, d.cluster.noClass(ctx, v.Class)
	case apierrors.IsForbidden(err):
		return []string{mountedByNodes, fmt.Sprintf("storage class %s: who makes its volumes is not known: %v", v.Class, withFix(err))}, nil
	case err != nil:
		return nil, fmt.Errorf("look for it in cluster %s: %w", d.cluster.Name, err)
	}
	return []string{mountedByNodes, aboutClass(class)}, nil
}

// mountedByNodes is what a reader has to know of all volumes.
const mountedByNodes = "volumes are mounted by the nodes of their pods: what they send leaves from the node's network whatever network the pod is in, so that a difference between networks is one of the pods, not of the way to the storage"

// noClass is the error of a class that is not there, with those that are.
func (c *Cluster) noClass(ctx context.Context, name string) error {
	list, err := c.API.StorageClasses.List(ctx, metav1.ListOptions{Limit: mostListed})
	if err != nil {
		return fmt.Errorf("cluster %s has no such StorageClass; kubectl get storageclass lists those that there are", c.Name)
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("cluster %s has no StorageClass at all: install a driver for storage", c.Name)
	}
	return fmt.Errorf("cluster %s has no such StorageClass%s", c.Name, others(name, list.Items, func(s storagev1.StorageClass) string { return s.Name }))
}

// aboutClass says who makes the volumes of a class.
func aboutClass(class *storagev1.StorageClass) string {
	if class.Provisioner == noProvisioner {
		return fmt.Sprintf("storage class %s: its volumes were made beforehand", class.Name)
	}
	return fmt.Sprintf("storage class %s: its volumes are made by %s", class.Name, class.Provisioner)
}

// pending says what a claim of a pod waits for, and whether it does so in vain; nil where all are bound.
func (c *Cluster) pending(ctx context.Context, pod *corev1.Pod, waited time.Duration) (hopeless bool, why error) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		claim, err := c.API.PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return true, fmt.Errorf("its volume claim %s was deleted by somebody else", name)
		case err != nil || claim.Status.Phase == corev1.ClaimBound:
			continue // the pod itself tells the rest
		case claim.Status.Phase == corev1.ClaimLost:
			return true, fmt.Errorf("volume claim %s has lost its volume %s", name, claim.Spec.VolumeName)
		}
		warned, words := c.claimWords(ctx, claim)
		why := fmt.Errorf("volume claim %s is still pending: %s", name, words)
		said := unscheduled(pod)
		if said == "" || strings.Contains(said, unboundYet) {
			return warned && waited > claimWithin, why
		}
		return waited > unscheduledWithin, fmt.Errorf("%w; the scheduler says: %s; have volumes made for the class, or name a node that has some with --nodes", why, said)
	}
	return false, nil
}

// claimWords are the last ones of the cluster about a claim, warnings first.
func (c *Cluster) claimWords(ctx context.Context, claim *corev1.PersistentVolumeClaim) (warned bool, words string) {
	events, err := c.API.Events(claim.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=PersistentVolumeClaim,involvedObject.name=" + claim.Name})
	if err != nil || len(events.Items) == 0 {
		return false, "nothing is said of it; does its provisioner run?"
	}
	last := events.Items[0]
	for _, e := range events.Items {
		if warning := e.Type == corev1.EventTypeWarning; warning || !warned {
			last, warned = e, warned || warning
		}
	}
	return warned, sentence(last.Reason, last.Message)
}

// unscheduled is what the scheduler says of a pod that has no node, "" of another one.
func unscheduled(pod *corev1.Pod) string {
	c, _ := gather.First(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue
	})
	return c.Message
}

// claimable has the API server go through the motions of making a claim: quota, rights and what else may refuse it.
func (d *Driver) claimable(ctx context.Context, spec testbed.Spec) error {
	if spec.Volume.Class == "" {
		return nil
	}
	if n := spec.Volume.Clients; n > 1 {
		_, err := d.Choose(ctx, n)
		if tooFew := (*nodesError)(nil); errors.As(err, &tooFew) {
			return tooFew.unsupported(fmt.Sprintf("clients with a volume each on %d nodes", n), "fewer clients (client_pods)")
		}
		if err != nil {
			return err
		}
	}
	manifest := claimManifest(d.cluster.Namespace, d.Run().Name("trial"), d.Run(), spec.Volume)
	return dryCreate(ctx, d.cluster.API.PersistentVolumeClaims(d.cluster.Namespace), "volume claim", manifest)
}

// mountClaim gives a pod the volume of a claim, and its group the right to write there.
func mountClaim(spec *corev1.PodSpec, claim string) {
	spec.SecurityContext.FSGroup, spec.SecurityContext.FSGroupChangePolicy = new(unprivileged), new(corev1.FSGroupChangeOnRootMismatch)
	c := &spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: claimVolume, MountPath: testbed.VolumeFolder})
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: claimVolume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
}
