// Package unit holds the quantities that netdelta measures and is configured with, as types:
// sizes in bytes, rates in bits per second, latencies and ratios.
//
// Values are stored in base units (bytes, bits per second, nanoseconds) and scaled only when they
// are printed. String is for people and may round; MarshalText is for files and never does.
package unit
