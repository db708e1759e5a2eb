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
	switch s {
	case stepSocket:
		return "opening a socket"
	case stepBind:
		return "binding the source port"
	case stepConnect:
		return "connecting"
	case stepSend:
		return "sending"
	case stepReceive:
		return "waiting for the response"
	case stepPeerClosed:
		return "the server closed the connection"
	case stepEnd:
		return "waiting for the end of the connection"
	case stepReport:
		return "waiting for the receiver's report"
	case stepPoll:
		return "waiting for a connection to become ready"
	case stepShort:
		return "the server closed the connection within its response"
	case stepHead:
		return "the response is not HTTP/1 with the length of its body in its head"
	case stepStatus:
		return "the server answered with status"
	case stepLength:
		return "the response is not as long as the file that was asked for"
	case stepStopped:
		return "given up"
	}
	return "idle"
}
