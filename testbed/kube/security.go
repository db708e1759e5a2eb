package kube

import corev1 "k8s.io/api/core/v1"

// NodeAgentSecurity is what a node agent's container needs on a node: root without any of its rights but two. NET_RAW is for the
// sample of packets, NET_ADMIN for room for more of them than any user may have waiting. The container is not privileged, and
// its file system can't be written to.
func NodeAgentSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: new(int64(0)), RunAsNonRoot: new(false), Privileged: new(false), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}
