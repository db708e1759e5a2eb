// Package vm boots guests: virtual machines with a full kernel, in which the same program does what this machine's kernel can't.
// A guest has no way to this machine's network; all that it is told and says goes through one serial port.
package vm
