package workload

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"netdelta/internal/suggest"
)

// The schemes of targets.
const (
	SchemeHTTP  = "http"
	SchemeHTTPS = "https"
	SchemeMySQL = "mysql"
	// SchemePostgres is of databases of PostgreSQL.
	SchemePostgres = "postgres"
)

// TargetError is the error of a target that can't be read.
type TargetError struct {
	Text    string // the target, without a password
	Column  int    // in Text, from 1
	Problem string
	Fix     string
}

// Error implements error.
func (e *TargetError) Error() string {
	text := fmt.Sprintf("target %q, character %d: %s", e.Text, e.Column, e.Problem)
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// schemes are those that a target may have, with the ports that they mean.
func schemes() map[string]uint16 {
	return map[string]uint16{SchemeHTTP: 80, SchemeHTTPS: 443, SchemeMySQL: 3306, SchemePostgres: 5432}
}

// TargetSchemes are the schemes that targets may have, sorted. Not each can be measured.
func TargetSchemes() []string { return []string{SchemeHTTP, SchemeHTTPS, SchemeMySQL, SchemePostgres} }

// Limits of targets.
const (
	mostTarget   = 2048 // characters
	mostHost     = 253
	mostLabel    = 63
	mostDatabase = 64
	mostUser     = 80
)

// ParseTarget reads the URL of a target: http://HOST[:PORT][/PATH], mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE, or the same with postgres.
// The error is a *TargetError.
func ParseTarget(text string) (Target, error) {
	p := targetParser{text: text, shown: conceal(text)}
	return p.parse()
}

// targetParser reads one target.
type targetParser struct{ text, shown string }

// fail is the error at a place of the text, counted from 0.
func (p targetParser) fail(at int, problem, fix string) (Target, error) {
	at = min(at, len(p.text))
	// What stands behind the password is as far from the end as in the text that was given.
	if over := len(p.text) - len(p.shown); over != 0 && at > secretAt(p.text) {
		at = max(at-over, secretAt(p.text))
	}
	return Target{}, &TargetError{Text: p.shown, Column: at + 1, Problem: problem, Fix: fix}
}

// example is a target as it should be.
const example = "write it as http://web.shop.svc:8080/file or mysql://user@db.shop.svc:3306/database"

func (p targetParser) parse() (Target, error) {
	if p.text == "" {
		return p.fail(0, "it is empty", example)
	}
	if len(p.text) > mostTarget {
		p.shown = p.shown[:min(len(p.shown), 64)] + "..."
		return Target{}, &TargetError{Text: p.shown, Column: 1, Problem: fmt.Sprintf("it has %d characters", len(p.text)), Fix: fmt.Sprintf("no more than %d are taken", mostTarget)}
	}
	for i := range len(p.text) {
		if c := p.text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			if from := secretAt(p.text); i >= from {
				return p.fail(min(i, from), "a character can't be in a URL", "write it as %XX, or give the password by --target-password-file")
			}
			return p.fail(i, "this character can't be in a URL", fmt.Sprintf("write it as %%%02X", c))
		}
	}
	scheme, rest, found := strings.Cut(p.text, "://")
	if !found {
		return p.withoutScheme()
	}
	t := Target{Scheme: strings.ToLower(scheme)}
	port, known := schemes()[t.Scheme]
	if !known {
		return p.unknownScheme(t.Scheme)
	}
	t.Port = port
	at := len(p.text) - len(rest)
	if i := strings.IndexByte(rest, '#'); i >= 0 {
		return p.fail(at+i, "a fragment is never sent to a server", "leave it out")
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority = rest[:i]
	}
	pathAt := at + len(authority)
	t.Path = rest[len(authority):]
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		if bad, err := p.login(&t, authority[:i], at); err != nil {
			return bad, err
		}
		at += i + 1
		authority = authority[i+1:]
	}
	if bad, err := p.host(&t, authority, at); err != nil {
		return bad, err
	}
	return p.finish(t, pathAt)
}

// withoutScheme is the error of a text without "://".
func (p targetParser) withoutScheme() (Target, error) {
	if scheme, rest, found := strings.Cut(p.text, ":"); found {
		if _, known := schemes()[strings.ToLower(scheme)]; known {
			return p.fail(len(scheme), "two slashes have to follow the scheme", "did you mean "+strconv.Quote(conceal(scheme+"://"+strings.TrimLeft(rest, "/")))+"?")
		}
	}
	return p.fail(0, "it has no scheme", "did you mean "+strconv.Quote("http://"+strings.TrimLeft(p.shown, "/"))+"? Schemes are "+strings.Join(TargetSchemes(), ", "))
}

func (p targetParser) unknownScheme(scheme string) (Target, error) {
	fix := "schemes are " + strings.Join(TargetSchemes(), ", ")
	if near, is := suggest.Nearest(scheme, TargetSchemes()); is {
		fix = fmt.Sprintf("did you mean %q? %s", near, fix)
	} else if scheme == "mariadb" {
		fix = fmt.Sprintf("did you mean %q? %s", SchemeMySQL, fix)
	}
	return p.fail(0, fmt.Sprintf("unknown scheme %q", scheme), fix)
}

// login reads user and password.
func (p targetParser) login(t *Target, text string, at int) (Target, error) {
	user, password, _ := strings.Cut(text, ":")
	var err error
	if t.User, err = url.PathUnescape(user); err != nil || t.User == "" || len(t.User) > mostUser || !printable(t.User) {
		return p.fail(at, "this is no name of a user", fmt.Sprintf("1 to %d characters, others than letters and digits as %%XX", mostUser))
	}
	plain, err := url.PathUnescape(password)
	if err != nil {
		return p.fail(at+len(user)+1, "the password has a % that begins no %XX", "write % as %25, or give the password by --target-password-file")
	}
	t.Password = NewSecret(plain)
	return Target{}, nil
}

// printable says whether a text has no control characters.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// host reads host and port.
func (p targetParser) host(t *Target, text string, at int) (Target, error) {
	name, port, hasPort := text, "", false
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return p.fail(at, "the bracket is not closed", "write [ADDRESS]:PORT")
		}
		name = text[1:end]
		if a, err := netip.ParseAddr(name); err != nil || !a.Is6() || a.Zone() != "" {
			return p.fail(at+1, "this is no address of IPv6", "write [ADDRESS]:PORT")
		}
		if port, hasPort = strings.CutPrefix(text[end+1:], ":"); !hasPort && port != "" {
			return p.fail(at+end+1, "only a port can follow the address", "write [ADDRESS]:PORT")
		}
	} else if i := strings.IndexByte(text, ':'); i >= 0 {
		name, port, hasPort = text[:i], text[i+1:], true
	}
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return p.fail(at+len(text)-len(port), "this is no port", "1 to 65535; a / or ? in a password is written as %2F or %3F")
		}
		t.Port = uint16(n)
	}
	t.Host = strings.ToLower(strings.TrimSuffix(name, "."))
	if where, why := badHost(t.Host); why != "" {
		return p.fail(at+where, why, "name a service as NAME.NAMESPACE.svc, or an address")
	}
	return Target{}, nil
}

// badHost says where and why a host is none, "" where it is one.
func badHost(host string) (at int, why string) {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() {
			return 0, "this address is that of no endpoint in a cluster"
		}
		return 0, ""
	}
	switch {
	case host == "":
		return 0, "the host is missing"
	case len(host) > mostHost:
		return mostHost, fmt.Sprintf("a host has %d characters at most", mostHost)
	case host == "localhost":
		return 0, "localhost is each client's own pod"
	case !strings.ContainsFunc(host, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }):
		return 0, "this is no address of IPv4"
	}
	return badName(host)
}

// badName says where and why a name is none, "" where it is one.
func badName(host string) (at int, why string) {
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > mostLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return at, fmt.Sprintf("%q is no part of a name", label)
		}
		if i := strings.IndexFunc(label, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }); i >= 0 {
			return at + i, "a name has letters, digits, dashes and dots"
		}
		at += len(label) + 1
	}
	return 0, ""
}

// finish checks what the scheme asks of the rest.
func (p targetParser) finish(t Target, pathAt int) (Target, error) {
	if _, err := url.PathUnescape(t.Path); err != nil {
		return p.fail(pathAt+strings.IndexByte(t.Path, '%'), "a % begins no %XX", "write % as %25")
	}
	if strings.HasPrefix(t.Path, "?") || t.Path == "" {
		t.Path = "/" + t.Path
	}
	if t.Scheme != SchemeMySQL && t.Scheme != SchemePostgres {
		if t.User != "" {
			return p.fail(len(t.Scheme)+len("://"), "a user can't be had by "+t.Scheme, "leave it out: requests are sent without a login")
		}
		return t, nil
	}
	name := t.Path[1:]
	switch {
	case t.User == "":
		return p.fail(len(t.Scheme)+len("://"), "the user is missing", "write "+t.Scheme+"://USER@"+t.Host+"/DATABASE")
	case name == "":
		return p.fail(pathAt, "the database is missing", "write "+t.Scheme+"://"+t.User+"@"+t.Host+"/DATABASE")
	}
	if i := strings.IndexFunc(name, notInDatabase); i >= 0 || len(name) > mostDatabase {
		return p.fail(pathAt+1+max(i, 0), "this is no name of a database that netdelta takes", fmt.Sprintf("1 to %d letters, digits, dashes and underscores", mostDatabase))
	}
	return t, nil
}

func notInDatabase(r rune) bool {
	return r != '-' && r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}

// secretAt is where a password begins in the text of a target, its length where there is none.
func secretAt(text string) int {
	start := 0
	if i := strings.Index(text, "://"); i >= 0 {
		start = i + len("://")
	}
	end := strings.LastIndexByte(text, '@')
	if end < start {
		return len(text)
	}
	i := strings.IndexByte(text[start:end], ':')
	if i < 0 {
		return len(text)
	}
	return start + i + 1
}

// conceal is a text with what may be a password in it replaced: all between the first colon after the scheme and the last @.
func conceal(text string) string {
	at := secretAt(text)
	if at == len(text) {
		return text
	}
	return text[:at] + masked + text[strings.LastIndexByte(text, '@'):]
}

// String is the target as a URL, in its shortest form and without a password.
func (t Target) String() string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.Port != schemes()[t.Scheme] {
		host += ":" + strconv.Itoa(int(t.Port))
	}
	if t.User != "" {
		host = url.PathEscape(t.User) + "@" + host
	}
	return t.Scheme + "://" + host + t.Path
}

// Database is the name of the database (mysql, postgres).
func (t Target) Database() string { return strings.TrimPrefix(t.Path, "/") }

// wrongScheme is the error of a target that a workload can't speak to.
func wrongScheme(t Target, schemes []string) error {
	e := &TargetError{Text: t.String(), Column: 1, Problem: fmt.Sprintf("this workload does not speak %s", t.Scheme), Fix: "name a target of " + strings.Join(schemes, " or ")}
	switch {
	case t.Scheme == SchemeHTTPS && slices.Contains(schemes, SchemeHTTP):
		e.Problem = "https is unsupported: netdelta's client speaks plain HTTP"
		e.Fix = "name the port of plain HTTP behind what ends TLS, as http://HOST:PORT/PATH"
	case t.Scheme == SchemeMySQL, t.Scheme == SchemePostgres:
		e.Fix += ", or measure this one by --workloads oltp"
	case t.Scheme == SchemeHTTP:
		e.Fix += ", or measure this one by --workloads http"
	}
	return e
}
