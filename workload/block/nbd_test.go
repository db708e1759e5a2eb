package block

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/daemon"
	"netdelta/internal/require"
	"netdelta/unit"
)

func TestImageIsLargerThanItsHome(t *testing.T) {
	require.Namespaces(t)
	home, err := daemon.Open(4 * unit.MiB)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	err = fillImage(t.Context(), home, 16*unit.MiB)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "16MiB") {
		t.Errorf("16 MiB in 4 MiB of memory: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fillImage(ctx, home, unit.MiB); !errors.Is(err, context.Canceled) {
		t.Errorf("a start that was given up: %v", err)
	}
}
