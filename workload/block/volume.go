package block

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload/tool/fio"
)

// Bounds of a volume's file. It has many more blocks than one burst visits.
const (
	leastFile = 16 * unit.MiB
	usualFile = 256 * unit.MiB
	mostFile  = 16 * unit.GiB
	// leastBlocks is how many blocks a file has at least.
	leastBlocks = 16
)

// blocksFile is the file of a volume that blocks lie in.
const blocksFile = "netdelta.blocks"

// volume is the store of a volume of a cluster: the maker of the pod has mounted it there.
func volume(class string) store {
	return store{
		name: "storage class " + class,
		attach: func(ctx context.Context, p load, _ netip.AddrPort) (fio.Target, error) {
			return attachVolume(ctx, testbed.VolumeFolder, p)
		},
	}
}

// storeName names what a client reads and writes.
func storeName(p result.Params, server netip.AddrPort) string {
	if p.StorageClass != "" {
		return "a volume of storage class " + p.StorageClass
	}
	return server.String()
}

// checkVolume checks the parameters that go with a storage class.
func checkVolume(p load) error {
	if p.StorageClass == "" {
		if p.IO == buffered {
			return fmt.Errorf("io %s is of volumes of a storage class; stores of netdelta's own are read and written past the node's memory", buffered)
		}
		return nil
	}
	least := max(leastFile, leastBlocks*p.Block)
	switch {
	case p.Store != stores()[0].name: // the default
		return fmt.Errorf("store %s is one of netdelta's own; leave it out with a storage class", p.Store)
	case p.File != 0 && (p.File < least || p.File > mostFile):
		return fmt.Errorf("file %d bytes is out of range: %d to %d bytes", int64(p.File), int64(least), int64(mostFile))
	}
	return nil
}

// volumeFile is how large the file is: in whole parts, as direct I/O wants it.
func volumeFile(p load) unit.Bytes {
	size := p.File
	if size == 0 {
		size = max(usualFile, leastBlocks*p.Block)
	}
	return (size + unit.MiB - 1) / unit.MiB * unit.MiB
}

// attachVolume fills the file of a volume, past the node's memory, and says how fio reaches it.
func attachVolume(ctx context.Context, folder string, p load) (fio.Target, error) {
	file, size := filepath.Join(folder, blocksFile), volumeFile(p)
	if err := fillVolume(ctx, file, size); err != nil {
		return fio.Target{}, err
	}
	past := "1"
	if p.IO == buffered {
		past = "0"
	}
	return fio.Target{Engine: "libaio", Options: []string{
		"filename=" + file, fmt.Sprintf("size=%d", int64(size)),
		// Blocks that an earlier burst has brought into some memory are not what is measured: fio has the node forget the file as it begins.
		"direct=" + past, "randrepeat=0",
	}}, nil
}

// fillVolume makes a file of a volume as long as asked for, of blocks that all differ. What is there already stays.
func fillVolume(ctx context.Context, file string, size unit.Bytes) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|unix.O_DIRECT, 0o600)
	if err != nil {
		return unwritable(file, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("look how long %s is: %w", file, err)
	}
	if at >= int64(size) {
		return nil
	}
	part, err := unix.Mmap(-1, 0, fillPart, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS) // aligned, as direct I/O wants it
	if err != nil {
		return fmt.Errorf("memory to fill %s from: %w", file, err)
	}
	defer func() { _ = unix.Munmap(part) }() // nothing refers to it any more
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // it never fails; storage that finds out what is there twice must not find this
	noise := rand.NewChaCha8(seed)
	for ; at < int64(size); at += fillPart {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("fill %s: %v of %v are written: %w", file, unit.Bytes(at), size, err)
		}
		_, _ = noise.Read(part) // it never fails
		if _, err := f.WriteAt(part[:min(fillPart, int64(size)-at)], at); err != nil {
			return unwritable(file, err)
		}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("fill %s: %w", file, err)
	}
	return nil
}

// unwritable says what to do about a volume's file that can't be written.
func unwritable(file string, err error) error {
	folder := filepath.Dir(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no volume at %s; it takes a pod that has one", err, folder)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: the volume's file system takes no direct I/O, and without it the memory of the node would be measured; name a class with another file system", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the volume is not given to the pod's group (fsGroup), without which user %d can't write to it; have its driver do that (fsGroupPolicy), or name another class", err, os.Geteuid())
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: the volume is smaller than was asked for; ask for a smaller file", err)
	}
	return err
}
