package machine

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Release is the release that these sources are, or come after; scripts/release.sh writes it.
const Release = "v0.2.0"

// shortRevision is how many characters of a revision tell it from others.
const shortRevision = 12

// Build is what a program was built from, and by what.
type Build struct {
	Version  string `json:"version"`            // by VersionOf
	Revision string `json:"revision,omitempty"` // of the sources; "" where the toolchain could not read it
	Time     string `json:"time,omitempty"`     // of the revision, as RFC 3339
	Modified bool   `json:"modified"`           // the sources were not those of the revision alone
	Go       string `json:"go"`                 // "go1.26.8"
	Platform string `json:"platform"`           // "linux/amd64"
}

// ThisBuild is what this program was built from.
func ThisBuild() Build {
	b := Build{Version: Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Revision, b.Time, b.Modified = setting(info, "vcs.revision"), setting(info, "vcs.time"), setting(info, "vcs.modified") == "true"
	}
	return b
}

// Version is this program's version, by VersionOf.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return VersionOf(info)
}

// VersionOf is the version of a netdelta: v0.2.0 of a release, that is where the module was installed by its version or the revision has
// a tag; else the release before it with the revision, v0.2.0+78fd5ee8c1b2, and .modified where sources were changed since. Where the
// toolchain could read no revision it is v0.2.0+unknown.
func VersionOf(info *debug.BuildInfo) string {
	revision := setting(info, "vcs.revision")
	revision = revision[:min(shortRevision, len(revision))]
	modified := setting(info, "vcs.modified") == "true"
	// A version that the toolchain made up for a revision without a tag ends with it.
	if v := info.Main.Version; v != "" && v != "(devel)" && !modified && (revision == "" || !strings.Contains(v, revision)) {
		return v
	}
	switch {
	case revision == "":
		return Release + "+unknown"
	case modified:
		return Release + "+" + revision + ".modified"
	}
	return Release + "+" + revision
}

// setting is what the toolchain wrote into a program under a key; "" for nothing.
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
