// Package oci makes container images of netdelta's own program, without a container engine: one static binary at /netdelta, run by a
// user without rights. The same binary gives the same image, to the last bit of its digest.
package oci
