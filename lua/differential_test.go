package lua

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestDifferential runs random programs here and in lua5.4 and compares what
// they print, error messages included. The programs are the same every time;
// FuzzDifferential makes others.
func TestDifferential(t *testing.T) {
	t.Parallel()
	reference := findReference(t)
	for seed := range uint64(120) {
		compareWithReference(t, reference, seed)
	}
}

// FuzzDifferential compares the program that belongs to a seed.
func FuzzDifferential(f *testing.F) {
	reference := findReference(f)
	f.Add(uint64(1))
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) { compareWithReference(t, reference, seed) })
}

func findReference(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("lua5.4")
	if err != nil {
		t.Skip("lua5.4 is not installed (make system, or Debian's package lua5.4)")
	}
	return path
}

func compareWithReference(t *testing.T, reference string, seed uint64) {
	t.Helper()
	program := newProgram(seed).text()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, reference, "-")
	cmd.Stdin = strings.NewReader(program)
	want, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("seed %d: lua5.4: %v\n%s", seed, err, want)
	}
	var got bytes.Buffer
	s := newFullState(t, &got)
	if _, err := run(s, program, "=stdin"); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	if got.String() != string(want) {
		t.Errorf("seed %d: output differs (-v shows the program)", seed)
		if testing.Verbose() {
			t.Log(program)
		}
		compareLines(t, "lua5.4", got.String(), string(want))
	}
}

// prelude defines what the programs print with: nothing that depends on
// addresses or on the order of keys.
const prelude = `
local fuel = 2000
local function burn() fuel = fuel - 1 if fuel < 0 then error("out of fuel", 0) end end
local function show(v)
  local t = type(v)
  if t == "table" then
    local s = {}
    for i = 1, math.min(#v, 5) do s[i] = type(rawget(v, i)) end
    return "{" .. table.concat(s, " ") .. "}"
  elseif t == "function" or t == "thread" or t == "userdata" then return t
  elseif t == "string" then
    -- the sign of a NaN depends on the order of operands in machine code, and
    -- the reference tells a stale line for divisions by zero
    v = v:gsub("[- ]nan", "nan")
    v = v:gsub("stdin:%d+: attempt to divide by zero", "divide by zero"):gsub("stdin:%d+: attempt to perform 'n%%0'", "modulo zero")
    return string.format("%q", #v > 200 and #v .. v:sub(1, 50) or v)
  elseif v ~= v then return "nan" end
  return (math.type(v) or "") .. tostring(v)
end
local function out(...)
  local s = {}
  for i = 1, select("#", ...) do s[i] = show((select(i, ...))) end
  print(table.concat(s, " "))
end
local function try(f, ...) out(pcall(f, ...)) end
local V = setmetatable({}, {__name = "V"})
V.__index = V
for _, op in ipairs{"add", "sub", "mul", "div", "mod", "pow", "idiv", "unm", "band", "concat", "shl"} do
  V["__" .. op] = function(a, b) return op .. (type(a) == "table" and "T" or show(a)) .. (type(b) == "table" and "T" or show(b)) end
end
V.__len = function() return 3 end
V.__eq = function() return true end
V.__lt = function(a, b) return type(a) == "table" end
V.__le = function(a, b) return false end
V.__call = function(self, ...) return select("#", ...), ... end
V.__tostring = function() return "V" end
V.field = "inherited"
local function new(x) return setmetatable({x = x, 1, 2}, V) end
local g1, g2, g3 = 1, "two", {3}
-- the length of a table with holes is not defined
local function some(v) if v == nil then return false end return v end
-- the reference computes -0.0 - 0 as -0.0 + 0 when it sees the constant
local zero = 0
-- the reference counts down from a limit that is no number for years
local function limit(v) if v ~= v then return 1 end return v end
`

// program writes random programs. Every choice comes from its source of
// randomness, so that a seed stands for a program. Most expressions have the
// types that their operators need, so that most programs get far; some do not,
// for the sake of the error messages.
type program struct {
	rnd     *rand.Rand
	out     strings.Builder
	numbers []string // variables by what they are likely to hold
	texts   []string
	others  []string
	names   int
	depth   int
}

func newProgram(seed uint64) *program {
	return &program{
		rnd:     rand.New(rand.NewPCG(seed, 54)),
		numbers: []string{"g1"},
		texts:   []string{"g2"},
		others:  []string{"g3"},
	}
}

func (p *program) text() string {
	p.out.WriteString(prelude)
	for range 10 + p.rnd.IntN(15) {
		p.topStatement()
	}
	return p.out.String()
}

func (p *program) pick(choices ...string) string { return choices[p.rnd.IntN(len(choices))] }

// chance is true once in n times.
func (p *program) chance(n int) bool { return p.rnd.IntN(n) == 0 }

func (p *program) line(format string, args ...any) {
	fmt.Fprintf(&p.out, "%s%s\n", strings.Repeat(" ", p.depth), fmt.Sprintf(format, args...))
}

func (p *program) fresh() string {
	p.names++
	return fmt.Sprintf("v%d", p.names)
}

// topStatement is one that cannot fail as a whole.
func (p *program) topStatement() {
	switch p.rnd.IntN(6) {
	case 0:
		name, value := p.fresh(), p.number(3)
		p.line("local _, %s = pcall(function() return %s end) out(%s)", name, value, name)
		p.numbers = append(p.numbers, name)
	case 1:
		name, value := p.fresh(), p.string(3)
		p.line("local _, %s = pcall(function() return %s end) out(%s)", name, value, name)
		p.texts = append(p.texts, name)
	case 2:
		p.line("try(function() return %s end)", p.exprs(3))
	case 3:
		p.line("try(function(...)")
		p.block(3)
		p.line("end, %s)", p.literal())
	case 4:
		p.function()
	case 5:
		p.coroutine()
	}
}

// block writes statements in a scope of their own.
func (p *program) block(levels int) {
	p.depth++
	numbers, texts, others := len(p.numbers), len(p.texts), len(p.others)
	p.line("burn()")
	for range 1 + p.rnd.IntN(4) {
		p.statement(levels)
	}
	p.numbers, p.texts, p.others = p.numbers[:numbers], p.texts[:texts], p.others[:others]
	p.depth--
}

func (p *program) statement(levels int) {
	if levels <= 0 {
		p.line("out(%s)", p.exprs(2))
		return
	}
	switch p.rnd.IntN(12) {
	case 0:
		a, b, value := p.fresh(), p.fresh(), p.number(2)
		p.line("local %s, %s%s = %s, %s", a, b, p.pick("", "", " <const>"), value, p.string(2))
		p.numbers = append(p.numbers, a)
	case 1:
		p.line("%s, %s = %s, %s", p.one(p.numbers), p.one(p.texts), p.number(2), p.string(2))
	case 2:
		p.line("out(%s)", p.exprs(3))
	case 3:
		p.line("if %s then", p.condition(2))
		p.block(levels - 1)
		if p.chance(2) {
			p.line("else")
			p.block(levels - 1)
		}
		p.line("end")
	case 4:
		p.numericFor(levels)
	case 5:
		p.line("for k, v in ipairs(%s) do out(k, v)", p.table(1))
		p.block(levels - 1)
		p.line("end")
	case 6:
		n := p.fresh()
		p.line("local %s = 0", n)
		p.line("while %s do %s = %s + 1 if %s > 3 then break end", p.condition(1), n, n, n)
		p.block(levels - 1)
		p.line("end")
	case 7:
		p.line("do local c <close> = setmetatable({}, {__close = function(_, e) out('closed', e) end})")
		p.block(levels - 1)
		p.line("end")
	case 8:
		f := p.fresh()
		p.line("local function %s(a, ...) %s = tonumber(a) burn() return %s end", f, p.one(p.numbers), p.exprs(2))
		p.line("out(%s(%s))", f, p.exprs(2))
		p.others = append(p.others, f)
	case 9:
		name := p.fresh()
		p.line("local %s = %s", name, p.table(2))
		p.line("%s[%s] = some(%s) out(#%s, %s)", name, p.literal(), p.any(2), name, name)
		p.others = append(p.others, name)
	case 10:
		p.line("try(function() return %s end)", p.exprs(2))
	case 11:
		p.line("%s = some(%s)", p.place(), p.any(2))
	}
}

func (p *program) numericFor(levels int) {
	i := p.fresh()
	p.line("for %s = %s, %s%s do", i, p.pick("1", "-2", "3", "1.5", "math.maxinteger - 1", p.number(1)),
		p.pick("3", "0", "2.5", "math.maxinteger", "limit("+p.number(1)+")"), p.pick("", ", 1", ", -1", ", 0.5", ", 2", ", "+p.number(0)))
	p.line(" burn() if %s ~= %s then break end", i, i)
	p.numbers = append(p.numbers, i)
	p.block(levels - 1)
	p.numbers = p.numbers[:len(p.numbers)-1]
	p.line("end")
}

func (p *program) function() {
	f := p.fresh()
	p.line("local function %s(a, b, ...)", f)
	p.numbers, p.texts = append(p.numbers, "a"), append(p.texts, "b")
	p.block(2)
	p.line(" return %s", p.exprs(3))
	p.numbers, p.texts = p.numbers[:len(p.numbers)-1], p.texts[:len(p.texts)-1]
	p.line("end")
	p.line("try(%s, %s, %s, %s)", f, p.number(0), p.string(0), p.literal())
	p.others = append(p.others, f)
}

func (p *program) coroutine() {
	co := p.fresh()
	p.line("local %s = coroutine.create(function(a, b)", co)
	p.line(" local x = coroutine.yield(%s)", p.exprs(2))
	p.line(" out(x, pcall(function() return coroutine.yield(%s), %s end))", p.any(2), p.any(2))
	p.line(" for k in function(_, k) return coroutine.yield(k) end do out(k) if k then break end end")
	p.line(" return %s", p.exprs(2))
	p.line("end)")
	for range 5 {
		p.line("out(coroutine.resume(%s, %s)) out(coroutine.status(%s))", co, p.literal(), co)
	}
	p.line("out(coroutine.close(%s))", co)
}

func (p *program) one(variables []string) string { return variables[p.rnd.IntN(len(variables))] }

// place is something that can be assigned to.
func (p *program) place() string {
	switch p.rnd.IntN(3) {
	case 0:
		return p.one(p.others) + ".x"
	case 1:
		return p.one(p.others) + "[" + p.literal() + "]"
	}
	return "global" + p.pick("1", "2")
}

// literal cannot fail.
func (p *program) literal() string {
	switch p.rnd.IntN(4) {
	case 0:
		return p.number(0)
	case 1:
		return p.string(0)
	}
	return p.pick("true", "false", "nil", "{}", "{1, 2, 3}", "{x = 1}", "new(1)", `new("x")`, "print", "g3", "global1", "global2")
}

// odd is a value that most operators refuse, and that prints the same in both engines.
func (p *program) odd() string { return p.pick("true", "false", "nil", "new(1)") }

func (p *program) exprs(n int) string {
	list := make([]string, 1+p.rnd.IntN(n))
	for i := range list {
		list[i] = p.any(2)
	}
	return strings.Join(list, ", ")
}

func (p *program) any(levels int) string {
	switch p.rnd.IntN(6) {
	case 0, 1:
		return p.number(levels)
	case 2:
		return p.string(levels)
	case 3:
		return p.condition(levels)
	case 4:
		return p.table(levels)
	}
	return p.literal()
}

// number is an expression that most likely gives a number.
func (p *program) number(levels int) string {
	if p.chance(25) {
		return p.odd()
	}
	if levels <= 0 {
		switch p.rnd.IntN(3) {
		case 0:
			return p.one(p.numbers)
		case 1:
			return p.pick("0.0", "1.5", "-2.5", "1e15", "1e100", "0.1", "math.huge", "3.0", "2^53", "(0/0)", "1e-7")
		}
		return p.pick("zero", "1", "-1", "2", "3", "7", "255", "math.maxinteger", "math.mininteger", "0x10", "(1 << 62)", "9007199254740993")
	}
	switch p.rnd.IntN(8) {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s)", p.number(levels-1), p.pick("+", "-", "*", "/", "//", "%"), p.number(levels-1))
	case 2:
		// Powers that everyone rounds the same way.
		return fmt.Sprintf("(%s ^ %s)", p.number(levels-1), p.pick("2", "3", "0.5", "-1", "0", "'2'", "new(2)"))
	case 3:
		return fmt.Sprintf("(%s %s %s)", p.integer(levels-1), p.pick("&", "|", "~", "<<", ">>", "//", "%"), p.integer(levels-1))
	case 4:
		return fmt.Sprintf("(%s %s)", p.pick("-", "- -"), p.number(levels-1))
	case 5:
		return p.pick("#"+p.string(0), "#"+p.table(0), "~"+p.integer(0), "("+p.string(0)+"):len()", "("+p.string(0)+"):byte()")
	case 6:
		return fmt.Sprintf("%s(%s)", p.pick("math.floor", "math.abs", "math.tointeger", "math.ceil", "tonumber", "math.sqrt"), p.number(levels-1))
	}
	return fmt.Sprintf("(%s and %s or %s)", p.condition(levels-1), p.number(levels-1), p.number(levels-1))
}

// integer is an expression that most likely gives an integer.
func (p *program) integer(levels int) string {
	if levels <= 0 || p.chance(2) {
		return p.pick("zero", "1", "-1", "3", "64", "63", "-64", "0xff", "math.maxinteger", "math.mininteger", "2.0", "'7'", "g1")
	}
	return fmt.Sprintf("(%s %s %s)", p.integer(levels-1), p.pick("&", "|", "~", "<<", ">>", "+", "-", "*"), p.integer(levels-1))
}

// string is an expression that most likely gives a string or number.
func (p *program) string(levels int) string {
	if p.chance(25) {
		return p.odd()
	}
	if levels <= 0 {
		return p.pick(`""`, `"a"`, `"abc"`, `"10"`, `"0x1F"`, `" 5 "`, `"1e1"`, `"-3"`, `"\1\n"`, `"x.y"`, `"%d"`, p.one(p.texts))
	}
	switch p.rnd.IntN(6) {
	case 0:
		return fmt.Sprintf("(%s .. %s)", p.string(levels-1), p.pick(p.string(levels-1), p.number(levels-1)))
	case 1:
		return fmt.Sprintf("(%s):%s", p.string(levels-1), p.pick("upper()", "sub(2)", "sub(-2, 3)", "rep(2)", "rep(3, ',')", "gsub('%w', '%0%0')",
			"match('(%d)(.?)')", "find('a')", "reverse()", "gsub('.', {a = 1})", "nomethod()", "byte(1, 2)", "lower()", "format(1, 2)"))
	case 2:
		return fmt.Sprintf("string.format(%s, %s)", p.pick(`"%d"`, `"%5.2f"`, `"%s"`, `"%q"`, `"%x"`, `"%g"`, `"%10s|"`, `"%i%%"`),
			p.pick(p.number(levels-1), p.string(levels-1)))
	case 3:
		return fmt.Sprintf("%s(%s)", p.pick("tostring", "type", "math.type"), p.pick(p.number(levels-1), p.string(levels-1)))
	case 4:
		return fmt.Sprintf("table.concat(%s, %s)", p.table(levels-1), p.string(levels-1))
	}
	return fmt.Sprintf("(function(...) burn() return %s end)(%s, %s)", p.pick("...", "(...)", p.string(levels-1)), p.string(levels-1), p.number(levels-1))
}

func (p *program) condition(levels int) string {
	if levels <= 0 || p.chance(10) {
		return p.pick("true", "false", "nil", p.literal())
	}
	switch p.rnd.IntN(5) {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s)", p.number(levels-1), p.pick("==", "~=", "<", "<=", ">", ">="), p.number(levels-1))
	case 2:
		return fmt.Sprintf("(%s %s %s)", p.string(levels-1), p.pick("==", "~=", "<", "<=", ">", ">="), p.string(levels-1))
	case 3:
		return fmt.Sprintf("(%s %s %s)", p.condition(levels-1), p.pick("and", "or"), p.any(levels-1))
	}
	return fmt.Sprintf("(not %s)", p.any(levels-1))
}

// table is an expression that most likely gives a table.
func (p *program) table(levels int) string {
	if p.chance(25) {
		return p.literal()
	}
	if levels <= 0 {
		return p.pick("{}", "{1, 2, 3}", "new(1)", "g3", "{x = 1}", p.one(p.others), "{10, '20', 30.5}")
	}
	switch p.rnd.IntN(4) {
	case 0:
		return fmt.Sprintf("{some(%s), x = %s, [%s] = some(%s)}", p.any(levels-1), p.any(levels-1), p.pick("1", "2", `"k"`, "1.5"), p.any(levels-1))
	case 1:
		return fmt.Sprintf("(%s)%s", p.table(0), p.pick(".x", "[1]", ".field", ".y.z", "[2]", "(1)", " + 1", " .. 'x'", " < 1", "[1.0]", "['x']"))
	case 2:
		return fmt.Sprintf("{table.unpack(%s)}", p.table(levels-1))
	}
	return fmt.Sprintf("table.pack(some(%s), some(%s))", p.any(levels-1), p.any(levels-1))
}
