package ceph

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"netdelta/internal/daemon"
	"netdelta/unit"
)

// groups is how many placement groups the image's pool has: enough to spread it evenly, few enough to be ready at once.
const groups = 32

// filling is the block size with which the image is filled, the size of its objects.
const filling = 4 * unit.MiB

// makeImage makes the image, and writes all of it. Writes wait until the cluster can carry them out, which is when as many OSDs
// take part as copies are kept.
func makeImage(ctx context.Context, h *daemon.Sandbox) error {
	count := strconv.Itoa(groups)
	for _, step := range [][]string{
		{"ceph", "osd", "pool", "create", Pool, count, count},
		{"rbd", "create", "--size", mebibytes(ImageSize), Pool + "/" + Image},
		{
			"rbd", "bench", "--io-type", "write", "--io-pattern", "seq", "--io-threads", "4",
			"--io-size", mebibytes(filling), "--io-total", mebibytes(ImageSize), Pool + "/" + Image,
		},
	} {
		_, err := run(ctx, h, step[0], step[1:]...)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("make an image of %v, three times, in a Ceph cluster: it is not done in time; give slow links a higher rate: %w", ImageSize, err)
		case err != nil:
			return fmt.Errorf("make an image of %v in a Ceph cluster: %w", ImageSize, err)
		}
	}
	return nil
}

// mebibytes is a size as Ceph's programs take it.
func mebibytes(size unit.Bytes) string { return fmt.Sprintf("%dM", int64(size/unit.MiB)) }
