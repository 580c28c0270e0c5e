-- The smallest tool: one param with a default, and a table as result.
function describe()
  return {
    name = "hello",
    description = "Greets somebody",
    params = {
      name = { type = "string", default = "Hootenanny", description = "who is greeted" },
    },
    returns = "a greeting",
    annotations = { read_only = true, open_world = false },
  }
end

function main(params)
  log.info("greeting " .. params.name)
  return { greeting = "Hello, " .. params.name .. "!" }
end
