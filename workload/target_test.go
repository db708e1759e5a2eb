package workload_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"netdelta/result"
	"netdelta/workload"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"http://web.shop.svc:8080/file":    "http://web.shop.svc:8080/file",
		"HTTP://Web.shop.svc.":             "http://web.shop.svc/",
		"http://web:80?size=1&b=2":         "http://web/?size=1&b=2",
		"http://10.96.0.17/a%20b/c@d:e":    "http://10.96.0.17/a%20b/c@d:e",
		"http://[FD00::1]:81/":             "http://[fd00::1]:81/",
		"mysql://root@db.shop.svc/sb":      "mysql://root@db.shop.svc/sb",
		"mysql://u:p%40ss:w@rd@db:3306/sb": "mysql://u@db/sb",
		"https://web/":                     "https://web/",
	} {
		got, err := workload.ParseTarget(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
	got, err := workload.ParseTarget("mysql://u:p%40ss:w@rd@db:3306/sb")
	if err != nil || got.Password.Reveal() != "p@ss:w@rd" || got.User != "u" || got.Database() != "sb" || got.Port != 3306 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestParseTargetWrong: each error says where, and what to do.
func TestParseTargetWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                    `target "", character 1: it is empty; write it as http://`,
		"web.shop.svc:8080/f": `character 1: it has no scheme; did you mean "http://web.shop.svc:8080/f"? Schemes are http, https, mysql`,
		"http:/web/f":         `character 5: two slashes have to follow the scheme; did you mean "http://web/f"?`,
		"htpp://web/":         `character 1: unknown scheme "htpp"; did you mean "http"? schemes are http, https, mysql`,
		"mariadb://u@db/x":    `did you mean "mysql"?`,
		"gopher://web/":       `unknown scheme "gopher"; schemes are http, https, mysql`,
		"http://web:eighty/":  `character 12: this is no port; 1 to 65535`,
		"http://web:0/":       `character 12: this is no port`,
		"http://web:70000/":   `character 12: this is no port`,
		"http://web/a b":      `character 13: this character can't be in a URL; write it as %20`,
		"http://web/ä":        `character 12: this character can't be in a URL; write it as %C3`,
		"http://web/#top":     `character 12: a fragment is never sent to a server`,
		"http://web/%zz":      `character 12: a % begins no %XX`,
		"http:///file":        `character 8: the host is missing`,
		"http://web_1/":       `character 11: a name has letters, digits, dashes and dots`,
		"http://a..b/":        `character 10: "" is no part of a name`,
		"http://-a/":          `"-a" is no part of a name`,
		"http://localhost/":   `localhost is each client's own pod`,
		"http://127.0.0.1/":   `this address is that of no endpoint in a cluster`,
		"http://1.2.3/":       `this is no address of IPv4`,
		"http://[::1/":        `the bracket is not closed`,
		"http://[web]/":       `this is no address of IPv6`,
		"http://[fd00::1]x/":  `only a port can follow the address`,
		"http://user@web/":    `a user can't be had by http`,
		"mysql://db/x":        `the user is missing; write mysql://USER@db/DATABASE`,
		"mysql://u@db":        `the database is missing; write mysql://u@db/DATABASE`,
		"mysql://u@db/a/b":    `character 15: this is no name of a database`,
		"mysql://:p@db/x":     `this is no name of a user`,
		"http://" + strings.Repeat("a", 64) + "/": `is no part of a name`,
		"http://web/" + strings.Repeat("a", 3000): `it has 3011 characters; no more than 2048 are taken`,
	} {
		_, err := workload.ParseTarget(text)
		var bad *workload.TargetError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
}

// TestSecrets: whatever is wrong with a target, its password is in no error, and in nothing that is printed.
func TestSecrets(t *testing.T) {
	for _, text := range []string{
		"mysql://u:hunter2@db/x", "mysql://u:hunter2@/x", "mysql://u:hunter2@db:x/x", "mysql:u:hunter2@db/x", "u:hunter2@db/x", "msql://u:hunter2@db/x",
		"mysql://u:hunter2@db", "mysql://u:hunter2 @db/x", "mysql://u:hunter2%@db/x", "mysql://u:hunter2/@db/x", "mysql://u:/hunter2@db/x", "http://u:hunter2@web/",
		"mysql://u:hunter2?@db/x", "mysql://u:hunter2@db/x#y", "mysql://u:a@hunter2@db/x", "mysql://u:hunter2@db/" + strings.Repeat("x", 3000),
	} {
		target, err := workload.ParseTarget(text)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error tells: %v", text, err)
		}
		data, errJSON := json.Marshal(target)
		for _, shown := range []string{fmt.Sprint(target), fmt.Sprintf("%+v", target), fmt.Sprintf("%#v", target), fmt.Sprintf("%s %q %x", target.Password, target.Password, target.Password), string(data)} {
			if errJSON != nil || strings.Contains(shown, "hunter2") {
				t.Errorf("%s: it is shown: %s, %v", text, shown, errJSON)
			}
		}
	}
}

func TestCheckTarget(t *testing.T) {
	for text, want := range map[string]string{
		"http://web/":            "",
		"":                       "",
		"https://web/":           "https is unsupported: netdelta's client speaks plain HTTP; name the port of plain HTTP",
		"mysql://u@db/x":         "this workload does not speak mysql; name a target of http, or measure this one by --workloads oltp",
		"mysql://u:hunter2@db/x": "a password has no place in a study",
		"web":                    "it has no scheme",
	} {
		err := workload.CheckTarget(result.Params{Target: text}, workload.SchemeHTTP)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// FuzzParseTarget: what is read is printed as it can be read again, and errors have a place.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"http://web.shop.svc:8080/file?a=b", "mysql://u:p@db/x", "http://[::1]:80", "https://a@b", "://", "mysql://u:p/q@db/x", "http://web/%", "a:b@c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := workload.ParseTarget(text)
		if err != nil {
			var bad *workload.TargetError
			if !errors.As(err, &bad) || bad.Column < 1 || bad.Column > len(bad.Text)+1 {
				t.Fatalf("%q: got %#v", text, err)
			}
			return
		}
		again, err := workload.ParseTarget(target.String())
		target.Password = workload.Secret{}
		if err != nil || again != target {
			t.Fatalf("%q: printed as %q and read as %+v, %v", text, target, again, err)
		}
	})
}
