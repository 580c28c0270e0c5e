package session

import (
	"math/rand/v2"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
)

// tampered returns the state with some bytes changed, removed or repeated.
func tampered(state []byte, random *rand.Rand) []byte {
	changed := append([]byte(nil), state...)
	at := 1 + random.IntN(len(changed)-1)
	switch random.IntN(5) {
	case 0: // another byte
		changed[at] ^= byte(1 + random.IntN(255))
	case 1: // the end is missing
		return changed[:at]
	case 2: // a part is missing
		return append(changed[:at], changed[min(at+1+random.IntN(8), len(changed)):]...)
	case 3: // a part is repeated
		return append(changed[:at:at], state[max(0, at-1-random.IntN(64)):]...)
	default: // a large number, perhaps a length
		for i := at; i < min(at+4, len(changed)); i++ {
			changed[i] = 0xff
		}
	}
	return changed
}

// A stored session that was changed outside of the program is refused as a whole, whatever
// was changed: nothing of it runs, the process goes on, and it can be reset.
func TestTamperedSnapshots(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	id := p.create(t)
	p.expect(t, id, `
		x = { 1, "two", { three = 3.5 } }
		function add(n) x[1] = x[1] + n return x[1] end
		next_word = coroutine.wrap(function() for w in ("a b c"):gmatch("%a") do coroutine.yield(w) end end)
		meta = setmetatable({}, { __index = function(_, key) return key .. "!" end })
		return next_word()`, `"a"`)
	state := p.state(t, id)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		changed := tampered(state, random)
		p.exec(t, "UPDATE sessions SET state = $1, turns = turns + 1 WHERE id = $2", changed, id)
		done, err := p.Eval(t.Context(), "ada", id, script.Request{Source: "return pcall(add, 1), pcall(next_word), meta and meta.key, #(x or {})"})
		if fault.CodeOf(err) != fault.Conflict {
			t.Fatalf("change %d: %s, %v", i+1, done.Result, err)
		}
	}
	if _, err := p.Reset(t.Context(), "ada", id); err != nil {
		t.Fatal(err)
	}
	p.expect(t, id, "return x", "null")
}

// A script.JavaScript session whose snapshot was changed is rebuilt from its turns, so that no
// value is wrong; without its turns it is refused.
func TestTamperedJavaScriptSnapshots(t *testing.T) {
	t.Parallel()
	p := openSessions(t, t.TempDir(), nil, Options{})
	p.js(t, "work", "const x = [1, 'two', { three: 3.5 }]; const words = (function* () { yield 'a'; yield 'b' })(); words.next().value")
	const look, want = "[x, words.next().value]", `[[1,"two",{"three":3.5}],"b"]`
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		copied, err := p.Fork(t.Context(), "ada", "work", "")
		if err != nil {
			t.Fatal(err)
		}
		p.exec(t, "UPDATE sessions SET state = $1 WHERE id = $2", tampered(p.state(t, copied.ID), random), copied.ID)
		if rebuilt := i%3 == 0; rebuilt {
			if got := p.js(t, copied.ID, look); got != want {
				t.Fatalf("change %d: %s, want %s", i+1, got, want)
			}
			continue
		}
		p.exec(t, "DELETE FROM session_turns WHERE session = $1", copied.ID)
		done, err := p.Eval(t.Context(), "ada", copied.ID, script.Request{Source: look, Language: script.JavaScript})
		if fault.CodeOf(err) != fault.Conflict {
			t.Fatalf("change %d of a session without turns: %s, %v", i+1, done.Result, err)
		}
	}
}

// state returns the stored snapshot of a session.
func (p sessionFixture) state(t *testing.T, id string) (state []byte) {
	t.Helper()
	err := p.database.QueryRow(t.Context(), "SELECT state FROM sessions WHERE id = $1", id).Scan(&state)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// exec changes the database behind the back of the program.
func (p sessionFixture) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	err := p.database.Exec(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
}
