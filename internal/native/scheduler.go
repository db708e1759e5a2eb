package native

import _ "unsafe" // for go:linkname

// EnterSyscall tells the Go scheduler that this goroutine is in a system call until ExitSyscall. Both must be called by one
// function, which is marked go:nosplit.
//
//go:linkname EnterSyscall runtime.entersyscall
func EnterSyscall()

// ExitSyscall ends what EnterSyscall began.
//
//go:linkname ExitSyscall runtime.exitsyscall
func ExitSyscall()
