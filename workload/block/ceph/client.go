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
	if err := Whole(ctx, h); err != nil {
		return fail(err)
	}
	return fio.Target{
		Engine:  Engine,
		Options: []string{"clientname=" + User, "pool=" + Pool, "rbdname=" + Image},
		Env:     environment(h),
	}, nil
}

// Whole returns an error unless all of the image is there, as it was filled. The home is a client's that Attach has readied.
func Whole(ctx context.Context, h *daemon.Sandbox) error {
	text, err := run(ctx, h, "rbd", "diff", "--format", "json", Pool+"/"+Image)
	if err != nil {
		return err
	}
	var extents []struct {
		Length unit.Bytes `json:"length"`
	}
	if err := json.Unmarshal(text, &extents); err != nil {
		return fmt.Errorf("what rbd says of the image: %w: %.200q", err, text)
	}
	var there unit.Bytes
	for _, e := range extents {
		there += e.Length
	}
	if there != ImageSize {
		return fmt.Errorf("of its image %v are there, where %v were written: what was measured since is not of the same data", there, ImageSize)
	}
	return nil
}
