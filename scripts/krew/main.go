// Command krew prints the manifest by which Krew, the plugin manager of kubectl, installs netdelta from the archives of a release.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: krew MANIFEST VERSION URL ARCHIVE...\n\nMANIFEST has all but version and platforms; URL is the folder that archives are published in.")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "krew: %v\n", err)
		os.Exit(1)
	}
}

// plugin is a manifest of Krew (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest), as far as it is used here.
type plugin struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       spec     `yaml:"spec"`
}

type metadata struct {
	Name string `yaml:"name"`
}

type spec struct {
	Version          string     `yaml:"version"`
	Homepage         string     `yaml:"homepage,omitempty"`
	ShortDescription string     `yaml:"shortDescription"`
	Description      string     `yaml:"description"`
	Caveats          string     `yaml:"caveats,omitempty"`
	Platforms        []platform `yaml:"platforms"`
}

type platform struct {
	Selector selector `yaml:"selector"`
	URI      string   `yaml:"uri"`
	SHA256   string   `yaml:"sha256"`
	Files    []move   `yaml:"files"`
	Bin      string   `yaml:"bin"`
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

// move is a file that is taken out of the archive.
type move struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
}

// run reads the manifest, adds the archives, and prints it if Krew would take it.
func run(manifest, version, base string, archives []string, out io.Writer) error {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	var p plugin
	if err := yaml.Load(text, &p, yaml.WithKnownFields()); err != nil {
		return fmt.Errorf("read the manifest %s: %w", manifest, err)
	}
	p.Spec.Version = semantic(version)
	for _, archive := range archives {
		added, err := describe(archive, base)
		if err != nil {
			return err
		}
		p.Spec.Platforms = append(p.Spec.Platforms, added)
	}
	if err := check(p); err != nil {
		return fmt.Errorf("krew would not take the manifest: %w", err)
	}
	text, err = yaml.Dump(&p)
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// archiveName is how make dist names archives: its folder inside has the same name.
var archiveName = regexp.MustCompile(`^(netdelta-.+-(linux)-([a-z0-9]+))\.tar\.gz$`)

// describe makes a platform of an archive.
func describe(archive, base string) (platform, error) {
	found := archiveName.FindStringSubmatch(filepath.Base(archive))
	if found == nil {
		return platform{}, fmt.Errorf("%s is no archive of a release: those are named netdelta-VERSION-OS-PROCESSOR.tar.gz", archive)
	}
	file, err := os.Open(archive)
	if err != nil {
		return platform{}, fmt.Errorf("read the archive: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return platform{}, fmt.Errorf("read the archive %s: %w", archive, err)
	}
	address, err := url.JoinPath(base, filepath.Base(archive))
	if err != nil {
		return platform{}, fmt.Errorf("the folder that archives are published in: %w", err)
	}
	return platform{
		Selector: selector{map[string]string{"os": found[2], "arch": found[3]}}, URI: address, SHA256: hex.EncodeToString(sum.Sum(nil)),
		Files: []move{{found[1] + "/netdelta", "."}, {found[1] + "/netdelta-agent", "."}, {found[1] + "/LICENSE", "."}}, Bin: "netdelta",
	}, nil
}

var (
	// version is one as https://semver.org has it, with the v that Krew wants.
	version = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	name    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	digest  = regexp.MustCompile(`^[a-f0-9]{64}$`)
)

// semantic is a version as Krew takes it. A build that is no release is one before the first.
func semantic(text string) string {
	if version.MatchString(text) {
		return text
	}
	return "v0.0.0-" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, text)
}

// longestShort is how long a short description may be for a list in a terminal.
const longestShort = 50

// check is what Krew checks of a manifest, and what its guide asks for beside that.
func check(p plugin) error {
	var all []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	want(p.APIVersion == "krew.googlecontainertools.github.com/v1alpha2" && p.Kind == "Plugin", "it is a %s of %s", p.Kind, p.APIVersion)
	want(name.MatchString(p.Metadata.Name), "the name %q", p.Metadata.Name)
	want(version.MatchString(p.Spec.Version), "the version %q is no semantic one", p.Spec.Version)
	short := p.Spec.ShortDescription
	want(short != "" && len(short) <= longestShort && !strings.ContainsAny(short, "\r\n") && !strings.HasSuffix(short, "."),
		"the short description %q: at most %d characters on one line, without a full stop", short, longestShort)
	want(p.Spec.Description != "", "it has no description")
	want(len(p.Spec.Platforms) > 0, "it has no platform")
	for i, at := range p.Spec.Platforms {
		address, err := url.Parse(at.URI)
		want(err == nil && address.Scheme == "https" && address.Host != "", "platform %d: the address %q: need https://HOST/...", i, at.URI)
		want(digest.MatchString(at.SHA256), "platform %d: the checksum %q", i, at.SHA256)
		want(at.Bin != "" && filepath.IsLocal(at.Bin), "platform %d: the program %q", i, at.Bin)
		want(at.Selector.MatchLabels["os"] != "" && at.Selector.MatchLabels["arch"] != "" && len(at.Selector.MatchLabels) == 2, "platform %d: the selector %v", i, at.Selector.MatchLabels)
		want(len(at.Files) > 0, "platform %d: it takes no file", i)
		for _, f := range at.Files {
			want(filepath.IsLocal(f.From) && filepath.IsLocal(f.To), "platform %d: the file %q to %q", i, f.From, f.To)
		}
	}
	return errors.Join(all...)
}
