// Package release tests the release: that netdelta can be published anywhere, and that all that `make dist` makes can be installed.
package release
