-- Attributes, events and metrics on the trace of the run.
function describe()
  return {
    name = "otel_example",
    description = "Count words and tell the trace about it",
    params = {
      text = { type = "string", required = true },
    },
    returns = "how many words there are, and the trace to look at",
    annotations = { read_only = true, open_world = false },
  }
end

function main(params)
  otel.set_attribute("text.length", #params.text)
  otel.event("counting", { first = params.text:match("%a+") or "" })

  local words = 0
  for _ in params.text:gmatch("%S+") do words = words + 1 end

  otel.record_metric("words.counted", words, { source = "example" })
  log.info("counted " .. words .. " words")
  return { words = words, trace_id = otel.trace_id() }
end
