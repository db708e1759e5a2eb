package openmetrics

import (
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"netdelta/report/ui"
)

// label is a name with its value.
type label struct{ name, value string }

// page gathers the metrics of a run. A series that was given twice is kept once: the format forbids two.
type page struct {
	study    label
	families []*dto.MetricFamily
	at       map[string]*dto.MetricFamily
	seen     map[string]bool
}

func newPage(study string) *page {
	return &page{study: label{"study", study}, at: map[string]*dto.MetricFamily{}, seen: map[string]bool{}}
}

// add writes down a gauge. Names end in their unit where they have one. NaN and infinities are left out: a reader would take them for
// measurements.
func (p *page) add(name, unit, help string, value float64, labels ...label) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if unit != "" {
		name += "_" + unit
	}
	metric := &dto.Metric{Gauge: &dto.Gauge{Value: &value}}
	key := name
	for _, l := range append([]label{p.study}, labels...) {
		text := ui.Clean(l.value)
		metric.Label = append(metric.Label, &dto.LabelPair{Name: &l.name, Value: &text})
		key += "\x00" + text
	}
	if p.seen[key] {
		return
	}
	p.seen[key] = true
	family, found := p.at[name]
	if !found {
		family = &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()}
		if unit != "" {
			family.Unit = &unit
		}
		p.at[name] = family
		p.families = append(p.families, family)
	}
	family.Metric = append(family.Metric, metric)
}

// base is a unit of the record as a base unit's name, with what a value is multiplied by.
func base(unit string) (name string, factor float64) {
	switch unit {
	case "ns":
		return "seconds", 1e-9
	case "bit/s":
		return "bits_per_second", 1
	case "1/s":
		return "per_second", 1
	case "ratio":
		return "ratio", 1
	case "s/GB":
		return "seconds_per_byte", 1e-9
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, unit), 1
}
