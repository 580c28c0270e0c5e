-- The kinds of errors and how each is reported: run it with each kind.
function describe()
  return {
    name = "error_example",
    description = "Fails on purpose",
    params = {
      kind = { type = "string", required = true, enum = { "raise", "nil", "type", "tool", "caught" } },
    },
  }
end

local fail = {
  ["raise"] = function() error("something the script does not like") end,
  ["nil"] = function() return nothing.here end,
  ["type"] = function() return 1 + {} end,
  ["tool"] = function() return mcp.hootenanny.orpheus_generat {} end,
  ["caught"] = function()
    local ok, message = pcall(error, "caught in time")
    return { ok = ok, message = message }
  end,
}

function main(params)
  return fail[params.kind]()
end
