package lua

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tampering is how many changes of a kind the tests try; fuzzing tries others.
const tampering = 1000

// TestTamperedThreads changes single fields of suspended coroutines. What the
// check lets pass runs, somehow, within its budget.
func TestTamperedThreads(t *testing.T) {
	t.Parallel()
	s := tamperedState(t)
	for seed := range uint64(tampering) {
		tamperThread(t, s, seed)
	}
}

// FuzzTamperedThreads tries other changes.
func FuzzTamperedThreads(f *testing.F) {
	s := tamperedState(f)
	f.Add(uint64(0))
	f.Fuzz(func(t *testing.T, seed uint64) { tamperThread(t, s, seed) })
}

// tamperedState has coroutines of every kind.
func tamperedState(t testing.TB) *State {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "transfer", "coroutines.lua"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(source), "\n----\n")
	s := New(Options{Seed: 1})
	if err := s.Open(fuzzLibraries()...); err != nil {
		t.Fatal(err)
	}
	if _, err := run(s, first, "=coroutines"); err != nil {
		t.Fatal(err)
	}
	return s
}

func tamperThread(t *testing.T, original *State, seed uint64) {
	s, err := original.Fork()
	if err != nil {
		t.Fatal(err)
	}
	v := newSurvey(s)
	v.run()
	r := rand.New(rand.NewPCG(seed, 1))
	co := v.threads[r.IntN(len(v.threads))]
	for range 1 + r.IntN(3) {
		tamper(r, co)
	}
	if co.check() == nil {
		exerciseThread(s, co)
	}
}

// tamper changes one thing about a coroutine.
func tamper(r *rand.Rand, co *Thread) {
	shift := int32(r.IntN(9) - 4)
	if len(co.frames) == 0 || r.IntN(8) == 0 {
		switch r.IntN(4) {
		case 0:
			co.status = status(r.IntN(6))
		case 1:
			co.pending = append(co.pending, int32(r.IntN(len(co.stack)+2)))
		case 2:
			at := r.IntN(len(co.stack))
			co.stack[at] = co.stack[r.IntN(len(co.stack))]
		default:
			co.findUpvalue(r.IntN(len(co.stack)))
		}
		return
	}
	f := &co.frames[r.IntN(len(co.frames))]
	switch r.IntN(12) {
	case 0:
		f.fn += shift
	case 1:
		f.ret += shift
	case 2:
		f.top += shift
	case 3:
		f.pc += shift
	case 4:
		f.want += shift
	case 5:
		f.extra += shift
	case 6:
		f.a += shift
	case 7:
		f.closing += shift
	case 8:
		f.cont = continuation(r.IntN(7))
	case 9:
		f.flags ^= 1 << r.IntN(8)
	case 10:
		f.phase ^= 1
	default:
		co.frames = co.frames[:r.IntN(len(co.frames))]
	}
}

func exerciseThread(s *State, co *Thread) {
	resume, _ := CoroutineLib.Function("resume")
	closing, _ := CoroutineLib.Function("close")
	traceback, _ := DebugLib.Function("traceback")
	for _, fn := range []*Function{traceback, resume, resume, traceback, resume, closing} {
		s.SetBudget(Budget{Steps: 3000, Memory: 32 << 20})
		_, _ = s.Call(context.Background(), fn.Value(), co.Value(), Int(1), String("x"))
	}
	s.collect()
}

// TestTamperedCode changes single instructions. What the verifier lets pass
// runs, somehow, within its budget.
func TestTamperedCode(t *testing.T) {
	t.Parallel()
	for seed := range uint64(tampering) {
		tamperCode(t, seed)
	}
}

// FuzzTamperedCode tries other changes.
func FuzzTamperedCode(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(tamperCode)
}

func tamperCode(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	s := New(Options{Seed: 1})
	if err := s.Open(fuzzLibraries()...); err != nil {
		t.Fatal(err)
	}
	p, err := s.Compile(newProgram(seed%50).text(), "=tampered")
	if err != nil {
		t.Fatal(err)
	}
	for range 1 + r.IntN(4) {
		q := p
		for len(q.protos) > 0 && r.IntN(3) > 0 {
			q = q.protos[r.IntN(len(q.protos))]
		}
		tamperInstruction(r, q)
	}
	if p.verify() != nil {
		return
	}
	s.SetBudget(Budget{Steps: 5000, Memory: 32 << 20})
	_, _ = s.Call(context.Background(), s.Instantiate(p, s.globals.Value()).Value(), Int(1), String("x"))
	s.collect()
}

func tamperInstruction(r *rand.Rand, p *Proto) {
	at := r.IntN(len(p.code))
	i := p.code[at]
	switch r.IntN(6) {
	case 0:
		p.code[at] = i&^0xff | instruction(r.IntN(int(opTrap)))
	case 1:
		p.code[at] = i&^0xff00 | instruction(r.IntN(int(p.maxStack)+1))<<8
	case 2:
		p.code[at] = i&^0xffff0000 | instruction(r.IntN(12))<<16
	case 3:
		p.code[at] = i&^(0xffff<<32) | instruction(r.IntN(12))<<32
	case 4:
		p.code[at] = i&0xffffffff | instruction(uint32(int32(r.IntN(20)-10)))<<32
	default:
		p.code[at] = p.code[r.IntN(len(p.code))]
	}
}
