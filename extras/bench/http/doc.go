// Command http holds netdelta's own client of HTTP against wrk: both ask the same nginx, in another pod of a lab, in turn, pinned
// alike. It prints the ratios of what they got answered in a second, of their median latency, and of the processor time that the
// client took for a request, and fails when netdelta's surely gets less.
package main
