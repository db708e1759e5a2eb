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
