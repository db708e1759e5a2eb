package engine

import (
	"context"
	"net/netip"

	"netdelta/result"
	"netdelta/workload"
)

// Bind gives a workload its constructors and its check: those of a loop of the given kind, for parameters within limits.
func Bind(w workload.Workload, kind Kind, limits Limits) workload.Workload {
	limits.Workload = w.Name
	w.Check = limits.Check
	w.SourcePorts = func(p result.Params) int {
		if kind == ConnectRR {
			return ConnectPorts
		}
		return max(p.Connections, 1)
	}
	config := func(p result.Params, cpu int) (Config, error) {
		if err := limits.Check(p); err != nil {
			return Config{}, err
		}
		return Config{Workload: w.Name, Kind: kind, Params: Fill(p, w.Defaults), CPU: cpu}, nil
	}
	w.Serve = func(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (workload.Server, error) {
		cfg, err := config(p, cpu)
		if err != nil {
			return nil, err
		}
		cfg.Local = listen
		return Serve(ctx, cfg)
	}
	w.Dial = func(ctx context.Context, p result.Params, local, server netip.AddrPort, cpu int) (workload.Client, error) {
		cfg, err := config(p, cpu)
		if err != nil {
			return nil, err
		}
		cfg.Local, cfg.Remote = local, server
		return Dial(ctx, cfg)
	}
	if kind == StreamRR || kind == DatagramRR {
		w.Exact = func(ctx context.Context, spec workload.ExactSpec, cpu int) (workload.ExactPair, error) {
			cfg, err := config(spec.Params, cpu)
			if err != nil {
				return nil, err
			}
			return openExact(ctx, cfg, spec)
		}
	}
	return w
}

// LatencyMetrics are the metrics of every request-response workload.
func LatencyMetrics(more ...workload.Metric) []workload.Metric {
	metrics := []workload.Metric{
		{Name: "p50", Unit: "ns", Better: "lower"},
		{Name: "p90", Unit: "ns", Better: "lower"},
		{Name: "p99", Unit: "ns", Better: "lower"},
		{Name: "p99.9", Unit: "ns", Better: "lower"},
		{Name: "mean", Unit: "ns", Better: "lower"},
		{Name: "min", Unit: "ns", Better: "lower"},
		{Name: "throughput", Unit: "bit/s", Better: "higher"},
	}
	return append(metrics, more...)
}

// LossMetric is the share of datagrams that were lost.
func LossMetric() workload.Metric {
	return workload.Metric{Name: "loss", Unit: "ratio", Better: "lower"}
}
