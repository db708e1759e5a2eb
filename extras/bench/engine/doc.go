// Command engine measures the load engines against what users would compare them with: a plain C loop, sockperf and iperf3,
// all in one interleaved run, pinned alike, across two network namespaces. It prints ratios with their spread, and fails when
// one of them surely misses its target.
package main
