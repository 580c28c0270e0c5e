package js

import (
	"bytes"
	"context"
	"strings"
	"testing"

	quickjs "github.com/aperturerobotics/go-quickjs-wasi-reactor"
)

// TestRewriteLeavesNoLoopUnpolled checks that every loop outside the interpreter
// polls and every change of the stack pointer is guarded.
func TestRewriteLeavesNoLoopUnpolled(t *testing.T) {
	t.Parallel()
	made, err := rewrite(quickjs.QuickJSWASM)
	if err != nil {
		t.Fatal(err)
	}
	sections, err := splitSections(made.bytes)
	if err != nil {
		t.Fatal(err)
	}
	p := &patch{named: map[string]uint32{interpreter: 0, notePosition: 0, parseStatement: 0, parseFunction: 0, parseExpression: 0}}
	original, err := splitSections(quickjs.QuickJSWASM)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.survey(original); err != nil {
		t.Fatal(err)
	}
	loops, guards, bare := 0, 0, 0
	for _, s := range sections {
		if s.id != sectionCode {
			continue
		}
		r := reader{b: s.body}
		for i := range r.u32() {
			body := reader{b: r.bytes(int(r.u32()))}
			for n := body.u32(); n > 0; n-- {
				body.u32()
				body.byte()
			}
			for body.err == nil && body.at < len(body.b) {
				op := body.byte()
				start := body.at
				body.skipImmediates(op)
				after := body.b[body.at:]
				switch {
				case op == opLoop && bytes.HasPrefix(after, p.pollCode()):
					loops++
				case op == opLoop && p.imports+i != p.named[interpreter]:
					bare++
				case op == opGlobalSet && operand(body.b[start:]) == stackPointer && bytes.HasPrefix(after, p.guardCode()):
					guards++
				case op == opGlobalSet && operand(body.b[start:]) == stackPointer:
					bare++
				}
			}
			if body.err != nil {
				t.Fatal(body.err)
			}
		}
	}
	if loops < 1000 || guards < 500 || bare != 0 {
		t.Errorf("%d loops poll, %d changes of the stack are guarded, %d are bare", loops, guards, bare)
	}
}

func TestRewriteRefuses(t *testing.T) {
	t.Parallel()
	nameless := []byte("\x00asm\x01\x00\x00\x00")
	for name, c := range map[string]struct {
		module []byte
		want   string
	}{
		"nothing":        {nil, "not a WebAssembly module"},
		"text":           {[]byte("(module) and more"), "not a WebAssembly module"},
		"cut":            {quickjs.QuickJSWASM[:5000], "unexpected end"},
		"another module": {nameless, "names no function"},
	} {
		if _, err := rewrite(c.module); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestTemplateIsDeterministic checks that two engines build the same template, compiled or
// interpreted, which snapshots rely on.
func TestTemplateIsDeterministic(t *testing.T) {
	t.Parallel()
	slow, table, err := newInterpreted(t.Context())
	a := testMachine(t, slow, table, err, 16<<20)
	fast, table, err := newCompiled(t.Context(), cache)
	b := testMachine(t, fast, table, err, 64<<20)
	if a.fingerprint != b.fingerprint {
		t.Error("the fingerprints differ")
	}
	if a.handles != b.handles || !bytes.Equal(a.template.full, b.template.full) {
		t.Error("the templates differ")
	}
}

func testMachine(t *testing.T, b *backend, table rewritten, err error, memory int64) *machine {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.close(context.Background()) })
	m, err := newMachine(t.Context(), b, table, Options{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
