// Package image builds what a guest boots from: a kernel, an initramfs and QEMU itself, of the distribution's packages, unpacked
// into a folder of the user's own. Nothing is installed, and the host's own package state is only read.
package image
