package testbed

import (
	"context"

	"netdelta/unit"
)

// Storer is a driver whose pods can have volumes of storage that is none of its testbeds': Spec.Volume asks for one.
type Storer interface {
	Driver
	// Stored finds out whether there is such storage, and says in sentences what readers must know of it. The error says what is wrong
	// with it.
	Stored(ctx context.Context, v Volume) (says []string, err error)
}

// Volume is storage that is made for a testbed and removed with it. The zero value is none.
type Volume struct {
	// Class is the kind of storage, as its owner calls it: the name of a StorageClass.
	Class string
	// Size is what can be written at least.
	Size unit.Bytes
}

// VolumeFolder is where pods have their volume.
const VolumeFolder = "/var/netdelta/volume"
