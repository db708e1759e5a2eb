package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"netdelta/testbed"
)

// keyring is where Debian's package of that name puts the keys that its archive is signed by.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// apt is the package manager with a state of netdelta's own: lists and caches in dir. The host's configuration is obeyed as to
// proxies and credentials; the host's list of installed packages is read.
type apt struct {
	dir   string
	suite string // the suite that versions are preferred from
}

// archive is a part of a package archive that the host is configured with.
type archive struct{ uri, suite string }

// distribution is the code name of the host's release.
func distribution() (string, error) {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", fmt.Errorf("find out which distribution this is: %w", err)
	}
	named := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			named[key] = strings.Trim(value, `"'`)
		}
	}
	if named["ID"] != "debian" || named["VERSION_CODENAME"] == "" {
		return "", notHere(fmt.Sprintf("Debian's packages, and this is %s", named["PRETTY_NAME"]), "run netdelta on Debian, or in a container of it")
	}
	return named["VERSION_CODENAME"], nil
}

// notHere says that no guest can be built on this machine.
func notHere(need, fix string) error {
	return &testbed.UnsupportedError{Feature: "building a guest", Need: need, Fix: fix}
}

// newAPT prepares a state in dir. Suites that the archive does not have are left out.
func newAPT(ctx context.Context, dir string) (*apt, error) {
	for _, tool := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, notHere("the program "+tool, "run netdelta on Debian, or in a container of it")
		}
	}
	release, err := distribution()
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	from, err := configured(ctx, release)
	if err != nil {
		return nil, err
	}
	a := &apt{dir: dir}
	var refused error
	for _, suite := range []string{release + "-backports", release} {
		all := from
		if suite != release {
			all = append(slices.Clone(from), archive{from[0].uri, suite})
		}
		if err := a.write(all); err != nil {
			return nil, err
		}
		a.suite = suite
		_, err := a.run(ctx, "", "apt-get", "-q", "update", "--error-on=any")
		if err == nil {
			return a, nil
		}
		refused = errors.Join(refused, err)
	}
	return nil, fmt.Errorf("get the lists of Debian's packages: %w; is the network there, and does 'apt-get update' work?", refused)
}

// configured are the host's own archives of the release: that itself, first, then its updates and security fixes. Without these,
// a package that the host has in a fixed version could not be found.
func configured(ctx context.Context, release string) ([]archive, error) {
	said, err := run(ctx, "", nil, "apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
	if err != nil {
		return nil, fmt.Errorf("ask apt which archives it is configured with: %w", err)
	}
	var found []archive
	for _, suite := range []string{release, release + "-updates", release + "-security"} {
		for line := range strings.Lines(said) {
			if f := strings.Fields(line); len(f) == 3 && f[1] == suite && f[2] == "main" {
				found = append(found, archive{f[0], suite})
				break
			}
		}
		if len(found) == 0 {
			return nil, notHere("an archive of Debian "+release+" among apt's sources", "add it to /etc/apt/sources.list")
		}
	}
	return found, nil
}

// write puts the configuration of a state of our own into its folder.
func (a *apt) write(from []archive) error {
	signed := ""
	if _, err := os.Stat(keyring); err == nil {
		signed = "Signed-By: " + keyring + "\n"
	}
	sources := ""
	for _, f := range from {
		sources += fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n%s\n", f.uri, f.suite, signed)
	}
	// What runs after the host's own updates must not run after ours.
	settings := `#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "DIR/debian.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "DIR/lists";
Dir::Cache "DIR";
Dir::Cache::archives "DIR/archives";
Debug::NoLocking "1";
APT::Sandbox::User "root";
APT::Install-Recommends "0";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
`
	err := os.WriteFile(filepath.Join(a.dir, "debian.sources"), []byte(sources), 0o644)
	settings = strings.ReplaceAll(settings, "DIR", a.dir)
	return errors.Join(err, os.WriteFile(filepath.Join(a.dir, "apt.conf"), []byte(settings), 0o644))
}

func (a *apt) run(ctx context.Context, dir, tool string, args ...string) (string, error) {
	return run(ctx, dir, nil, tool, append([]string{"-c", filepath.Join(a.dir, "apt.conf"), "-o", "APT::Default-Release=" + a.suite}, args...)...)
}

var (
	installs = regexp.MustCompile(`(?m)^Inst (\S+) (?:\[\S+\] )?\((\S+) `)
	imageOf  = regexp.MustCompile(`(?m)^Depends:.*?(linux-image-[0-9]\S*) \(= ([^)\s]+)\)`)
)

// kernel finds the kernel's package, as NAME=VERSION.
func (a *apt) kernel(ctx context.Context) (string, error) {
	said, err := a.run(ctx, "", "apt-cache", "show", "--no-all-versions", "linux-image-amd64")
	if err != nil {
		return "", missingPackage("linux-image-amd64", a.suite, err)
	}
	found := imageOf.FindStringSubmatch(said)
	if found == nil {
		return "", missingPackage("linux-image-amd64", a.suite, errors.New("it names no kernel that it depends on"))
	}
	return found[1] + "=" + found[2], nil
}

// closure is what installing the packages here would install, as NAME=VERSION, and each of the packages whether or not the host
// has it.
func (a *apt) closure(ctx context.Context, names []string) ([]string, error) {
	said, err := a.run(ctx, "", "apt-get", append([]string{"-s", "--reinstall", "install"}, names...)...)
	if err != nil {
		return nil, missingPackage(strings.Join(names, ", "), a.suite, err)
	}
	var all []string
	have := map[string]bool{}
	for _, m := range installs.FindAllStringSubmatch(said, -1) {
		have[m[1]] = true
		all = append(all, m[1]+"="+m[2])
	}
	for _, n := range names {
		if !have[n] {
			return nil, missingPackage(n, a.suite, errors.New("apt would not install it"))
		}
	}
	return all, nil
}

func missingPackage(name, suite string, err error) error {
	return fmt.Errorf("find the package %s in %s: %w; see 'apt-cache policy %s'", name, suite, err, strings.Fields(name)[0])
}

// fetch downloads packages into dir and returns their files by name.
func (a *apt) fetch(ctx context.Context, dir string, packages []string) (map[string]string, error) {
	if _, err := a.run(ctx, dir, "apt-get", append([]string{"-q", "download"}, packages...)...); err != nil {
		return nil, fmt.Errorf("download %d packages of %s: %w", len(packages), a.suite, err)
	}
	files := map[string]string{}
	for _, p := range packages {
		name, _, _ := strings.Cut(p, "=")
		found, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("download %s: apt left %d files of it in %s", p, len(found), dir)
		}
		files[name] = found[0]
	}
	return files, nil
}

// unpack unpacks a package's files below a folder. Nothing of the package is run.
func unpack(ctx context.Context, deb, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	if _, err := run(ctx, "", nil, "dpkg-deb", "-x", deb, into); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
	}
	return nil
}

// run runs a program in a folder, with some more environment, and returns what it wrote, with the end of its complaints in the error.
func run(ctx context.Context, dir string, env []string, tool string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"), env...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(complaints.String())
		const kept = 800
		if len(said) > kept {
			said = "... " + said[len(said)-kept:]
		}
		return "", fmt.Errorf("%s: %w: %s", tool, errors.Join(err, ctx.Err()), said)
	}
	return out.String(), nil
}
