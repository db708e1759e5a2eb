package testbed

import (
	"fmt"
	"io/fs"
)

// PermissionError says that this user may not do what a part of netdelta needs. errors.Is(err, fs.ErrPermission) is true.
type PermissionError struct {
	Doing string // "make network namespaces"
	Need  string // "the capability CAP_SYS_ADMIN"
	Fix   string // "run it as root"
	Err   error  // what the kernel said
}

// Error implements error.
func (e *PermissionError) Error() string {
	return fmt.Sprintf("%s: %v: needs %s; %s", e.Doing, e.Err, e.Need, e.Fix)
}

// Unwrap gives the kernel's error.
func (e *PermissionError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, fs.ErrPermission) true.
func (e *PermissionError) Is(target error) bool { return target == fs.ErrPermission }
