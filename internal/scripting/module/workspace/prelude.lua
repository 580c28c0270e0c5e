-- The output of programs is arbitrary bytes, so it is returned separately and put
-- into a table here.
local run = __run
local type, error = type, error
local array = json.array

function run_command(name, arguments)
  if type(name) ~= "string" then
    error("bad argument #1 to 'run_command' (string expected, got " .. type(name) .. ")", 2)
  end
  if arguments == nil then arguments = {} end
  if type(arguments) ~= "table" then
    error("bad argument #2 to 'run_command' (list of arguments expected, got " .. type(arguments) .. ")", 2)
  end
  local list = arguments.args or arguments
  if #list == 0 then list = array {} end
  local status, out, err = run(name, list)
  if type(status) == "table" then return status end -- made up in a preview
  return { status = status, stdout = out, stderr = err }
end
