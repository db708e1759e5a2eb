package machine

import (
	"runtime/debug"
	"testing"
)

// TestVersionOf: a release is named by its version, all else by the release before it and the revision.
func TestVersionOf(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	at := debug.BuildSetting{Key: "vcs.revision", Value: revision}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, c := range []struct {
		main     string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", nil, "v1.2.3"}, // go install MODULE@v1.2.3
		{"v1.2.4-0.20260102030405-0123456789ab", nil, "v1.2.4-0.20260102030405-0123456789ab"}, // go install MODULE@REVISION
		{"v1.2.3", []debug.BuildSetting{at}, "v1.2.3"},                                        // a checkout of the tag
		{"v1.2.3+dirty", []debug.BuildSetting{at, changed}, Release + "+0123456789ab.modified"},
		{"v1.2.4-0.20260102030405-0123456789ab", []debug.BuildSetting{at}, Release + "+0123456789ab"},
		{"v0.0.0-20260102030405-0123456789ab+dirty", []debug.BuildSetting{at, changed}, Release + "+0123456789ab.modified"},
		{"(devel)", nil, Release + "+unknown"}, // the sources without their history
		{"", nil, Release + "+unknown"},
	} {
		if got := VersionOf(&debug.BuildInfo{Main: debug.Module{Version: c.main}, Settings: c.settings}); got != c.want {
			t.Errorf("%q with %v is %s, want %s", c.main, c.settings, got, c.want)
		}
	}
}
