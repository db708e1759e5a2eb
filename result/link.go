package result

import "netdelta/unit"

// LinkUse is how much of a bond's traffic one of its links carried in the bursts of a trial.
type LinkUse struct {
	// Device sent the bytes, one of several that belong to Bond: "node0/eth0p1" of "node0/eth0", and at the far ends of the same
	// links "switch/node0p1" of "switch/node0".
	Device string `json:"device"`
	Bond   string `json:"bond"`
	// Sent is in bytes, with all headers; Share is its part of what all links of the bond sent, from 0 to 1.
	Sent  int64   `json:"sent"`
	Share float64 `json:"share"`
	// Rate is what the link is limited to; zero is unlimited.
	Rate unit.BitsPerSecond `json:"rate,omitempty"`
}

// LinkShare is how much of a bond's traffic one of its links carried in a cell, over all builds.
type LinkShare struct {
	Cell    string `json:"cell"`
	Network string `json:"network"`
	Setting
	// Bond and Device are as in LinkUse.
	Bond   string `json:"bond"`
	Device string `json:"device"`
	// Share is the median over builds, from 0 to 1, ShareLow and ShareHigh the least and the most.
	Share     float64 `json:"share"`
	ShareLow  float64 `json:"share_low"`
	ShareHigh float64 `json:"share_high"`
	// Used is the part of the link's rate that was used, the median over builds; 0 where the link has no rate. A little more
	// than 1 is what the link took at once when a burst began.
	Used float64 `json:"used,omitempty"`
	// Builds is how many the figures rest on.
	Builds int `json:"builds"`
}
