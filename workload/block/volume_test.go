package block

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload/tool/fio"
)

// direct is a folder whose file system takes direct I/O.
func direct(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	fd, err := unix.Open(filepath.Join(folder, "trial"), unix.O_CREAT|unix.O_WRONLY|unix.O_DIRECT, 0o600)
	require.Need(t, "a folder for temporary files that takes direct I/O", err == nil)
	_ = unix.Close(fd)
	return folder
}

// TestVolume reads and writes blocks of a file as in a pod's volume.
func TestVolume(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	require.Tool(t, "fio")
	folder := direct(t)
	for _, p := range []result.Params{
		{StorageClass: "fast", File: 16 * unit.MiB},
		{StorageClass: "fast", File: 24 * unit.MiB, Own: result.OwnOf("operation", "randwrite", "depth", 4), Clients: 2}, // the file grows
		{StorageClass: "fast", File: 16 * unit.MiB, Own: result.OwnOf("operation", "read", "block", unit.MiB)},
		{StorageClass: "fast", File: 16 * unit.MiB, Own: result.OwnOf("operation", "randwrite", "io", buffered)},
	} {
		c, err := open(t.Context(), p, -1, "a volume", func(ctx context.Context, _ *daemon.Sandbox, p load) (fio.Target, error) {
			return attachVolume(ctx, folder, p)
		})
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Burst(engine.BurstSpec{Duration: 100 * time.Millisecond, Deadline: time.Minute})
		if err != nil || b.Transactions == 0 || b.Errors > 0 || b.P50 <= 0 {
			t.Errorf("%+v: %+v, %v", p, b, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	about, err := os.Stat(filepath.Join(folder, blocksFile))
	if err != nil || about.Size() != int64(24*unit.MiB) {
		t.Errorf("the file is %+v, %v", about, err)
	}
}

// TestVolumeThatIsNone: what is wrong with a volume is said with what to do.
func TestVolumeThatIsNone(t *testing.T) {
	p := loadOf(result.Params{StorageClass: "fast", File: 16 * unit.MiB})
	if _, err := attachVolume(t.Context(), filepath.Join(t.TempDir(), "none"), p); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "there is no volume") {
		t.Errorf("without a volume: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := attachVolume(ctx, direct(t), p); !errors.Is(err, context.Canceled) {
		t.Errorf("a start that was given up: %v", err)
	}
	for cause, want := range map[error]string{unix.EINVAL: "takes no direct I/O", unix.EACCES: "fsGroup", unix.ENOSPC: "a smaller file"} {
		if err := unwritable("/volume/file", cause); !errors.Is(err, cause) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", cause, err)
		}
	}
}

// TestVolumeParameters: what goes with a storage class, and what does not.
func TestVolumeParameters(t *testing.T) {
	w := Workload()
	for _, p := range []result.Params{{StorageClass: "fast"}, {StorageClass: "fast", File: unit.GiB, Own: result.OwnOf("store", "nbd", "block", unit.MiB)}} {
		if err := w.Check(p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for want, p := range map[string]result.Params{
		"store ceph":    {StorageClass: "fast", Own: result.OwnOf("store", "ceph")},
		"file 1048576":  {StorageClass: "fast", File: unit.MiB},
		"file 16777216": {StorageClass: "fast", File: 16 * unit.MiB, Own: result.OwnOf("block", 2*unit.MiB)},
		"target":        {StorageClass: "fast", Target: "http://web/"},
		"file is no":    {File: unit.GiB},
	} {
		if err := w.Check(p); err == nil || !strings.HasPrefix(err.Error(), "block: "+want) {
			t.Errorf("check of %+v: %v, want an error that names %s", p, err, want)
		}
	}
	d := w.Demands(result.Params{StorageClass: "fast"})
	if d.Volume != usualFile || d.Memory != 0 || d.Cluster != nil || len(d.Programs) != 1 || d.Programs[0].Name != fio.Program {
		t.Errorf("it demands %+v", d)
	}
	if d := w.Demands(result.Params{StorageClass: "fast", Own: result.OwnOf("block", 16*unit.MiB), File: 300_000_000}); d.Volume != 287*unit.MiB {
		t.Errorf("300 MB are %v", d.Volume)
	}
	if d := w.Demands(w.Defaults); d.Volume != 0 {
		t.Errorf("a store of netdelta's own demands a volume of %v", d.Volume)
	}
}
