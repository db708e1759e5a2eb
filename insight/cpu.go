package insight

import "netdelta/result"

// CPU is the processor time that a trial's undisturbed bursts took, in nanoseconds, and what it was spent on.
type CPU struct {
	// Client and Server are the time of the two ends with the network work that the kernel did in their name, Kernel is the
	// network work that it did for nobody.
	Client, Server, Kernel int64
	Transactions, Bytes    int64
}

// Spent sums up the processor time of a trial; it is zero for a trial that has none recorded.
func Spent(t result.Trial) CPU {
	var sum CPU
	b := t.Bursts
	for i := range min(len(b.ClientCPU), len(b.ServerCPU), len(b.KernelCPU), len(b.Work), len(b.Moved)) {
		if i < len(b.Disturbed) && b.Disturbed[i] != "" {
			continue
		}
		sum.Client += b.ClientCPU[i]
		sum.Server += b.ServerCPU[i]
		sum.Kernel += b.KernelCPU[i]
		sum.Transactions += b.Work[i]
		sum.Bytes += b.Moved[i]
	}
	return sum
}

// Total is the time of all.
func (c CPU) Total() int64 { return c.Client + c.Server + c.Kernel }

// Add is the sum of two.
func (c CPU) Add(o CPU) CPU {
	return CPU{
		Client: c.Client + o.Client, Server: c.Server + o.Server, Kernel: c.Kernel + o.Kernel,
		Transactions: c.Transactions + o.Transactions, Bytes: c.Bytes + o.Bytes,
	}
}

// cpuPerTransaction is in nanoseconds. It is one figure for each trial, since where the kernel accounts for soft interrupts
// apart its clock is coarser than a burst.
func (s *summary) cpuPerTransaction() (float64, string) {
	c := Spent(*s.trial)
	return per(c.Total(), c.Transactions)
}

// cpuPerByte is in nanoseconds a byte, which is seconds a gigabyte (10^9 bytes).
func (s *summary) cpuPerByte() (float64, string) {
	c := Spent(*s.trial)
	return per(c.Total(), c.Bytes)
}

func per(spent, work int64) (float64, string) {
	if work <= 0 {
		return 0, "no work done"
	}
	return float64(spent) / float64(work), ""
}
