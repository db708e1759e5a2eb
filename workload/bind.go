package workload

import (
	"context"
	"net/netip"

	"netdelta/engine"
	"netdelta/result"
)

// Bind gives a workload its constructors and its check, for a loop of the given kind and parameters within limits.
func Bind(w Workload, kind engine.Kind, limits engine.Limits) Workload {
	limits.Workload = w.Name
	w.Check = limits.Check
	w.SourcePorts = func(p result.Params) int {
		if kind == engine.ConnectRR {
			return engine.ConnectPorts
		}
		return max(p.Connections, 1)
	}
	config := func(p result.Params, cpu int) (engine.Config, error) {
		if err := limits.Check(p); err != nil {
			return engine.Config{}, err
		}
		return engine.Config{Workload: w.Name, Kind: kind, Params: engine.Fill(p, w.Defaults), CPU: cpu}, nil
	}
	w.Sweeps = func(p result.Params) bool {
		cfg, err := config(p, 0)
		return err == nil && cfg.Sweeps()
	}
	w.Connect = func(ctx context.Context, p result.Params, local, server netip.AddrPort) ([]int, error) {
		cfg, err := config(p, 0)
		if err != nil {
			return nil, err
		}
		cfg.Local, cfg.Remote = local, server
		return engine.Connect(ctx, cfg)
	}
	w.Serve = func(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (engine.Server, error) {
		cfg, err := config(p, cpu)
		if err != nil {
			return nil, err
		}
		cfg.Local = listen
		return engine.Serve(ctx, cfg)
	}
	w.Dial = func(ctx context.Context, p result.Params, local, server netip.AddrPort, cpu int) (engine.Client, error) {
		cfg, err := config(p, cpu)
		if err != nil {
			return nil, err
		}
		cfg.Local, cfg.Remote = local, server
		return engine.Dial(ctx, cfg)
	}
	if kind == engine.StreamRR || kind == engine.DatagramRR {
		w.Exact = func(ctx context.Context, spec engine.ExactSpec, cpu int) (engine.ExactPair, error) {
			cfg, err := config(spec.Params, cpu)
			if err != nil {
				return nil, err
			}
			return engine.OpenExact(ctx, cfg, spec)
		}
	}
	return w
}

// LatencyMetrics are the metrics of every request-response workload.
func LatencyMetrics(more ...Metric) []Metric {
	metrics := []Metric{
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
func LossMetric() Metric {
	return Metric{Name: "loss", Unit: "ratio", Better: "lower"}
}
