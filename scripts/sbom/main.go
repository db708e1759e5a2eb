// Command sbom prints what a Go program is made of, as a CycloneDX document: the modules that the toolchain wrote into it.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %v\n", err)
		os.Exit(1)
	}
}

func run(program string, out io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading what %s is made of: %w", program, err)
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(describe(info))
}

// document is the part of CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/) that says what a program is made of.
type document struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func describe(info *debug.BuildInfo) document {
	program := component{Type: "application", Name: info.Main.Path, Version: info.Main.Version}
	program.PURL = purl(program.Name, program.Version)
	program.Ref = program.PURL
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED", "-trimpath", "vcs.revision", "vcs.modified":
			program.Properties = append(program.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	standard := component{Type: "library", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
	standard.PURL = purl(standard.Name, standard.Version)
	standard.Ref = standard.PURL
	components := []component{standard}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		c := component{Type: "library", Name: module.Path, Version: module.Version, PURL: purl(module.Path, module.Version)}
		c.Ref = c.PURL
		if module.Sum != "" {
			c.Properties = []property{{"go:module:sum", module.Sum}}
		}
		components = append(components, c)
	}
	needs := dependency{Ref: program.Ref}
	for _, c := range components {
		needs.DependsOn = append(needs.DependsOn, c.Ref)
	}
	return document{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{program}, Components: components, Dependencies: []dependency{needs},
	}
}

// purl is a module's package URL (https://github.com/package-url/purl-spec): capitals of a path are kept, as Go does.
func purl(module, version string) string {
	if version == "" || version == "(devel)" {
		return "pkg:golang/" + module
	}
	return "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
}
