package workload

import (
	"time"

	"netdelta/engine"
	"netdelta/result"
)

const iterationsKey = "iterations"

// Iterations is the parameter of workloads whose bursts can end after a number of transactions.
func Iterations() []result.Parameter {
	return result.Declare(result.Parameter{
		Key: iterationsKey, Kind: result.KindCount, Low: 1, High: 10e6, ID: "iterations=%", Label: "% transactions a burst",
		Says: "Transactions after which a burst ends, in place of the study's length of a burst.",
	})
}

// What a transaction takes, as guessed, where nothing is known of the machine: on an open connection, and with one of its own.
const (
	exchangeTakes = 50 * time.Microsecond
	connectTakes  = 150 * time.Microsecond
)

// iterated is the demand of a request-response workload whose bursts may end after a number of transactions.
func iterated(kind engine.Kind, p result.Params) Demand {
	n := p.Own.Count(iterationsKey)
	each := exchangeTakes
	switch {
	case n == 0:
		return Demand{}
	case p.RequestRate > 0:
		return Demand{Transactions: n, Lasting: time.Duration(float64(n) / p.RequestRate * float64(time.Second))}
	case kind == engine.ConnectRR:
		each = connectTakes
	}
	each += 2 * p.Conditions.LinkDelay
	return Demand{Transactions: n, Lasting: time.Duration(n) * each / time.Duration(max(p.Connections, 1))}
}
