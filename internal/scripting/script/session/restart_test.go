package session

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/scripting/script"
)

// codeGenerator generates the turns of a session: values, tables that refer to each
// other, closures that share a variable, suspended coroutines, metatables,
// iterators, errors.
type codeGenerator struct {
	*rand.Rand
}

func (c codeGenerator) name() string { return string("abcdefgh"[c.IntN(8)]) }

func (c codeGenerator) pick(choices ...string) string { return choices[c.IntN(len(choices))] }

func (c codeGenerator) expression(depth int) string {
	if depth > 2 {
		return c.pick("nil", "true", "-0.0", "0/0", "2^53", "math.maxinteger", "'\\0\\255x'", fmt.Sprint(c.IntN(1000)), c.name())
	}
	inner := func() string { return c.expression(depth + 1) }
	switch c.IntN(11) {
	case 0:
		return "{" + inner() + ", " + inner() + ", x = " + inner() + ", [" + fmt.Sprint(c.IntN(9)-4) + "] = " + inner() + "}"
	case 1:
		return "(" + c.name() + " == " + inner() + ")"
	case 2:
		return "tostring(" + inner() + ")"
	case 3:
		return "math.random(100)"
	case 4:
		return "function(...) local v = " + inner() + " return function() v = v == nil and 1 or v return v, " + c.name() + " end end"
	case 5:
		return "coroutine.create(function(n) local s = n or 0 while true do local ok, m = pcall(coroutine.yield, s) s = s + (tonumber(m) or 1) " + c.name() + " = s end end)"
	case 6:
		return "setmetatable({v = " + inner() + "}, {__index = function(t, k) return rawget(t, 'v') end, __call = function(t, n) t.v = n return t end, __len = function() return 7 end})"
	case 7:
		return "string.gmatch('one two three four', '%a+')"
	default:
		return c.expression(3)
	}
}

func (c codeGenerator) statement() string {
	a, b := c.name(), c.name()
	switch c.IntN(12) {
	case 0, 1, 2:
		return a + " = " + c.expression(0)
	case 3:
		return fmt.Sprintf("if type(%s) == 'table' then %s[%s] = %s end", a, a, c.pick("1", "2", "'x'", "'self'", "#"+a+" + 1"), b)
	case 4: // two closures over one variable
		return fmt.Sprintf("do local n = %d function %s() n = n + 1 return n end %s = function(k) n = n * 2 + (tonumber(k) or 0) return n end end", c.IntN(9), a, b)
	case 5:
		return fmt.Sprintf("if type(%s) == 'thread' then print(coroutine.status(%s), coroutine.resume(%s, %d)) end", a, a, a, c.IntN(5))
	case 6:
		return fmt.Sprintf("if type(%s) == 'function' then print(pcall(%s, %d)) end", a, a, c.IntN(5))
	case 7:
		return fmt.Sprintf("for k, v in pairs(type(%s) == 'table' and %s or {}) do if type(v) == 'number' then %s[k] = nil end end", a, a, a)
	case 8:
		return fmt.Sprintf("%s = coroutine.wrap(function() for i = 1, 9 do local t <const> = {i} coroutine.yield(t[1], %s) end end)", a, b)
	case 9:
		return fmt.Sprintf("error(%s)", c.pick("'no'", "{code = 7}", a, "nil"))
	case 10:
		return fmt.Sprintf("%s = %s .. %s", a, b, c.pick("'!'", a, "1"))
	default:
		return fmt.Sprintf("local l = %s print(l == nil, type(l), rawequal(l, %s))", a, b)
	}
}

func (c codeGenerator) turn() string {
	lines := make([]string, 1+c.IntN(4))
	for i := range lines {
		lines[i] = c.statement()
	}
	return strings.Join(lines, "\n")
}

// everything is a turn that prints the whole state of the session, in the order in
// which tables iterate.
const everything = `
local seen, out, number = {}, {}, 0
local function show(v, depth)
  local kind = type(v)
  if kind == "number" then out[#out + 1] = math.type(v) .. string.format("%q", v) return end
  if kind == "string" then out[#out + 1] = string.format("%q", v) return end
  if kind == "nil" or kind == "boolean" then out[#out + 1] = tostring(v) return end
  if seen[v] then out[#out + 1] = "#" .. seen[v] return end
  number = number + 1
  seen[v] = number
  out[#out + 1] = kind .. number
  if kind == "thread" then out[#out + 1] = coroutine.status(v) end
  if kind == "table" and depth < 20 then
    for k, x in next, v do show(k, depth + 1) out[#out + 1] = "=" show(x, depth + 1) end
    show(getmetatable(v), depth + 1)
  end
end
for _, name in ipairs { "a", "b", "c", "d", "e", "f", "g", "h" } do out[#out + 1] = name show(_G[name], 0) end
return table.concat(out, " "), math.random(1000000)`

// evalText returns the result, output and error of a turn.
func evalText(p sessionFixture, t *testing.T, id, code string) string {
	t.Helper()
	done, err := p.Eval(t.Context(), "ada", id, script.Request{Source: code})
	said := fmt.Sprintf("%s %q", done.Result, done.Warnings)
	for _, line := range done.Output {
		said += "\n" + line.Text
	}
	if err != nil {
		said += "\n" + err.Error()
	}
	return said
}

// TestSessionAfterRestart checks that a session that is restored before every turn,
// sometimes by another process, behaves as one whose process never ended.
func TestSessionAfterRestart(t *testing.T) {
	t.Parallel()
	conversations, turns := uint64(24), 12
	if testing.Short() {
		conversations = 6
	}
	for seed := range conversations {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			same := func(o *script.Options) { o.Random = func() uint64 { return seed + 1 } }
			folder := t.TempDir()
			storedRun := openSessions(t, t.TempDir(), same, Options{})
			restarted := openSessions(t, folder, same, Options{Memory: 1})
			one, other := storedRun.create(t), restarted.create(t)
			chat := codeGenerator{rand.New(rand.NewPCG(seed, 1))}
			var history []string
			for turn := range turns {
				for _, code := range []string{chat.turn(), everything} {
					history = append(history, code)
					want, got := evalText(storedRun, t, one, code), evalText(restarted, t, other, code)
					if strings.ReplaceAll(got, other, one) != want {
						t.Fatalf("turn %d after\n%s\nrestarted: %s\nrunning:   %s", turn, strings.Join(history[:len(history)-1:len(history)-1], "\n--\n"), got, want)
					}
				}
				if turn%4 == 3 {
					if err := restarted.database.Close(); err != nil {
						t.Fatal(err)
					}
					restarted = openSessions(t, folder, same, Options{Memory: 1})
				}
			}
		})
	}
}
