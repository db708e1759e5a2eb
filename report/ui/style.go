package ui

// Style is how a piece of text looks. The zero Style is plain.
type Style string

// The styles: the parameters of the terminal's SGR sequence. The colours come from the terminal's own palette, so that
// they suit its background.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
)

// Paint gives text a style where the terminal has colours. The text must be clean: see Clean.
func (t Terminal) Paint(s Style, text string) string {
	if !t.Colour || s == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
