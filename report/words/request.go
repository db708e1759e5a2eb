package words

import (
	"fmt"

	"netdelta/insight"
)

// RequestLine is what a network is of a request, in words.
type RequestLine struct {
	Name, Added string
	// Share is what part of the request is added, with its interval where there is one.
	Share, Verdict string
	// Class is the verdict's: same where it does not matter, faster where it saves, slower where it matters, else unresolved.
	Class string
}

// Request puts a share of a request in words. A share within the margin does not matter. The page does the same for what its reader
// chooses (request.js), and a test holds the two equal.
func Request(s insight.RequestShare, margin float64) RequestLine {
	line := RequestLine{
		Name: insight.Name(s.Delta.Network, s.Delta.Path), Added: Difference("ns", s.Added), Share: fmt.Sprintf("%+.1f%%", 100*s.Share),
		Verdict: "can't be told yet", Class: "unresolved",
	}
	if s.Known {
		line.Share += fmt.Sprintf(" [%+.1f, %+.1f]", 100*s.Low, 100*s.High)
	}
	switch yes, no := s.Matters(margin); {
	case no:
		line.Verdict, line.Class = fmt.Sprintf("no: within %g%%", 100*margin), "same"
	case yes && s.Share < 0:
		line.Verdict, line.Class = "yes, it saves", "faster"
	case yes:
		line.Verdict, line.Class = "yes", "slower"
	}
	return line
}
