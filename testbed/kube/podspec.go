package kube

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"netdelta/internal/gather"
)

// PodSpec is what a cluster may ask of the pods of a run beyond what they are. It is as users write it.
type PodSpec struct {
	// Tolerate are taints of nodes that pods tolerate: KEY, KEY=VALUE, each with :EFFECT where it is of one effect only, or * for all.
	Tolerate []string
	// PullSecrets are the names of secrets by which nodes pull the pods' image.
	PullSecrets []string
	// ServiceAccount is the account that pods run as, without its token; "" is the namespace's default.
	ServiceAccount string
	// Labels are further ones of pods: KEY=VALUE.
	Labels []string

	tolerations []corev1.Toleration
	labels      map[string]string
}

// check reads what is written, and says what is wrong with it.
func (s *PodSpec) check() error {
	s.tolerations, s.labels = nil, map[string]string{}
	for _, text := range s.Tolerate {
		t, err := toleration(text)
		if err != nil {
			return err
		}
		s.tolerations = append(s.tolerations, t)
	}
	for _, text := range s.Labels {
		key, value, given := strings.Cut(text, "=")
		wrong := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value))
		switch {
		case !given:
			wrong = []string{"need KEY=VALUE"}
		case key == LabelManagedBy || strings.HasPrefix(key, ownLabels):
			wrong = []string{"netdelta sets it itself"}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("label of pods %q: %s", text, strings.Join(wrong, "; "))
		}
		s.labels[key] = value
	}
	for what, names := range map[string][]string{"pull secret": s.PullSecrets, "service account": {s.ServiceAccount}} {
		for _, name := range names {
			if wrong := validation.IsDNS1123Subdomain(name); name != "" && len(wrong) > 0 {
				return fmt.Errorf("%s %q: %s", what, name, strings.Join(wrong, "; "))
			}
		}
	}
	return nil
}

// ownLabels begin the keys of netdelta's own labels.
const ownLabels = "netdelta.dev/"

// toleration reads a taint that is tolerated.
func toleration(text string) (corev1.Toleration, error) {
	effects := []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}
	if text == "*" {
		return corev1.Toleration{Operator: corev1.TolerationOpExists}, nil
	}
	taint, effect, of := strings.Cut(text, ":")
	key, value, given := strings.Cut(taint, "=")
	t := corev1.Toleration{Key: key, Value: value, Effect: corev1.TaintEffect(effect), Operator: corev1.TolerationOpEqual}
	if !given {
		t.Operator = corev1.TolerationOpExists
	}
	if of && !slices.Contains(effects, effect) {
		return t, fmt.Errorf("taint %q: need an effect of %s%s", text, strings.Join(effects, ", "), meant(effect, effects))
	}
	if wrong := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)); len(wrong) > 0 {
		return t, fmt.Errorf("taint %q: %s; need KEY, KEY=VALUE, either with :EFFECT, or * for all", text, strings.Join(wrong, "; "))
	}
	return t, nil
}

// apply sets on a pod what the options ask for.
func (s *PodSpec) apply(pod *corev1.Pod) {
	for key, value := range s.labels {
		pod.Labels[key] = value
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, s.tolerations...)
	pod.Spec.ServiceAccountName = s.ServiceAccount
	pod.Spec.ImagePullSecrets = gather.Each(s.PullSecrets, func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} })
}

// keepsOut says whether a taint keeps the pods off a node.
func (s *PodSpec) keepsOut(t corev1.Taint) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(s.tolerations, func(by corev1.Toleration) bool {
		return (by.Effect == "" || by.Effect == t.Effect) && (by.Key == "" || by.Key == t.Key) && (by.Operator == corev1.TolerationOpExists || by.Value == t.Value)
	})
}

// KeptOut says whether a taint of a node keeps the launcher's pods off it.
func (l *Launcher) KeptOut(t corev1.Taint) bool { return l.options.keepsOut(t) }
