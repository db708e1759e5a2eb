package mlrsearch

import (
	"math"
	"math/rand/v2"
	"time"
)

// device is a simulated network with its sender: what it does is known, so that a search can be held against it.
type device struct {
	capacity float64 // per second
	sender   float64 // what the sender can send; 0 is without limit
	random   float64 // share that is lost at any rate
	// gradual is how far below capacity losses begin, and grow with the square of the rate; 0 is sharp.
	gradual float64
	// disturbed is the share of trials in which the capacity is less by up to a half.
	disturbed float64
	// scatter is the standard deviation of the capacity from trial to trial, relative.
	scatter float64
	rng     *rand.Rand

	trials []simulated
}

// simulated is a trial as it went.
type simulated struct {
	rate     float64
	duration time.Duration
}

// overhead is what a trial takes in addition to its duration.
const overhead = 300 * time.Microsecond

func (d *device) loss(rate, capacity float64) float64 {
	loss := max(0, 1-capacity/rate)
	if d.gradual > 0 {
		begin := capacity * (1 - d.gradual)
		loss = max(loss, 0.01*math.Pow(min(max(0, rate-begin)/(capacity-begin), 1), 2))
	}
	return loss
}

func (d *device) trial(rate float64, duration time.Duration) (Outcome, error) {
	d.trials = append(d.trials, simulated{rate, duration})
	offered := rate
	if d.sender > 0 {
		offered = min(rate, d.sender)
	}
	capacity := d.capacity
	if d.rng != nil {
		capacity *= max(0.01, 1+d.scatter*d.rng.NormFloat64())
		if d.rng.Float64() < d.disturbed {
			capacity *= 1 - d.rng.Float64()/2
		}
	}
	o := Outcome{Due: int64(rate * duration.Seconds()), Sent: int64(offered * duration.Seconds()), Elapsed: duration + overhead}
	lost := int64(math.Round(float64(o.Sent) * d.loss(offered, capacity)))
	if d.random > 0 {
		for range o.Sent - lost {
			if d.rng.Float64() < d.random {
				lost++
			}
		}
	}
	if o.Sent > 0 {
		o.Loss = float64(lost) / float64(o.Sent)
	}
	o.Rate = float64(o.Sent-lost) / duration.Seconds()
	return o, nil
}

// truth is the highest rate at which no more than a share is lost, found by halving.
func (d *device) truth(share float64) float64 {
	low, high := 0.0, 10*d.capacity
	for range 100 {
		if middle := (low + high) / 2; d.loss(middle, d.capacity) > share {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}
