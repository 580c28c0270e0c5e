-- Many calls in parallel: the whole takes as long as the slowest.
function describe()
  return {
    name = "parallel_fanout",
    description = "Inspect many stored files at once",
    params = {
      hashes = { type = "array", items = "string", required = true },
      limit = { type = "integer", default = 4, min = 1, max = 32, description = "how many at a time" },
    },
    returns = "what is known of each, in the order of hashes",
    annotations = { read_only = true },
  }
end

function main(params)
  local files = parallel.map(params.hashes, function(hash)
    local ok, info = pcall(mcp.hootenanny.cas_inspect, { hash = hash })
    if not ok then return { hash = hash, error = tostring(info) } end
    return { hash = hash, path = info.local_path }
  end, params.limit)
  return { files = files, count = #files }
end
