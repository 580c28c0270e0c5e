package audit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// calls of 50,000 sessions, of which one in 5,000 called a rare tool.
func activity(i int) Entry {
	e := call(i)
	session := i / 20
	e.Subject, e.Trace = fmt.Sprintf("server%d.tool_%d", session%30, i%7), ""
	if session%5000 == 77 {
		e.Subject = "server3.rare"
	}
	if i%50 == 0 {
		e.Error = "upstream_error"
	}
	e.Activity = &Activity{session: fmt.Sprintf("session:%08d", session), agent: fmt.Sprintf("agent%d 1.0", session%9), Detail: Detail{
		Args: fmt.Appendf(nil, `{"path":"/srv/%d/notes-%d.txt"}`, session%97, i), Sent: 30, Result: []byte(`"some text of the file, and more of it"`),
	}}
	if i%20 == 0 {
		e.Activity.title = fmt.Sprintf("what changed in project %d", session%500)
	}
	return e
}

// BenchmarkActivity reads the list and the steps of 1,000,000 entries, as the page does.
func BenchmarkActivity(b *testing.B) {
	const entries, batch = 1_000_000, 5000
	s := openFor(b, dbtest.SQLite)
	began := time.Now()
	for i := 0; i < entries; i += batch {
		some := make([]Entry, batch)
		for j := range some {
			some[j] = activity(i + j)
		}
		if err := s.add(b.Context(), "a", some); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("filled in %s", time.Since(began))
	ctx := principal.With(b.Context(), principal.Local())
	for name, f := range map[string]SessionFilter{
		"newest": {}, "agent": {Agent: "agent3"}, "tool": {Tool: "server3.rare"}, "server": {Server: "server9"}, "failed": {Outcome: "failed"},
		"words": {Find: "project 499"}, "no match": {Find: "nothing like this"}, "hour": {Since: call(entries).At.Add(-time.Hour)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Sessions(ctx, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("steps", func(b *testing.B) {
		for b.Loop() {
			if _, steps, err := s.Steps(ctx, fmt.Sprintf("session:%08d", rand.IntN(entries/20)), time.Time{}, false); err != nil || len(steps) != 20 {
				b.Fatal(len(steps), err)
			}
		}
	})
}
