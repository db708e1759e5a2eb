package softirq

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/machine"
	"netdelta/internal/property"
	"netdelta/internal/require"
)

// TestAccountingOfThisKernel holds the answer against the kernel's configuration, where that can be read.
func TestAccountingOfThisKernel(t *testing.T) {
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	got := Unknown
	for range 20 {
		if got, err = Find(cpus[0]); err != nil {
			t.Fatal(err)
		}
		if got != Unknown {
			break
		}
	}
	t.Logf("soft interrupts are accounted for: %s", got)
	config, err := os.Open("/proc/config.gz")
	require.Need(t, "the kernel's configuration (CONFIG_IKCONFIG_PROC)", err == nil)
	defer config.Close()
	unpacked, err := gzip.NewReader(config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	// With it, it may still be switched off.
	if !bytes.Contains(text, []byte("\nCONFIG_IRQ_TIME_ACCOUNTING=y")) && got == Separate {
		t.Error("this kernel does not account for interrupts' time, and yet it counts as apart")
	}
	if got == Unknown {
		t.Error("twenty attempts gave no answer")
	}
}

func TestAccountingOfNoProcessor(t *testing.T) {
	if got, err := Find(1023); err == nil || got != Unknown {
		t.Errorf("%s, %v", got, err)
	}
}

func TestDecide(t *testing.T) {
	many := func(values ...float64) (all []float64) {
		for len(all) < enough {
			all = append(all, values...)
		}
		return all
	}
	for _, c := range []struct {
		name string
		s    shares
		want Accounting
	}{
		{"all counts", shares{many(0.999), many(0.998)}, Threads},
		{"a third is left out", shares{many(0.999), many(0.66)}, Separate},
		{"mostly disturbed", shares{many(0.5, 0.9, 0.99), many(0.4, 0.97)}, Threads},
		{"mostly disturbed, apart", shares{many(0.5, 0.9, 0.99), many(0.3, 0.65)}, Separate},
		{"stolen all along", shares{many(0.7), many(0.5)}, Unknown},
		{"in between", shares{many(0.999), many(0.93)}, Unknown},
		{"too few", shares{many(0.999), []float64{0.66}}, Unknown},
		{"none", shares{}, Unknown},
	} {
		if got := c.s.decide(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestDecideIsNotFooled: time taken away from any windows, as long as one of each sort is left alone, changes no answer.
func TestDecideIsNotFooled(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		sending, want := 0.997, Threads
		if rapid.Bool().Draw(t, "apart") {
			sending, want = rapid.Float64Range(0.4, 0.85).Draw(t, "share"), Separate
		}
		disturbed := func(share float64) []float64 {
			windows := []float64{share}
			for _, taken := range rapid.SliceOfN(rapid.Float64Range(0, 1), enough-1, attempts).Draw(t, "taken away") {
				windows = append(windows, share*(1-taken))
			}
			return windows
		}
		if got := (shares{disturbed(0.998), disturbed(sending)}).decide(); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}
