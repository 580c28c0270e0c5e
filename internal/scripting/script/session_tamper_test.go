package script

import (
	"math/rand/v2"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
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
	p := openSessions(t, t.TempDir(), nil, SessionOptions{})
	id := p.create(t)
	p.expect(t, id, `
		x = { 1, "two", { three = 3.5 } }
		function add(n) x[1] = x[1] + n return x[1] end
		next_word = coroutine.wrap(function() for w in ("a b c"):gmatch("%a") do coroutine.yield(w) end end)
		meta = setmetatable({}, { __index = function(_, key) return key .. "!" end })
		return next_word()`, `"a"`)
	var state []byte
	err := p.database.Read(t.Context(), func(tx *db.Tx) error {
		return tx.QueryRow(t.Context(), "SELECT state FROM sessions WHERE id = $1", id).Scan(&state)
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		changed := tampered(state, random)
		err := p.database.Write(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(t.Context(), "UPDATE sessions SET state = $1, turns = turns + 1 WHERE id = $2", changed, id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		done, err := p.Eval(t.Context(), "ada", id, Request{Source: "return pcall(add, 1), pcall(next_word), meta and meta.key, #(x or {})"})
		if fault.CodeOf(err) != fault.Conflict {
			t.Fatalf("change %d: %s, %v", i+1, done.Result, err)
		}
	}
	if _, err := p.Reset(t.Context(), "ada", id); err != nil {
		t.Fatal(err)
	}
	p.expect(t, id, "return x", "null")
}
