package endtoend

import (
	"strings"
	"testing"
)

const good = `{"schema":"1","run":"r","seed":1,"deltas":[{"network":"bridge","baseline":"host","metric":"p50","ratio":1.2,"ratio_low":1.1,
"ratio_high":1.3,"verdict":"slower"}],"null":[{"network":"host","baseline":"host","metric":"p50","ratio":1.0,"verdict":"unresolved"}]}`

func TestRead(t *testing.T) {
	a, err := read([]byte(good))
	if err != nil || strings.Join(a.networks(), " ") != "bridge" {
		t.Errorf("a good document: %v, %v", a.networks(), err)
	}
	for _, change := range [][2]string{
		{`"null":[{`, `"nil":[{`},
		{`"ratio_low":1.1`, `"ratio_low":1.25`},
		{`"ratio_high":1.3`, `"ratio_high":1.15`},
		{`"slower"`, `"better"`},
		{`"unresolved"`, `"same"`},
		{`"seed":1,`, ``},
		{`]}`, `]}{}`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%q is not in the good document", change[0])
		}
		if _, err := read([]byte(bad)); err == nil {
			t.Errorf("a document with %q for %q is taken for good", change[1], change[0])
		}
	}
}
