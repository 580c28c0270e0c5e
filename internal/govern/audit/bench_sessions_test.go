package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// BenchmarkSessions measures what the page Activity asks for. ACTIVITY_ENTRIES is how many
// entries there are, in sessions of 40.
func BenchmarkSessions(b *testing.B) {
	entries, _ := strconv.Atoi(os.Getenv("ACTIVITY_ENTRIES"))
	if entries == 0 {
		entries = 20_000
	}
	s := openFor(b, dbtest.SQLite)
	detail := Detail{Args: json.RawMessage(`{"path":"/home/anna/notes/today.md","limit":20}`), Result: json.RawMessage(`{"content":"about what notes say"}`), Sent: 47}
	began := time.Now()
	for first := 0; first < entries; first += maxBatch {
		batch := make([]Entry, 0, maxBatch)
		for i := first; i < first+maxBatch; i++ {
			e := call(i)
			e.Activity = &Activity{session: "session:" + strconv.Itoa(i/40), title: "issues older than " + strconv.Itoa(i/40) + " days", Detail: detail}
			batch = append(batch, e)
		}
		if err := s.add(b.Context(), "a", batch); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d entries written in %s", entries, time.Since(began).Round(time.Millisecond))
	for name, f := range map[string]SessionFilter{
		"latest": {}, "agent": {Agent: "claude"}, "common word": {Find: "older"}, "rare word": {Find: fmt.Sprintf("%d days", entries/80)},
		"no such word": {Find: "invoices"}, "tool": {Tool: "git.rare"}, "denied": {Outcome: "denied"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Sessions(b.Context(), f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("steps", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.Steps(b.Context(), "session:"+strconv.Itoa(entries/80), time.Time{}, false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
