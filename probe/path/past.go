package path

import (
	"netdelta/unit"
)

// connecting is how many bytes the packets that open and close a TCP connection have on one device, both ways: seven at most, with
// all headers and the options that Linux gives them, and as much again for one that is sent anew.
const connecting = 2 * 7 * (ethernetHeader + ipv6Header + 40)

// past tells whether the plan takes the load past all devices. Then the proof is that none of them carried it: it arrived,
// and so it went the other way.
func (j *judgement) past() bool { return len(j.Request) == 0 && len(j.Response) == 0 }

// shakes is what a device may have carried of connections that came and went while the load was watched, of which only
// the payload goes past the devices.
func (j *judgement) shakes() float64 {
	if !j.past() {
		return 0
	}
	return float64(j.Load.Connections) * float64(connecting)
}

// passed finds sampled packets with payload of a load that the plan takes past all devices.
func (j *judgement) passed() {
	if !j.past() {
		return
	}
	j.path.Encapsulation = none
	for _, d := range inOrder(j.changed) {
		if n := j.on(d).payload; n > 0 {
			j.find("%s carried %d sampled packets with payload; the plan takes it past all devices", d, n)
		}
	}
}

// carries tells whether a packet has payload.
func (f frame) carries() bool { return f.headers > 0 && f.layer[0].size > f.headers }

// shaken is what connections may have left on devices that the payload of flows goes past.
func shaken(flows []Flow) unit.Bytes {
	sum := unit.Bytes(0)
	for _, f := range flows {
		if len(f.Request) == 0 {
			sum += unit.Bytes(f.Connections) * connecting
		}
	}
	return sum
}
