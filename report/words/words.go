// Package words puts records and findings in words: the one place with the sentences that the terminal, the page, Markdown, JUnit and
// annotations have in common.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"netdelta/result"
	"netdelta/unit"
)

// Value prints a metric's value in its unit: "21.3 µs", "9.41 Gbit/s", "0.12%".
func Value(unitName string, v float64) string {
	switch unitName {
	case "ns":
		return unit.Duration(time.Duration(math.Round(v)))
	case "bit/s":
		return rate(v)
	case "ratio":
		return strconv.FormatFloat(100*v, 'f', 2, 64) + "%"
	case "instructions":
		return strconv.FormatFloat(v, 'f', 0, 64) + " instructions"
	case unitPerSecond:
		return digits(v) + "/s"
	case wordIOPS, wordTPS, wordRequests:
		return digits(v) + " " + unitName
	}
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', 4, 64) + " " + unitName)
}

// Difference prints a difference of two values of a metric, with its sign: "+3.21 µs", "-1.20 Gbit/s".
func Difference(unitName string, v float64) string {
	switch unitName {
	case "ns":
		return unit.Difference(time.Duration(math.Round(v)))
	case "ratio":
		return signed(v, strconv.FormatFloat(math.Abs(100*v), 'f', 2, 64)) + " points"
	}
	return signed(v, Value(unitName, math.Abs(v)))
}

// Words for transactions per second, by what a transaction is.
const (
	unitPerSecond = "1/s"
	wordIOPS      = "IOPS"
	wordTPS       = "TPS"
	wordRequests  = "requests/s"
)

// Unit is the unit of a delta's metric in the words of its workload: "IOPS" for operations on blocks, "TPS" for the transactions
// of a database. Value and Difference take it.
func Unit(d result.Delta) string {
	if d.Unit == unitPerSecond {
		switch d.Workload {
		case "block":
			return wordIOPS
		case "oltp":
			return wordTPS
		case "http":
			return wordRequests
		}
	}
	return d.Unit
}

// digits prints how many there are of something: to three digits, and above that to the last one.
func digits(v float64) string {
	decimals := 0
	for x := math.Abs(v); decimals < 2 && x != 0 && x < 99.95; decimals++ {
		x *= 10
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// signed puts the sign of v before a magnitude.
func signed(v float64, magnitude string) string {
	switch {
	case v > 0:
		return "+" + magnitude
	case v < 0:
		return "-" + magnitude
	}
	return magnitude
}

// rate prints bits per second to three digits.
func rate(v float64) string {
	for _, scale := range []struct {
		size float64
		name string
	}{{1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}} {
		if math.Abs(v) >= 0.9995*scale.size {
			scaled := v / scale.size
			decimals := 2
			for decimals > 0 && math.Round(math.Abs(scaled)*math.Pow10(decimals)) >= 1000 {
				decimals--
			}
			return strconv.FormatFloat(scaled, 'f', decimals, 64) + " " + scale.name
		}
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + " bit/s"
}

// Percent prints a ratio as a change, to a tenth of a percent below 10% and to a whole one from there on: "+1.2%", "+31%".
func Percent(ratio float64) string {
	if math.Abs(ratio-1) < 0.0995 {
		return unit.Ratio(ratio).PercentTo(1)
	}
	return unit.Ratio(ratio).PercentTo(0)
}

// roughly is a share in percent, to two digits below a hundred.
func roughly(share float64) string {
	if percent := 100 * share; percent < 99.5 {
		return fmt.Sprintf("%.2g%%", percent)
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

// List joins words as English does: "a", "a and b", "a, b and c".
func List(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// agree is the form of a verb for n subjects.
func agree(n int, singular, plural string) string {
	if n == 1 {
		return singular
	}
	return plural
}

// Where says where a placement is, for the beginning of a sentence.
func Where(p result.Placement) string {
	switch p {
	case result.SameNode:
		return "On one node"
	case result.CrossNode:
		return "Across nodes"
	}
	return "Here"
}

// At is Where within a sentence: "on one node".
func At(p result.Placement) string { return strings.ToLower(Where(p)) }

// Title names a setting in a heading of Markdown: "tcp-rr, 300B, across nodes".
func Title(s result.Setting) string { return Load(s) + ", " + At(s.Placement) }

// Load names a setting's workload with its parameters: "tcp-rr, 300B, 4 connections".
func Load(s result.Setting) string {
	regime := regime(s)
	if regime != "" {
		s.Params.CPU, s.Params.RequestRate = "", 0 // it says so
	}
	parts := append([]string{s.Workload}, s.Params.Headings()...)
	if regime != "" {
		parts = append(parts, regime)
	}
	for _, l := range s.Params.Conditions.Levels() {
		parts = append(parts, levelWords(l))
	}
	return strings.Join(parts, ", ")
}

// regime names the regime of a setting in a heading: "waking", "paced at 1000/s".
func regime(s result.Setting) string {
	name := s.Regime()
	if name != result.RegimePaced {
		return name
	}
	name = fmt.Sprintf("%s at %g/s", name, s.Params.RequestRate)
	if s.Params.CPU == "same" {
		name += " on one CPU"
	}
	return name
}

// levelWords names a level of a condition for a heading: "1000 rules of nftables", "4 links (802.3ad, layer3+4)".
func levelWords(l result.Level) string {
	kind, n, _ := strings.Cut(l.Value, ":")
	switch l.Factor {
	case "link.rate":
		return "links of " + l.Value
	case "link.delay":
		return l.Value + " delay each way"
	case "link.loss":
		return l.Value + " loss each way"
	case "link.nodes":
		return "links of " + strings.NewReplacer(":", " ", "+", ", ").Replace(l.Value)
	case "bond":
		links, how, _ := strings.Cut(l.Value, "x")
		if links == "1" { // of single nodes
			return "bonds " + strings.ReplaceAll(how, ",", ", ")
		}
		return links + " links (" + strings.ReplaceAll(how, ",", ", ") + ")"
	case "rps":
		return "RPS " + l.Value
	case "policy":
		rules, pods, idle := strings.Cut(strings.TrimSuffix(n, "pods"), ",")
		words := "policy " + kind + ", " + rules + " rules"
		if idle {
			words += ", " + pods + " more pods"
		}
		return words
	case "service":
		return "service " + kind + ", one of " + n
	case "from":
		return "from the node itself"
	case "qos":
		return l.Value + " pods"
	case "encryption":
		return "encrypted by " + l.Value
	}
	return strings.ToUpper(strings.TrimPrefix(l.Factor, "offload.")) + " " + l.Value
}
