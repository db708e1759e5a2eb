// Package image builds what a guest boots from: a kernel, an initramfs and QEMU itself, of the distribution's packages, unpacked
// into a folder of the user's own. Nothing is installed, and the host's own package state is only read.
package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// form is the version of how images are made of packages: another form is another image.
const form = 1

// describes is the name of the file that describes an image, written last.
const describes = "image.json"

// Image is a built image. It is plain data.
type Image struct {
	Dir string `json:"-"` // absolute
	// Suite is the part of the distribution that kernel and QEMU are of: "bookworm-backports".
	Suite string `json:"suite"`
	// Kernel and QEMU are their versions: "6.12.95+deb12-amd64", "1:10.0.2+ds-2~bpo12+1".
	Kernel string `json:"kernel"`
	QEMU   string `json:"qemu"`
	// Lacks says what an image of newer packages would have in addition.
	Lacks []string `json:"lacks,omitempty"`
	// Packages are all that it is made of, as NAME=VERSION.
	Packages []string `json:"packages"`
	// Files are sizes and SHA-256 sums of what a boot reads, by path within Dir.
	Files map[string]File `json:"files"`
}

// File is what is known of a file of an image.
type File struct {
	Size int64  `json:"size"`
	SHA  string `json:"sha256"`
}

// Paths of an image's files.
const (
	kernelFile = "vmlinuz"
	qemuFolder = "qemu"
	qemuFile   = qemuFolder + "/usr/bin/qemu-system-x86_64"
)

// Archive is a part of what a guest finds in its root folder.
type Archive string

// The archives. Base is needed to boot; Services is what real workloads are made of, and needs the libraries of Tools; the others
// are tools for tests and for looking around.
const (
	Base     Archive = "base"
	Tools    Archive = "tools"
	CNI      Archive = "cni"
	Services Archive = "services"
)

func (a Archive) file() string { return string(a) + ".cpio" }

// files are all that a boot may read, below an image's folder.
func files() []string {
	return []string{kernelFile, qemuFile, Base.file(), Tools.file(), CNI.file(), Services.file()}
}

// KernelFile is the path of the kernel.
func (i Image) KernelFile() string { return filepath.Join(i.Dir, kernelFile) }

// ArchiveFile is the path of an archive, in the kernel's format.
func (i Image) ArchiveFile(a Archive) string { return filepath.Join(i.Dir, a.file()) }

// Emulator is QEMU's program, the arguments that lead it to its own files, and the environment that it needs.
func (i Image) Emulator() (path string, args, env []string) {
	usr := filepath.Join(i.Dir, qemuFolder, "usr")
	args = []string{}
	for _, share := range []string{"share/qemu", "share/seabios", "lib/ipxe/qemu"} {
		args = append(args, "-L", filepath.Join(usr, share))
	}
	libraries := filepath.Join(usr, "lib", triple)
	root := filepath.Join(i.Dir, qemuFolder, "lib", triple)
	env = []string{"QEMU_MODULE_DIR=" + filepath.Join(libraries, "qemu"), "LD_LIBRARY_PATH=" + libraries + ":" + root}
	return filepath.Join(i.Dir, qemuFile), args, env
}

// Feature is something that older packages don't have.
type Feature string

// The features that were looked for.
const (
	Netkit Feature = "netkit (a kernel of 6.7 or newer)"
	Cards  Feature = "network cards with virtual functions (QEMU 8.0 or newer)"
)

// Missing says whether the image lacks a feature.
func (i Image) Missing(f Feature) bool { return slices.Contains(i.Lacks, string(f)) }

// ID identifies the image: it is the hash of what the image is made of.
func (i Image) ID() string { return filepath.Base(i.Dir) }

// DamagedError says that a built image is not what was built.
type DamagedError struct {
	Dir string
	Why string
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the guest's image in %s is damaged: %s; build it again: netdelta vm build", e.Dir, e.Why)
}

// read reads what is known of an image.
func read(dir string) (Image, error) {
	text, err := os.ReadFile(filepath.Join(dir, describes))
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Stat(dir); there == nil {
			return Image{}, &DamagedError{dir, describes + " is missing"}
		}
		return Image{}, err
	}
	if err != nil {
		return Image{}, fmt.Errorf("read the guest's image: %w", err)
	}
	i := Image{Dir: dir}
	if err := json.Unmarshal(text, &i); err != nil {
		return Image{}, &DamagedError{dir, describes + ": " + err.Error()}
	}
	if len(i.Files) == 0 {
		return Image{}, &DamagedError{dir, describes + " names no files"}
	}
	for _, name := range files() {
		if _, has := i.Files[name]; !has {
			return Image{}, &DamagedError{dir, "another version of netdelta built it, without " + name}
		}
	}
	return i, nil
}

// open reads an image and compares its files with what they were when it was built. The error is a *DamagedError where they
// differ, and an fs.ErrNotExist where there is no image.
func open(dir string) (Image, error) {
	i, err := read(dir)
	if err != nil {
		return Image{}, err
	}
	for _, name := range files() {
		was := i.Files[name]
		is, err := measure(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return Image{}, &DamagedError{dir, name + " is missing"}
		case err != nil:
			return Image{}, fmt.Errorf("read the guest's image: %w", err)
		case is.Size != was.Size:
			return Image{}, &DamagedError{dir, fmt.Sprintf("%s has %d bytes and had %d", name, is.Size, was.Size)}
		case is != was:
			return Image{}, &DamagedError{dir, name + " has other contents than when it was built"}
		}
	}
	return i, nil
}

// seal describes the image in its folder, after all else is on the disk.
func (i *Image) seal() error {
	i.Files = map[string]File{}
	for _, name := range files() {
		var err error
		if i.Files[name], err = measure(filepath.Join(i.Dir, name)); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return fmt.Errorf("describe the image: %w", err)
	}
	return writeSynced(filepath.Join(i.Dir, describes), append(text, '\n'))
}

func measure(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return File{}, fmt.Errorf("read %s: %w", path, err)
	}
	return File{Size: n, SHA: hex.EncodeToString(sum.Sum(nil))}, nil
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// identify is the name of the folder of an image made of these packages.
func identify(suite string, packages []string) string {
	sorted := slices.Sorted(slices.Values(packages))
	sum := sha256.Sum256(fmt.Appendf(nil, "form %d\n%s\n%s\n%s\n", form, suite, strings.Join(sorted, "\n"), strings.Join(wanted(), "\n")))
	return hex.EncodeToString(sum[:idSize])
}

// idSize is how many bytes of a hash name an image.
const idSize = 8

// surveyFile keeps the last survey, in the folder of the images.
const surveyFile = "survey.json"

// survey is what a program found inside a guest of an image: another program may need other things.
type survey struct {
	Image    string          `json:"image"`
	Program  string          `json:"program"` // its hash
	Findings json.RawMessage `json:"findings"`
}

// Survey reads into findings what this program found when it last looked inside a guest of the image; known is false where it did not.
func (i Image) Survey(findings any) (known bool, err error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(i.Dir), surveyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read what was found in the guest: %w", err)
	}
	hash, err := programHash()
	if err != nil {
		return false, err
	}
	var s survey
	// What can't be read, or is of another program or image, is found out anew.
	return json.Unmarshal(text, &s) == nil && s.Image == i.ID() && s.Program == hash && json.Unmarshal(s.Findings, findings) == nil, nil
}

// KeepSurvey keeps what this program found inside a guest of the image, as JSON.
func (i Image) KeepSurvey(findings []byte) error {
	hash, err := programHash()
	if err != nil {
		return err
	}
	text, err := json.Marshal(survey{i.ID(), hash, findings})
	if err != nil {
		return fmt.Errorf("keep what was found in the guest: %w", err)
	}
	// Where it can't be kept it is found out again.
	_ = os.WriteFile(filepath.Join(filepath.Dir(i.Dir), surveyFile), text, 0o644)
	return nil
}

// programHash tells builds of this program apart.
func programHash() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's file: %w", err)
	}
	f, err := os.Open(self)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}
