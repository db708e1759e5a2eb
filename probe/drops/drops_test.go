package drops

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/leak"
	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/testbed"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// Each packet that a rule drops is counted with the kernel's reason, in the namespace where the rule is.
func TestDropsOfARuleAreCounted(t *testing.T) {
	require.Namespaces(t)
	counter, err := Open()
	if lacks := new(testbed.UnsupportedError); errors.As(err, &lacks) {
		require.Need(t, lacks.Need, false)
	}
	require.NoError(t, err)
	defer require.Closes(t, counter)
	space, err := netns.New(nil)
	require.NoError(t, err)
	defer require.Closes(t, space)
	const sent = 50
	var number uint64
	before, _, err := counter.Read()
	require.NoError(t, err)
	require.NoError(t, space.Do(func() error {
		var st unix.Stat_t
		if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
			return err
		}
		number = st.Ino
		const rules = "ip link set lo up; nft add table inet t; nft add chain inet t c '{ type filter hook input priority 0; }'; nft add rule inet t c udp dport 9 drop"
		if out, err := exec.Command("sh", "-ec", rules).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", rules, err, out)
		}
		to, err := net.Dial("udp", "127.0.0.1:9")
		if err != nil {
			return err
		}
		for range sent {
			if _, err := to.Write([]byte("x")); err != nil {
				return err
			}
		}
		return to.Close()
	}))
	after, unplaced, err := counter.Read()
	require.NoError(t, err)
	var counted uint64
	for place, n := range after.Since(before) {
		if uint64(place.Space) == number {
			t.Logf("%+v: %d", place, n)
		}
		if uint64(place.Space) == number && place.Reason == "NETFILTER_DROP" {
			counted += n
		}
	}
	if counted != sent || unplaced != 0 {
		t.Errorf("%d of %d drops were counted in their namespace, and %d had no room", counted, sent, unplaced)
	}
}
