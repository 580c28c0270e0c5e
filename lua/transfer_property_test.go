package lua

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTransferProperty moves states that random programs have made and lets
// random programs go on in them: their output does not change.
func TestTransferProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := statementList(t, "first")
		second := statementList(t, "second")
		if err := compareCarried(preamble+first, second); err != nil {
			t.Fatalf("%v\n\nprogram:\n%s\n----\n%s", err, first, second)
		}
	})
}

// preamble defines what the statements of the random programs use: tables,
// coroutines and closures by number, and a way to show them.
const preamble = `
T, C, F = {}, {}, {}
local function key(k) if type(k) == "table" then return tostring(k) end return k end
function show(t, depth)
	if type(t) ~= "table" then return key(t) end
	local parts = {}
	for k, v in pairs(t) do
		parts[#parts + 1] = tostring(key(k)) .. "=" .. tostring(depth > 0 and type(v) == "table" and show(v, depth - 1) or key(v))
		if #parts > 30 then break end
	end
	return "{" .. table.concat(parts, " ") .. "#" .. #t .. "}"
end
function try(...) print(pcall(...)) end
meta = {
	__index = function(t, k) return coroutine.isyieldable() and coroutine.yield("index", k) or k end,
	__add = function(a, b) return coroutine.isyieldable() and coroutine.yield("add") or 7 end,
	__concat = function(a, b) return coroutine.isyieldable() and coroutine.yield("concat") or "cat" end,
	__eq = function(a, b) return coroutine.isyieldable() and coroutine.yield("eq") end,
	__lt = function(a, b) return coroutine.isyieldable() and coroutine.yield("lt") end,
	__len = function(a) return coroutine.isyieldable() and coroutine.yield("len") or 3 end,
	__call = function(self, ...) return coroutine.isyieldable() and coroutine.yield("call", ...) or ... end,
	__close = function(a, e) print("close", e, coroutine.isyieldable() and coroutine.yield("closing")) end,
}
function object(name) return setmetatable({name = name}, meta) end
`

// statementList draws a list of statements.
func statementList(t *rapid.T, label string) string {
	return strings.Join(rapid.SliceOfN(rapid.Custom(statement), 1, 25).Draw(t, label), "\n")
}

func statement(t *rapid.T) string {
	form := rapid.SampledFrom(statements).Draw(t, "form")
	for strings.Contains(form, "$") {
		at := strings.IndexByte(form, '$')
		form = form[:at] + operand(t, form[at+1]) + form[at+2:]
	}
	return form
}

// statements are the forms: $t a table, $c a coroutine, $f a function, $k a
// key, $v a value, $n a small number, $b the body of a coroutine.
var statements = []string{
	`$t = {$v, $v, x = $v, [$n] = $v}`,
	`$t = {} for i = 1, $n * 3 do $t[i] = i * $n end`,
	`try(function() for i = 1, $n * 4 do $t["k" .. i] = $v end end)`,
	`try(function() $t[$k] = $v end)`,
	`try(function() $t[$k] = nil end)`,
	`try(function() $t[$t] = $t end)`,
	`try(function() for k in pairs($t) do if $n > 5 then $t[k] = nil end end end)`,
	`try(function() setmetatable($t, {__index = $t, __newindex = $n > 5 and $t or nil}) end)`,
	`try(function() setmetatable($t, {__mode = $n > 5 and "k" or "v"}) end)`,
	`try(function() return setmetatable($t, nil) ~= nil end)`,
	`try(table.insert, $t, $v)`,
	`try(table.insert, $t, 1, $v)`,
	`try(table.remove, $t, $n)`,
	`try(table.sort, $t, function(a, b) return tostring(a) < tostring(b) end)`,
	`try(table.concat, $t, ",")`,
	`print(show($t, 2))`,
	`print(show(T, 1))`,
	`print($v, $t, $f, $c)`,
	`do local n = $n $f = function(d) n = n + (tonumber(d) or 1) return n end $f = function() n = $n return n end end`,
	`do local t = $t $f = function(k) local v = t t = {k, v} return show(t, 1) end end`,
	`try($f, $v)`,
	`$f = load("local a = ... N = (N or 0) + $n return a, N", "=loaded")`,
	`$f = string.gmatch("a1 b2 c3 d4", "(%a)(%d)")`,
	`$f = coroutine.wrap(function(...) $b end)`,
	`$c = coroutine.create(function(...) $b end)`,
	`try(coroutine.resume, $c, $v, $v)`,
	`try(coroutine.resume, $c, $v)`,
	`try(coroutine.close, $c)`,
	`try(coroutine.status, $c)`,
	`try(debug.traceback, $c)`,
	`print(math.random(1000))`,
	`string.own$n = function(s) return #s + $n end try(function() return ("abc"):own$n() end)`,
	`try(require, "string")`,
	`collectgarbage()`,
}

// bodies are what coroutines do.
var bodies = []string{
	`local x = ... for i = 1, $n do x = coroutine.yield(i, x) end return x`,
	`local n = 0 for k, v in pairs($t) do n = n + 1 coroutine.yield(k) if n > 20 then break end $t[k] = nil end return n`,
	`return pcall(function(...) local a = coroutine.yield(...) error(a) end, ...)`,
	`return xpcall(function() coroutine.yield("x") local n = nil return n.field end, function(m) return "handled: " .. tostring(m) end)`,
	`local o = object("o") return o.missing, o + 1, 2 .. o .. "x", o == object("p"), o < o, #o, o($v)`,
	`local a <close> = object("a") do local b <close> = object("b") coroutine.yield("inside") end return 1, 2, 3`,
	`return pcall(function() local a <close> = object("a") local b <close> = object("b") coroutine.yield("inside") error("oops") end)`,
	`for a in function(_, c) c = (c or 0) + 1 if c < 4 then return coroutine.yield("next " .. c) and c or c end end, nil, nil, object("for") do coroutine.yield(a) end`,
	`local c = $c for i = 1, 3 do coroutine.yield(coroutine.resume(c, i)) end`,
	`local function f(n, ...) if n == 0 then return coroutine.yield(...) end return f(n - 1, n, ...) end return f($n, ...)`,
	`local function f(n) if n == 0 then return coroutine.yield("deep") or 0 end return 1 + f(n - 1) end return f($n * 5)`,
	`local n = 0 $f = function() n = n + 1 return n end coroutine.yield(n) n = n + 10 coroutine.yield(n) return n`,
	`local t = {coroutine.yield("list"), ..., coroutine.yield("rest")} return #t, table.unpack(t)`,
	`for i = 3, 1, -1 do for x = 0, 1, 0.5 do coroutine.yield(i, x) end end`,
	`error({...})`,
	`return $f(...)`,
}

func operand(t *rapid.T, kind byte) string {
	n := rapid.IntRange(0, 9).Draw(t, "n")
	switch kind {
	case 't':
		return fmt.Sprintf("T[%d]", n%4+1)
	case 'c':
		return fmt.Sprintf("C[%d]", n%4+1)
	case 'f':
		return fmt.Sprintf("F[%d]", n%4+1)
	case 'k':
		return rapid.SampledFrom([]string{"1", "2", "3", "5", "8", `"x"`, `"k2"`, "1.5", "true", "-1", "T[1]", "T[2]", "F[1]", "print"}).Draw(t, "key")
	case 'v':
		return rapid.SampledFrom([]string{
			"1", "2.5", `"text"`, "true", "nil", "T[1]", "T[2]", "F[1]", "F[2]", "C[1]", "C[2]", "{}", `object("v")`,
			"math.huge", "print", "math.mininteger", `("long "):rep(20)`,
		}).Draw(t, "value")
	case 'b':
		body := rapid.SampledFrom(bodies).Draw(t, "body")
		return body
	}
	return fmt.Sprint(n + 1)
}
