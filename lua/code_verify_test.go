package lua

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerifyAcceptsCompiledCode checks every program at hand.
func TestVerifyAcceptsCompiledCode(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"testdata/*.lua", "testdata/*/*.lua", "bench/*.lua"} {
		programs, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range programs {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			verifySource(t, path, string(source))
		}
	}
	for seed := range uint64(200) {
		verifySource(t, "random program", newProgram(seed).text())
	}
}

func verifySource(t *testing.T, name, source string) {
	t.Helper()
	p, err := New(Options{}).Compile(source, "="+name)
	if err != nil {
		return // some programs are meant to be wrong
	}
	if err := p.verify(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestVerifyRefuses takes compiled code and breaks it in one place.
func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	const source = `local a, b = ... local t = {a, b, f(...)} for i = 1, 3 do t[i] = a .. b end
		for k, v in pairs(t) do if k == v then goto done end end ::done:: return f(a, ...)`
	replace := func(op opcode, change func(i instruction) instruction) func(p *Proto) {
		return func(p *Proto) {
			for pc, i := range p.code {
				if i.op() == op {
					p.code[pc] = change(i)
					return
				}
			}
			panic("no such instruction")
		}
	}
	for name, spoil := range map[string]func(p *Proto){
		"no code":             func(p *Proto) { p.code = nil },
		"no registers":        func(p *Proto) { p.maxStack = 1 },
		"too few registers":   func(p *Proto) { p.maxStack = 4 },
		"runs past the end":   func(p *Proto) { p.code = p.code[:len(p.code)-1] },
		"lines missing":       func(p *Proto) { p.lines = p.lines[:3] },
		"variable out of it":  func(p *Proto) { p.locals[0].reg = 255 },
		"no constants":        func(p *Proto) { p.constants = nil },
		"no hints":            func(p *Proto) { p.hints = p.hints[:1] },
		"no upvalues":         func(p *Proto) { p.upvalues = nil },
		"no preparation":      func(p *Proto) { p.code[0] = abc(opMove, 0, 0, 0) },
		"trap":                func(p *Proto) { p.code[1] = abc(opTrap, 0, 0, 0) },
		"jump out":            replace(opForLoop, func(i instruction) instruction { return abj(opForLoop, i.a(), 0, -1000) }),
		"jump to preparation": replace(opForLoop, func(i instruction) instruction { return abj(opJump, 0, 0, -1000) }),
		"free loop":           replace(opNe, func(i instruction) instruction { return abj(opNe, i.a(), i.b(), -1) }),
		"open arguments":      replace(opSetList, func(i instruction) instruction { return abj(opReturn, i.a()+40, 0, 0) }),
		"results outside":     replace(opCall, func(i instruction) instruction { return abc(opCall, i.a(), i.b(), 200) }),
		"operands outside":    replace(opConcat, func(i instruction) instruction { return abc(opConcat, i.a(), 200, 0) }),
		"nothing to concat":   replace(opConcat, func(i instruction) instruction { return abc(opConcat, i.a(), 0, 0) }),
		"single return of 2":  replace(opReturn, func(i instruction) instruction { return abc(opReturn1, 0, 3, 0) }),
	} {
		p, err := New(Options{}).Compile(source, "=broken")
		if err != nil {
			t.Fatal(err)
		}
		spoil(p)
		if err := p.verify(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestForeignCodeSetsList runs a table constructor whose register has no table.
func TestForeignCodeSetsList(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	p, err := s.Compile(`local t = {1, 2, 3} return t`, "=constructor")
	if err != nil {
		t.Fatal(err)
	}
	for pc, i := range p.code {
		if i.op() == opNewTable {
			p.code[pc] = abj(opLoadI, i.a(), 0, 5)
		}
	}
	if err := p.verify(); err != nil {
		t.Fatal(err)
	}
	_, err = s.Call(context.Background(), s.Instantiate(p, Nil).Value())
	if err == nil || !strings.Contains(err.Error(), "attempt to index a number value") {
		t.Errorf("got %v", err)
	}
}

// TestBinaryChunksAreVerified loads chunks with single bytes changed: each
// loads and runs, or is refused.
func TestBinaryChunksAreVerified(t *testing.T) {
	t.Parallel()
	s := New(Options{BinaryChunks: true})
	if err := s.Open(Base); err != nil {
		t.Fatal(err)
	}
	p, err := s.Compile(`local n, t = 0, {...} for k, v in ipairs(t) do n = n + v end return n .. "", #t`, "=chunk")
	if err != nil {
		t.Fatal(err)
	}
	dump := p.dump(false)
	for at := len(binarySignature + binaryVersion); at < len(dump); at++ {
		for _, flip := range []byte{1, 0x80, 0xff} {
			changed := bytes.Clone(dump)
			changed[at] ^= flip
			runChanged(s, string(changed))
		}
	}
}

// runChanged runs a chunk that may be broken; its effect does not matter
// as long as it ends.
func runChanged(s *State, chunk string) {
	fn, err := s.loadChunk(chunk, "=changed", "b", s.globals.Value())
	if err != nil {
		return
	}
	s.SetBudget(Budget{Steps: 10000, Memory: 16 << 20})
	_, _ = s.Call(context.Background(), fn.Value(), Int(1), Int(2))
}
