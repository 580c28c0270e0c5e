package session

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
)

// TestNamedSessionIsCreatedOnFirstUse checks that a name is enough to have a session.
func TestNamedSessionIsCreatedOnFirstUse(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := openSessions(t, folder, nil, Options{})
	p.expect(t, "work", "x = 1", "null", "x", "1")
	if _, err := p.Eval(t.Context(), "bob", "work", script.Request{Source: "return x == nil"}); err != nil {
		t.Error(err)
	}
	for owner, want := range map[string]string{"ada": "1", "bob": "null"} {
		done, err := p.Eval(t.Context(), owner, "work", script.Request{Source: "x"})
		if err != nil || string(done.Result) != want {
			t.Errorf("%s: x = %s, %v, want %s", owner, done.Result, err, want)
		}
	}
	list, err := p.List(t.Context(), "ada")
	if err != nil || len(list) != 1 || list[0].Name != "work" || len(list[0].ID) < 26 {
		t.Fatalf("list %+v, %v", list, err)
	}
	p.expect(t, list[0].ID, "x", "1")
	if _, err := p.Eval(t.Context(), "bob", list[0].ID, script.Request{Source: "x"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("bob with the id of ada: %v", err)
	}
	if err := p.database.Close(); err != nil {
		t.Fatal(err)
	}
	openSessions(t, folder, nil, Options{}).expect(t, "work", "x", "1")
}

// TestNamesReachTheirSession checks every operation by name, and what a name reaches when
// several sessions have it.
func TestNamesReachTheirSession(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	ctx := t.Context()
	first, err := p.Create(ctx, Spec{Owner: "ada", Name: "work"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(ctx, Spec{Owner: "ada", Name: "work"}); err != nil {
		t.Fatalf("a second one of the same name: %v", err)
	}
	p.expect(t, "work", "x = 1", "null")
	p.expect(t, first.ID, "x", "1")
	forked, err := p.Fork(ctx, "ada", "work", "")
	if err != nil || forked.Name != "work" {
		t.Fatalf("forked %+v, %v", forked, err)
	}
	p.expect(t, forked.ID, "x = 2", "null")
	p.expect(t, "work", "x", "1")
	if outcome, err := p.Preview(ctx, "ada", "work", script.Request{Source: "x"}); err != nil || string(outcome.Result) != "1" {
		t.Errorf("preview %s, %v", outcome.Result, err)
	}
	if _, err := p.Reset(ctx, "ada", "work"); err != nil {
		t.Error(err)
	}
	p.expect(t, "work", "x", "null")
	if err := p.Close(ctx, "ada", "work"); err != nil {
		t.Error(err)
	}
	for _, err := range []error{p.Close(ctx, "ada", "work"), p.Close(ctx, "ada", "never")} {
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("closed again: %v", err)
		}
	}
	for _, ref := range []string{"s-work", "no name", strings.Repeat("n", 65)} {
		if _, err := p.Eval(ctx, "ada", ref, script.Request{Source: "x"}); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

// TestFirstUsesAtOnceShareASession checks that a name never gets two sessions.
func TestFirstUsesAtOnceShareASession(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := p.Eval(t.Context(), "ada", "work", script.Request{Source: "n = (n or 0) + 1"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	p.expect(t, "work", "n", "8")
}

// TestTurnsAreNumbered checks that every run has its own number, also if it fails or
// changes nothing.
func TestTurnsAreNumbered(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	for i, code := range []string{"error('a')", "error('b')", "return 1", "error('c')", "x = 1", "error('d')"} {
		_, err := p.Eval(t.Context(), "ada", "work", script.Request{Source: code})
		if want := fmt.Sprintf("turn%d:1:", i+1); strings.HasPrefix(code, "error") && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", code, err, want)
		}
	}
	list, err := p.List(t.Context(), "ada")
	if err != nil || list[0].Runs != 6 {
		t.Errorf("list %+v, %v", list, err)
	}
}

// TestParamsOfTurnsAreChecked checks that describe() applies in sessions, where it may use
// their globals.
func TestParamsOfTurnsAreChecked(t *testing.T) {
	t.Parallel()
	for language, codes := range map[string][3]string{
		script.Lua:        {"limit = 3", "function describe() return {params = {n = {type = 'number', required = true}, m = {type = 'number', default = limit}}} end function main(p) return p.n + p.m end", "function main(p) return p.n end"},
		script.JavaScript: {"let limit = 3", "function describe() { return {params: {n: {type: 'number', required: true}, m: {type: 'number', default: limit}}} } function main(p) { return p.n + p.m }", "function main(p) { return p.n }"},
	} {
		p := openSessions(t, t.TempDir(), nil, Options{})
		eval := func(code, params string) (string, error) {
			done, err := p.Eval(t.Context(), "ada", "work", script.Request{Source: code, Language: language, Params: []byte(params), Main: params != ""})
			return string(done.Result), err
		}
		if _, err := eval(codes[0], ""); err != nil {
			t.Fatal(err)
		}
		if _, err := eval(codes[1], `{"n":"many"}`); err == nil || !strings.Contains(err.Error(), "should be number but got string") {
			t.Errorf("%s: %v", language, err)
		}
		if got, err := eval(codes[1], `{"n":2}`); err != nil || got != "5" {
			t.Errorf("%s: %s, %v", language, got, err)
		}
		if got, err := eval(codes[2], `{"n":"any"}`); err != nil || got != `"any"` {
			t.Errorf("%s: another main: %s, %v", language, got, err)
		}
	}
}
