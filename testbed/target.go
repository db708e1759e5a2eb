package testbed

import "context"

// Reacher is a driver whose pods can be clients of endpoints that are none of its testbeds': Spec.Target names one.
type Reacher interface {
	Driver
	// Locate finds out where an endpoint is, by the host that clients know it by: a name or an address. Its answer holds for as long
	// as the driver, and Open keeps to it. The error says what is wrong with the host; where the endpoint can't be found out about,
	// the Site says why.
	Locate(ctx context.Context, host string) (Site, error)
	// Inner is the network from whose pods endpoints are looked up.
	Inner() string
}

// Site is where an endpoint is.
type Site struct {
	// Nodes are the names of those on which it stands, sorted; none where that is not known.
	Nodes []string
	// Apart says why no client can be put on the endpoint's own node, "" where one can.
	Apart string
	// Mixed says why clients that are to stand on another node may meet it on their own, "" where they can't.
	Mixed string
}
