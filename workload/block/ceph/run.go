package ceph

import (
	"context"

	"netdelta/internal/daemon"
)

// environment has a program of Ceph read the home's configuration, and not the machine's.
func environment(h *daemon.Sandbox) []string {
	return []string{
		"CEPH_CONF=" + place(h, "ceph.conf"), "CEPH_ARGS=",
		// Who starts again in a process of the same number is somebody else.
		"CEPH_USE_RANDOM_NONCE=1",
	}
}

// run runs a program of Ceph to its end.
func run(ctx context.Context, h *daemon.Sandbox, program string, arguments ...string) ([]byte, error) {
	return h.Run(ctx, daemon.Spec{Path: program, Args: arguments, Env: environment(h)})
}
