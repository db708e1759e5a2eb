// Package page is what all pages that netdelta writes have in common: each is one file that loads nothing from anywhere.
package page

import (
	"bufio"
	"crypto/sha256"
	_ "embed" // the palette
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io"
	"math"
	"strings"
)

// Palette are the colours of pages, by day and by night, as variables.
//
//go:embed palette.css
var Palette string

// Page is a page's template, which has functions for the page's own style and script and for the policy that lets the browser run
// these two.
type Page struct{ layout, style, script string }

// New makes a page of a template, a style and a script, "" for none.
func New(layout, style, script string) Page { return Page{layout, style, script} }

func (p Page) parsed() (*template.Template, error) {
	return template.New("page").Funcs(template.FuncMap{
		"style":  func() template.CSS { return template.CSS(p.style) },
		"script": func() template.JS { return template.JS(p.script) },
		"policy": func() string { return Policy(p.script, p.style) },
	}).Parse(p.layout)
}

// Write fills the page in. The error names what could not be written.
func (p Page) Write(w io.Writer, what string, data any) error {
	t, err := p.parsed()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if err := errors.Join(t.Execute(out, data), out.Flush()); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// Part fills in a template of the page that goes into another page.
func (p Page) Part(name string, data any) (template.HTML, error) {
	t, err := p.parsed()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("write the part %s of a page: %w", name, err)
	}
	return template.HTML(b.String()), nil
}

// Ticks are round values from low to high, at most so many steps apart: 1, 2 or 5 times a power of ten. There are none where high is not
// above low.
func Ticks(low, high float64, most int) []float64 {
	span := high - low
	if !(span > 0) || math.IsInf(span, 0) || most < 1 {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(span/float64(most))))
	for _, times := range []float64{1, 2, 5, 10} {
		if span <= times*step*float64(most)*(1+1e-9) {
			step *= times
			break
		}
	}
	var ticks []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*span; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

// Policy is the content security policy of a page with one script and one style of its own: the browser runs these two,
// known by their hashes, and loads nothing from anywhere.
func Policy(script, style string) string {
	return "default-src 'none'; script-src " + hash(script) + "; style-src " + hash(style) + "; base-uri 'none'; form-action 'none'"
}

// hash is how a policy names a text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Headed is a page that Write has written with a part at its top, which has a style of its own that the page's policy then allows. What is no
// such page stays as it is.
func Headed(written, style, part string) string {
	head, rest, isPage := strings.Cut(written, "<body>")
	before, after, known := strings.Cut(head, "style-src ")
	if !isPage || !known {
		return written
	}
	return before + "style-src " + html.EscapeString(hash(style)) + " " + strings.Replace(after, "</head>", "<style>"+style+"</style>\n</head>", 1) +
		"<body>\n" + part + rest
}

// PolicyOf is the policy that a page which Write has written holds, for the header of who sends it. It stands before anything that comes
// from elsewhere.
func PolicyOf(written string) string {
	_, from, _ := strings.Cut(written, `<meta http-equiv="Content-Security-Policy" content="`)
	policy, _, found := strings.Cut(from, `"`)
	if !found {
		return "default-src 'none'"
	}
	return html.UnescapeString(policy)
}
