// Package hops tells when each request and each response passes each device and socket on its way, and so where on the way
// the time goes. It reads the kernel's tracepoints with eBPF programs and changes nothing.
package hops

//go:generate go tool -modfile=../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 -type event tracer bpf/hops.bpf.c -- -O2 -Wall -Wextra -Wno-unused-parameter -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
