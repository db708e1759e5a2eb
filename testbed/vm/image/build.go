package image

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
)

// Options say which image.
type Options struct {
	// Cache is the folder that holds images; "" is netdelta/vm in the user's cache folder.
	Cache string
	// Refresh asks the archive for newer packages even where an image is there.
	Refresh bool
	// Progress gets a line for each step, nil for none.
	Progress func(string)
}

// building is how folders of images that are being built begin, and current names the image in use.
const (
	building = "building-"
	current  = "current"
)

// placed is the variable that names another place for images.
const placed = "XDG_CACHE_HOME"

// folder is where images are. Programs of images are run, so that nobody else may have put them there.
func (o Options) folder() (string, error) {
	dir := o.Cache
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a place for the guest's image: %w; set %s", err, placed)
		}
		dir = filepath.Join(cache, "netdelta", "vm")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the place for the guest's image: %w", err)
	}
	return dir, owner.CheckFolder(dir, placed)
}

func (o Options) say(format string, a ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, a...))
	}
}

// Open returns the image in use without building one. The error is an fs.ErrNotExist where there is none yet, and a
// *DamagedError where its files are not what they were.
func Open(o Options) (Image, error) {
	dir, err := o.inUse()
	if err != nil {
		return Image{}, err
	}
	return open(dir)
}

// Glance is Open without a look at the files.
func Glance(o Options) (Image, error) {
	dir, err := o.inUse()
	if err != nil {
		return Image{}, err
	}
	return read(dir)
}

// inUse is the folder of the image in use.
func (o Options) inUse() (string, error) {
	dir, err := o.folder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, current)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if sum, err := hex.DecodeString(id); err != nil || len(sum) != idSize {
		return "", fmt.Errorf("the file %s is to name the guest's image and says %.40q: remove it, and build an image with netdelta vm build", path, id)
	}
	dir = filepath.Join(dir, id)
	return dir, owner.CheckFolder(dir, placed)
}

// Build returns the image in use, and builds it first where there is none, where it is damaged, or where a newer one is asked for.
// It takes some 15 s of processor time and 600 MB of disk meanwhile, 190 MB afterwards. The error is a *testbed.UnsupportedError on a
// machine that is no Debian.
func Build(ctx context.Context, o Options) (Image, error) {
	dir, err := o.folder()
	if err != nil {
		return Image{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Image{}, fmt.Errorf("make a place for the guest's image: %w", err)
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return Image{}, err
	}
	i, err := build(ctx, o, dir)
	if full(err) {
		err = fmt.Errorf("%w; building takes 600 MB: free some in %s, or set XDG_CACHE_HOME to a larger disk", err, dir)
	}
	if err != nil {
		err = fmt.Errorf("build a guest's image: %w", err)
	}
	return i, errors.Join(err, unlock())
}

// full says that something failed for want of disk space; apt and dpkg say so only in words.
func full(err error) bool {
	if err == nil || errors.Is(err, unix.ENOSPC) {
		return err != nil
	}
	said := strings.ToLower(err.Error())
	return strings.Contains(said, unix.ENOSPC.Error()) || strings.Contains(said, "enough free space")
}

// lock makes builders of the same folder wait for one another.
func lock(ctx context.Context, dir string) (unlock func() error, err error) {
	if unlock, err = owner.Lock(ctx, filepath.Join(dir, "lock")); err != nil {
		err = fmt.Errorf("wait for another that builds the guest's image: %w", err)
	}
	return unlock, err
}

func build(ctx context.Context, o Options, dir string) (Image, error) {
	var damaged *DamagedError
	i, err := Open(o)
	switch {
	case err == nil && !o.Refresh:
		return i, nil
	case errors.As(err, &damaged):
		o.say("%s", damaged.Why+": building it again")
		if err := os.RemoveAll(damaged.Dir); err != nil {
			return Image{}, err
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Image{}, err
	}
	if err := sweep(dir); err != nil {
		return Image{}, err
	}
	o.say("reading the lists of packages")
	a, err := newAPT(ctx, filepath.Join(dir, "apt"))
	if err != nil {
		return Image{}, err
	}
	r, err := a.recipe(ctx)
	if err != nil {
		return Image{}, err
	}
	final := filepath.Join(dir, identify(a.suite, r.all()))
	i, err = open(final)
	if errors.As(err, &damaged) {
		if err := os.RemoveAll(final); err != nil {
			return Image{}, err
		}
	}
	if err != nil {
		if i, err = assemble(ctx, o, a, r, dir, final); err != nil {
			return Image{}, err
		}
	}
	return i, choose(dir, i.ID())
}

// choose makes an image the one in use.
func choose(dir, id string) error {
	next := filepath.Join(dir, current+".next")
	if err := writeSynced(next, []byte(id+"\n")); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(dir, current))
}

// sweep removes what builds that were killed left behind.
func sweep(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, building+"*"))
	for _, l := range left {
		err = errors.Join(err, os.RemoveAll(l))
	}
	return err
}

// recipe is what an image is made of, as NAME=VERSION.
type recipe struct {
	kernel string
	// emulator holds QEMU and what it needs that the host lacks, tools likewise.
	emulator, tools []string
}

func (r recipe) all() []string {
	return slices.Concat([]string{r.kernel}, r.emulator, r.tools)
}

func (r recipe) version(of string) string {
	for _, p := range r.all() {
		if name, version, _ := strings.Cut(p, "="); name == of {
			return version
		}
	}
	return ""
}

func (a *apt) recipe(ctx context.Context) (recipe, error) {
	var r recipe
	var err error
	if r.kernel, err = a.kernel(ctx); err != nil {
		return r, err
	}
	if r.emulator, err = a.closure(ctx, emulatorPackages()); err != nil {
		return r, err
	}
	var names []string
	for _, t := range toolkits() {
		names = append(names, t.packages...)
	}
	r.tools, err = a.closure(ctx, names)
	return r, err
}

// assemble builds in a folder of its own, which becomes the image when it is whole.
func assemble(ctx context.Context, o Options, a *apt, r recipe, dir, final string) (i Image, err error) {
	temp, err := os.MkdirTemp(dir, building)
	if err != nil {
		return Image{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	work, out := filepath.Join(temp, "work"), filepath.Join(temp, "image")
	for _, d := range []string{filepath.Join(work, "debs"), out} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return Image{}, err
		}
	}
	packages := slices.Compact(slices.Sorted(slices.Values(r.all())))
	o.say("getting %d packages of %s", len(packages), a.suite)
	files, err := a.fetch(ctx, filepath.Join(work, "debs"), packages)
	if err != nil {
		return Image{}, err
	}
	o.say("unpacking")
	unpackAll := func(packages []string, into string) error {
		for _, p := range packages {
			name, _, _ := strings.Cut(p, "=")
			if err := unpack(ctx, files[name], into); err != nil {
				return err
			}
		}
		return nil
	}
	kernel, tools := filepath.Join(work, "kernel"), filepath.Join(work, "tools")
	err = errors.Join(unpackAll([]string{r.kernel}, kernel), unpackAll(r.emulator, filepath.Join(out, qemuFolder)), unpackAll(r.tools, tools))
	if err != nil {
		return Image{}, err
	}
	i = Image{Dir: out, Suite: a.suite, QEMU: r.version("qemu-system-x86"), Packages: packages}
	o.say("making the guest's root folder")
	if err := i.fill(ctx, kernel, tools); err != nil {
		return Image{}, err
	}
	if err := i.seal(); err != nil {
		return Image{}, err
	}
	if err := os.Rename(out, final); err != nil {
		return Image{}, err
	}
	i.Dir = final
	return i, nil
}

// fill makes kernel and archives of unpacked packages.
func (i *Image) fill(ctx context.Context, kernel, tools string) error {
	found, err := filepath.Glob(filepath.Join(kernel, "boot", "vmlinuz-*"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("find the kernel in its package: %d files are called boot/vmlinuz-*", len(found))
	}
	i.Kernel = strings.TrimPrefix(filepath.Base(found[0]), "vmlinuz-")
	if err := copyFile(found[0], filepath.Join(i.Dir, kernelFile)); err != nil {
		return err
	}
	modules, err := chooseModules(ctx, kernel, i.Kernel)
	if err != nil {
		return err
	}
	shared := map[string]bool{}
	for _, t := range toolkits() {
		w, err := newRoot(filepath.Join(i.Dir, t.archive.file()))
		if err != nil {
			return err
		}
		if t.archive == Base {
			err = errors.Join(w.base(), modules.write(w))
		}
		if err == nil {
			err = t.write(w, tools, shared)
		}
		if err := errors.Join(err, w.close()); err != nil {
			return fmt.Errorf("make the archive %s of the guest's files: %w", t.archive, err)
		}
	}
	i.Lacks, err = i.lacking(ctx, filepath.Join(kernel, "boot", "config-"+i.Kernel))
	return err
}

// lacking says what the packages at hand don't have, by looking.
func (i *Image) lacking(ctx context.Context, config string) ([]string, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return nil, fmt.Errorf("read the kernel's configuration: %w", err)
	}
	var lacks []string
	if !strings.Contains(string(text), "\nCONFIG_NETKIT=") {
		lacks = append(lacks, string(Netkit))
	}
	path, args, env := i.Emulator()
	devices, err := run(ctx, "", env, path, append(args, "-device", "help")...)
	if err != nil {
		return nil, fmt.Errorf("ask QEMU for its devices: %w", err)
	}
	if !strings.Contains(devices, `name "igb"`) {
		lacks = append(lacks, string(Cards))
	}
	return lacks, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Sync(), out.Close(), in.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", filepath.Base(from), err)
	}
	return nil
}

// Remove removes all images, and returns the folder in which they were.
func Remove(ctx context.Context, o Options) (string, error) {
	dir, err := o.folder()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.RemoveAll(dir), unlock())
}
