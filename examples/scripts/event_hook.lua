-- Waits for events and handles them.
function describe()
  return {
    name = "event_hook",
    description = "Collect what other scripts say on a topic",
    params = {
      topic = { type = "string", default = "mix.done", description = "after script." },
      count = { type = "integer", default = 1, min = 1, description = "how many to wait for" },
      wait_ms = { type = "integer", default = 5000, min = 0, max = 25000 },
    },
    returns = "what was heard",
    annotations = { read_only = true, open_world = false },
  }
end

function main(params)
  local heard = json.array {}
  on("script." .. params.topic, function(event)
    table.insert(heard, event.data or json.null)
    if #heard >= params.count then events.stop() end
  end)
  emit("script." .. params.topic .. ".waiting", { count = params.count })
  events.run(params.wait_ms)
  return { heard = heard, complete = #heard >= params.count }
end
