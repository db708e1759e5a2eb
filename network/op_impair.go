package network

import (
	"fmt"
	"strconv"
	"time"
)

// Impair holds up what a device sends, and loses some of it, before it queues for the device's rate.
type Impair struct {
	Device
	// Delay is how much later each packet leaves.
	Delay time.Duration
	// Loss is the share of packets that don't, from 0 to 1. Each is as likely as the next. A train of segments that is cut up
	// behind the device counts as one packet.
	Loss float64
}

func (Impair) isOp() {}

// String renders the step.
func (o Impair) String() string {
	s := o.Device.String() + ":"
	if o.Delay > 0 {
		s += fmt.Sprintf(" send %s later", o.Delay)
	}
	if o.Loss > 0 {
		s += " lose " + strconv.FormatFloat(100*o.Loss, 'g', 6, 64) + "%"
	}
	return s
}
