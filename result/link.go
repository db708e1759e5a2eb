package result

// LinkUse is how much of a bond's traffic one of its links carried in the bursts of a trial.
type LinkUse struct {
	// Device sent the bytes, one of several that belong to Bond: "node0/eth0p1" of "node0/eth0", and at the far ends of the same
	// links "switch/node0p1" of "switch/node0".
	Device string `json:"device"`
	Bond   string `json:"bond"`
	// Sent is in bytes, with all headers; Share is its part of what all links of the bond sent, from 0 to 1.
	Sent  int64   `json:"sent"`
	Share float64 `json:"share"`
}
