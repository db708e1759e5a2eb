// Package wrk knows the program wrk: what to call it with, and how to read what it says.
package wrk

import (
	"strconv"
	"time"

	"netdelta/workload/tool"
)

// Program is its name, and the name of its package.
const Program = "wrk"

// Load is one run of wrk: as fast as answers come.
type Load struct {
	URL         string
	Headers     []string // Name: value, in addition to wrk's own
	Connections int
	Threads     int           // that share the connections; 0 is one
	Duration    time.Duration // counted in whole seconds, rounded up
	Timeout     time.Duration // of a request, counted in whole seconds, rounded up; 0 is wrk's, 2 s
	Script      string        // a file that holds Script; "" for none
}

// Args is the command line of a run.
func Args(l Load) []string {
	args := []string{"--threads", strconv.Itoa(max(l.Threads, 1)), "--connections", strconv.Itoa(max(l.Connections, 1)), "--duration", seconds(l.Duration)}
	if l.Timeout > 0 {
		args = append(args, "--timeout", seconds(l.Timeout))
	}
	for _, h := range l.Headers {
		args = append(args, "--header", h)
	}
	if l.Script != "" {
		args = append(args, "--script", l.Script)
	}
	return append(args, l.URL)
}

// seconds is a time as wrk takes it.
func seconds(d time.Duration) string { return tool.Seconds(max(d, time.Second)) + "s" }

// Script has wrk say at its end, in a line of JSON, all that it knows: every latency, in the microseconds that it counts in.
const Script = `done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('{"duration_us":%d,"requests":%d,"bytes":%d,', summary.duration, summary.requests, summary.bytes))
  io.write(string.format('"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d},',
    e.connect, e.read, e.write, e.status, e.timeout))
  io.write('"latencies":[')
  for i = 1, #latency do
    local value, count = latency(i)
    if i > 1 then io.write(",") end
    io.write(string.format("[%d,%d]", value, count))
  end
  io.write("]}\n")
end
`
