package native

// Stamped says that RoundTrip sets Start and End.
const Stamped = true

// RoundTrip sends a message and receives one, with one system call each. It returns after the send when that was not whole.
//
//go:noescape
func RoundTrip(e *Exchange)

// Answer receives and sends messages until either call gives anything but a whole message. Got tells which: it is Size when
// it was the send.
//
//go:noescape
func Answer(e *Exchange)
