package study

import (
	"strconv"

	"netdelta/result"
	"netdelta/unit"
)

// Bounds of the levels of real workloads.
const (
	mostFile   = 16 * unit.GiB
	maxBlock   = 64 * unit.MiB
	mostDepth  = 1024
	maxClients = 16
)

// ownEngine is how a study names netdelta's own loops among the engines.
const ownEngine = "netdelta"

// loads are the parameters of workloads with services: what is asked of HTTP, of block storage and of databases.
func loads() []parameter {
	return []parameter{
		field[unit.Bytes]{
			key: "file", parse: parseBytes, text: bytesText, bound: bounded[unit.Bytes](1, mostFile, size),
			of: func(l *Levels) *[]unit.Bytes { return &l.File }, in: func(p *result.Params) *unit.Bytes { return &p.File },
		},
		field[bool]{
			key: "reconnect", parse: parseBool, text: strconv.FormatBool, bound: func(*checker, string, bool) {},
			of: func(l *Levels) *[]bool { return &l.Reconnect }, in: func(p *result.Params) *bool { return &p.Reconnect },
		},
		words("store", func(l *Levels) *[]string { return &l.Store }, func(p *result.Params) *string { return &p.Store }, "nbd", "ceph"),
		words("operation", func(l *Levels) *[]string { return &l.Operation }, func(p *result.Params) *string { return &p.Operation },
			"randread", "randwrite", "read", "write"),
		field[unit.Bytes]{
			key: "block", parse: parseBytes, text: bytesText, bound: bounded[unit.Bytes](1, maxBlock, size),
			of: func(l *Levels) *[]unit.Bytes { return &l.Block }, in: func(p *result.Params) *unit.Bytes { return &p.Block },
		},
		field[int]{
			key: "depth", parse: parseCount, text: strconv.Itoa, bound: bounded(1, mostDepth, decimal),
			of: func(l *Levels) *[]int { return &l.Depth }, in: func(p *result.Params) *int { return &p.Depth },
		},
		field[int]{
			key: "clients", parse: parseCount, text: strconv.Itoa, bound: bounded(1, maxClients, decimal),
			of: func(l *Levels) *[]int { return &l.Clients }, in: func(p *result.Params) *int { return &p.Clients },
		},
		words("mix", func(l *Levels) *[]string { return &l.Mix }, func(p *result.Params) *string { return &p.Mix },
			"read_write", "point_select", "update_index", "write_only"),
		engine(),
		field[string]{
			key: "target", quotes: true, parse: parseWord[string], text: stringText, bound: func(*checker, string, string) {},
			of: func(l *Levels) *[]string { return &l.Target }, in: func(p *result.Params) *string { return &p.Target },
		},
		field[string]{
			key: "storage_class", quotes: true, parse: parseWord[string], text: stringText, bound: (*checker).storageClass,
			of: func(l *Levels) *[]string { return &l.StorageClass }, in: func(p *result.Params) *string { return &p.StorageClass },
		},
	}
}

// engine is the program that makes the load.
func engine() parameter {
	f := words("engine", func(l *Levels) *[]string { return &l.Engine }, func(p *result.Params) *string { return &p.Engine },
		ownEngine, "wrk", "iperf3", "sockperf", "netperf")
	f.set = func(p *result.Params, v string) {
		if p.Engine = v; v == ownEngine {
			p.Engine = ""
		}
	}
	f.idle = ownEngine
	return f
}
