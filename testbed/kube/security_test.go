package kube

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// An agent asks for two rights and no more.
func TestNodeAgentSecurity(t *testing.T) {
	c := NodeAgentSecurity()
	if *c.Privileged || *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem {
		t.Errorf("%+v asks for more than it needs", c)
	}
	if !slices.Equal(c.Capabilities.Add, []corev1.Capability{"NET_ADMIN", "NET_RAW"}) || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("capabilities: %+v", c.Capabilities)
	}
}

// A pod that makes nodes of testbeds is root over its node's kernel, and has neither files and processes of the node nor a token.
func TestNodePod(t *testing.T) {
	pod := launcherWith(t, Options{}).Manifest(nodePod("node-0", "w1"))
	s, c := pod.Spec, pod.Spec.Containers[0].SecurityContext
	if !s.HostNetwork || s.HostPID || s.HostIPC || *s.AutomountServiceAccountToken || pod.Labels[LabelRole] != string(RoleNode) {
		t.Errorf("%+v", s)
	}
	if !*c.Privileged || !*c.ReadOnlyRootFilesystem || *c.RunAsUser != 0 || *s.SecurityContext.RunAsNonRoot {
		t.Errorf("%+v of %+v", c, s.SecurityContext)
	}
	for _, v := range s.Volumes {
		if v.EmptyDir == nil {
			t.Errorf("it has the volume %+v", v)
		}
	}
}
