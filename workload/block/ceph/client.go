package ceph

import (
	"context"
	"encoding/json"
	"fmt"

	"netdelta/internal/daemon"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/fio"
)

// Engine is fio's, for images of Ceph.
const Engine = "rbd"

// Attach readies a client's home, sees that the image is there, and says how fio reaches it.
func Attach(ctx context.Context, h *daemon.Sandbox, at workload.Member) (fio.Target, error) {
	fail := func(err error) (fio.Target, error) {
		return fio.Target{}, fmt.Errorf("reach the Ceph cluster whose monitor is at %s: %w", monitorAddress(at.Peers), err)
	}
	if err := check(at.Peers); err != nil {
		return fio.Target{}, fmt.Errorf("reach a Ceph cluster: %w", err)
	}
	if err := h.Write(folder+"/ceph.conf", config(h.Path, at.Peers, -1), 0o644, ""); err != nil {
		return fail(err)
	}
	text, err := run(ctx, h, "rbd", "info", "--format", "json", Pool+"/"+Image)
	if err != nil {
		return fail(err)
	}
	var image struct {
		Size unit.Bytes `json:"size"`
	}
	if err := json.Unmarshal(text, &image); err != nil {
		return fail(fmt.Errorf("what rbd says of the image: %w: %.200q", err, text))
	}
	if image.Size != ImageSize {
		return fail(fmt.Errorf("its image has %v, not %v", image.Size, ImageSize))
	}
	return fio.Target{
		Engine:  Engine,
		Options: []string{"clientname=" + User, "pool=" + Pool, "rbdname=" + Image},
		Env:     environment(h),
	}, nil
}
