package testbed

import "netdelta/unit"

// Volume is storage that is made for a testbed and removed with it. The zero value is none.
type Volume struct {
	// Class is the kind of storage, as its owner calls it: the name of a StorageClass.
	Class string
	// Size is what can be written at least.
	Size unit.Bytes
}

// VolumeFolder is where pods have their volume.
const VolumeFolder = "/var/netdelta/volume"
