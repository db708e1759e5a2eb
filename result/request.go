package result

// Whether what a network adds to a request matters: is beyond the run's margin.
const (
	MattersYes     = "yes"
	MattersNo      = "no"
	MattersUnknown = "unknown"
)

// Request is a request of the user's own, with what each network is of it.
type Request struct {
	Took   float64        `json:"took"`  // in nanoseconds
	Calls  int            `json:"calls"` // across the network, one after the other
	Shares []RequestShare `json:"shares"`
}

// RequestShare is what one network adds to a request, against the baseline.
type RequestShare struct {
	Network  string `json:"network"`
	Baseline string `json:"baseline"`
	Setting
	Path string `json:"path"`
	// Added is what all calls take more, in nanoseconds, and Share what part of the request that is. They have intervals where the delta
	// that they rest on has one.
	Added     float64  `json:"added"`
	AddedLow  *float64 `json:"added_low"`
	AddedHigh *float64 `json:"added_high"`
	Share     float64  `json:"share"`
	ShareLow  *float64 `json:"share_low"`
	ShareHigh *float64 `json:"share_high"`
	Matters   string   `json:"matters"` // yes, no, unknown
}
