package audit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOperatorOfAnOrganisationVerifies checks that they count their own entries, that their export
// shows nothing of others, and that what is changed or removed in it is found.
func TestOperatorOfAnOrganisationVerifies(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		l := opened(t, store, audit.Options{Node: "a"})
		for _, org := range []string{"beta", "acme", "acme", "beta", "", "acme"} {
			ctx := principal.With(t.Context(), principal.Principal{ID: "key:" + org, Name: "of " + org, Org: org})
			l.RecordAction(ctx, "key.created", "secret of "+org, nil)
		}
		ctx := principal.With(t.Context(), principal.Principal{ID: "key:ops", Org: "acme", Scopes: []principal.Scope{principal.Org}})
		found, err := l.Verify(ctx)
		if err != nil || len(found) != 1 || found[0].Entries != 3 || len(found[0].Problems) > 0 {
			t.Fatalf("%+v, %v", found, err)
		}
		entries, err := l.Find(ctx, audit.Filter{Node: "a", Links: true})
		if err != nil || len(entries) != 6 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		if some, err := l.Find(ctx, audit.Filter{Node: "a", Links: true, Tool: "secret of beta"}); err != nil || len(some) != 6 {
			t.Errorf("a filter tells which links are about something: %d, %v", len(some), err)
		}
		if all, err := l.Find(ctx, audit.Filter{Links: true}); err != nil || len(all) != 3 {
			t.Errorf("links without a chain: %d, %v", len(all), err)
		}
		var lines []string
		for i := range entries {
			line, err := json.Marshal(&entries[i])
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
		if text := strings.Join(lines, "\n"); strings.Contains(text, "beta") || strings.Count(text, "secret of acme") != 3 {
			t.Errorf("exported\n%s", text)
		}
		for name, c := range map[string]struct {
			lines    []string
			problems int
		}{
			"as it is":          {lines, 0},
			"an entry is gone":  {slices.Delete(slices.Clone(lines), 2, 3), 1},
			"a link is gone":    {slices.Delete(slices.Clone(lines), 3, 4), 1},
			"an entry is other": {slices.Replace(slices.Clone(lines), 1, 2, strings.Replace(lines[1], "secret", "safe", 1)), 1},
		} {
			verified, err := audit.VerifyExport(strings.NewReader(strings.Join(c.lines, "\n")))
			if err != nil || len(verified) != 1 || len(verified[0].Problems) != c.problems {
				t.Errorf("%s: %+v, %v", name, verified, err)
			}
		}
		verified, _ := audit.VerifyExport(strings.NewReader(strings.Join(lines, "\n")))
		if verified[0].Entries != 3 || verified[0].Others != 3 {
			t.Errorf("%+v", verified[0])
		}
	})
}
