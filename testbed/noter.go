package testbed

// Noter is a testbed that may have something to say of itself that its readers must know: which of its conditions it could
// not meet everywhere, for one.
type Noter interface {
	// Notes are sentences on the testbed as it is now.
	Notes() []string
}
