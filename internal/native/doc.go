// Package native holds what a thread needs to run a measured loop undisturbed inside a Go process: memory that the garbage
// collector does not know, system calls that the scheduler does not see, and a thread with a file table of its own.
//
// A measured loop runs between EnterSyscall and ExitSyscall: the Go scheduler believes the thread to be in one long system
// call, takes the processor (the scheduler's P) away from it and forgets it. Neither preemption, garbage collection nor the
// monitor thread reaches it, and an idle loop, blocked in the kernel, costs nothing. The price: everything called there must
// be marked go:nosplit (the linker checks that the whole fits on the stack), must not allocate, and must not touch the Go heap.
package native
