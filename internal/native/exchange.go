package native

// Exchange is a message out and a message in on one socket, in the form that RoundTrip and Answer take. It fills a cache
// line; so does, nearly, the code that works on it. That is why they exist: a round trip through the kernel evicts most of a
// processor's first-level caches, and each further line of code that a loop must fetch again costs nanoseconds.
type Exchange struct {
	FD      int64
	Out, In uintptr // addresses in an arena
	Size    int64   // of the message, both ways
	// Start and End are the time stamp counter before and after, where there is one.
	Start, End int64
	// Sent and Got are the results of the last send and receive: bytes, or a negative error number.
	Sent, Got int64
	// Served counts what Answer has answered.
	Served int64
}
