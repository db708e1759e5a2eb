// Package flame samples what the processors do while a workload runs: on which function, for which pod, in the kernel's name
// or idle. It needs no program but its own: perf_event_open gives the ticks, and an eBPF program notes the stacks.
package flame

//go:generate go tool -modfile=../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 tick bpf/profile.bpf.c -- -O2 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
