package audit

import (
	"fmt"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// Organisations keep entries for different times. What is old behind an entry that stays
// is erased, the chain verifies, and an erased entry that is changed is found.
func TestOrganisationsKeepTheirEntries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, err := OpenStore(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		var entries []Entry
		for i := range 12 { // acme, bank, none, acme, bank, none …
			entries = append(entries, Entry{At: began.Add(time.Duration(i) * time.Hour), Org: []string{"acme", "bank", ""}[i%3], Who: "key:web", Name: "web", Action: Call, Subject: fmt.Sprintf("git.tool_%d", i), Decision: "allow"})
		}
		if err := s.add(t.Context(), "a", entries); err != nil {
			t.Fatal(err)
		}
		hour := func(n int) time.Time { return began.Add(time.Duration(n) * time.Hour) }
		for _, step := range []struct {
			limits      AgeLimits
			erased      int // in this step
			cut, intact int64
		}{
			{AgeLimits{Before: hour(4), Orgs: map[string]time.Time{"bank": {}}}, 2, 1, 9},         // acme's first is cut off, its second erased with the first of none
			{AgeLimits{Before: hour(4), Orgs: map[string]time.Time{"bank": {}}}, 0, 1, 9},         // nothing twice
			{AgeLimits{Before: hour(4), Orgs: map[string]time.Time{"acme": hour(8)}}, 1, 4, 7},    // bank's first and the erased ones are cut off
			{AgeLimits{Before: hour(12), Orgs: map[string]time.Time{"acme": hour(9)}}, 2, 9, 1},   // acme's last stays
			{AgeLimits{Before: hour(12), Orgs: map[string]time.Time{"acme": hour(12)}}, 0, 12, 0}, // nothing stays
		} {
			erased, err := s.DeleteOld(t.Context(), step.limits)
			if err != nil {
				t.Fatal(err)
			}
			found, err := s.Verify(t.Context())
			if err != nil || len(found) != 1 || len(found[0].Problems) > 0 {
				t.Fatalf("%+v: %+v %v", step.limits, found, err)
			}
			if v := found[0]; erased != step.erased || v.Cut != step.cut || v.Entries-v.Erased != step.intact {
				t.Errorf("%+v: erased %d, found %+v; want erased %d, cut %d, %d intact", step.limits, erased, v, step.erased, step.cut, step.intact)
			}
		}
	})
}

func TestErasedEntriesAreChecked(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s, err := OpenStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var entries []Entry
	for i, org := range []string{"acme", "bank", "acme", "bank"} {
		entries = append(entries, Entry{At: at.Add(time.Duration(i) * time.Second), Org: org, Who: "key:web", Action: Call, Subject: "git.log", Decision: "allow"})
	}
	if err := s.add(t.Context(), "a", entries); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteOld(t.Context(), AgeLimits{Orgs: map[string]time.Time{"bank": at.Add(time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	list, err := s.Find(t.Context(), Filter{Node: "a"})
	if err != nil || len(list) != 4 || !list[1].isErased() || list[1].Subject != "" || !list[3].isErased() || list[2].Subject != "git.log" {
		t.Fatalf("%+v %v", list, err)
	}
	replaced(2, `"subject":""`, `"subject":"git.push"`)(t, d)
	found, err := s.Verify(t.Context())
	if err != nil || len(found) != 1 || len(found[0].Problems) != 1 || found[0].Erased != 1 {
		t.Errorf("%+v %v", found, err)
	}
}
