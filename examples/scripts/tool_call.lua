-- Calls a tool of another server and catches its failure.
function describe()
  return {
    name = "generate_styled_midi",
    description = "Generate MIDI with a musical style",
    params = {
      style = { type = "string", required = true, description = "for example ambient" },
      bars = { type = "integer", default = 8, min = 1, max = 128 },
    },
    returns = "the job that generates it",
  }
end

function main(params)
  local ok, job = pcall(mcp.hootenanny.orpheus_generate, {
    model = "base",
    temperature = 1.0,
    tags = { "style:" .. params.style, "bars:" .. params.bars },
  })
  if not ok then
    log.error("generation failed: " .. tostring(job))
    return { success = false, error = tostring(job) }
  end
  return { success = true, job_id = job.job_id }
end
