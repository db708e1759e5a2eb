// Package page is what all pages that netdelta writes have in common.
package page

import (
	"crypto/sha256"
	"encoding/base64"
)

// Policy is the content security policy of a page with one script and one style of its own: the browser runs these two,
// known by their hashes, and loads nothing from anywhere.
func Policy(script, style string) string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + hash(script) + "; style-src " + hash(style) + "; base-uri 'none'; form-action 'none'"
}
