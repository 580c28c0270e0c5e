-- Several calls in a loop, with progress for the caller.
function describe()
  return {
    name = "multi_variation",
    description = "Generate variations of a piece at rising temperatures",
    params = {
      variation_set_id = { type = "string", required = true },
      count = { type = "integer", default = 3, min = 1, max = 10 },
    },
    returns = "the jobs, one per variation",
  }
end

function main(params)
  local variations = {}
  for i = 1, params.count do
    local temperature = 0.7 + i * 0.2
    progress((i - 1) / params.count, string.format("variation %d of %d", i, params.count))
    table.insert(variations, mcp.hootenanny.orpheus_generate {
      model = "base",
      temperature = temperature,
      variation_set_id = params.variation_set_id,
      variation_index = i,
      tags = { "temp:" .. string.format("%.1f", temperature) },
    })
  end
  return { variations = variations }
end
