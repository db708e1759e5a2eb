done = function(summary, latency, requests)
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
