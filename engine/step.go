package engine

// step is what a loop was doing when it broke or hung.
type step int32

const (
	stepNone step = iota
	stepSocket
	stepBind
	stepConnect
	stepSend
	stepReceive
	stepPeerClosed
	stepEnd
	stepReport
	stepPoll
	stepStopped
	stepShort
	stepHead
	stepStatus
	stepLength
)

// String says what was being done, as part of an error message.
func (s step) String() string {
	return [...]string{
		stepNone:       "idle",
		stepSocket:     "opening a socket",
		stepBind:       "binding the source port",
		stepConnect:    "connecting",
		stepSend:       "sending",
		stepReceive:    "waiting for the response",
		stepPeerClosed: "the server closed the connection",
		stepEnd:        "waiting for the end of the connection",
		stepReport:     "waiting for the receiver's report",
		stepPoll:       "waiting for a connection to become ready",
		stepShort:      "the server closed the connection within its response",
		stepHead:       "the response is not HTTP/1 with the length of its body in its head",
		stepStatus:     "the server answered with status",
		stepLength:     "the response is not as long as the file that was asked for",
		stepStopped:    "given up",
	}[s]
}
