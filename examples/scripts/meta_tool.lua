-- A tool made of other tools: published, it replaces several calls by one.
function describe()
  return {
    name = "generate_and_wait",
    description = "Generate a piece and wait until it is done",
    params = {
      style = { type = "string", required = true },
      timeout_ms = { type = "integer", default = 10000, min = 100, max = 25000 },
    },
    returns = "the finished job",
    annotations = { destructive = false },
  }
end

function main(params)
  -- generate_styled_midi is the example tool_call, published.
  local started = mcp.generate_styled_midi { style = params.style, bars = 4 }
  assert(started.success, started.error)
  progress(0.5, "waiting for " .. started.job_id)

  local poll = mcp.hootenanny.job_poll {
    job_ids = { started.job_id },
    timeout_ms = params.timeout_ms,
    mode = "all",
  }
  return { job_id = started.job_id, completed = poll.completed }
end
