package kv_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/store/kv"
)

var mix = kv.Space{Owner: "ada", Script: "mix"}

// open opens the store in a folder, as a process does when it starts.
func open(t *testing.T, folder string) *kv.Store {
	t.Helper()
	s, err := kv.Open(t.Context(), dbtest.Open(t, dbtest.In(t, folder)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func set(t *testing.T, s *kv.Store, space kv.Space, key, value string, lifetime time.Duration) {
	t.Helper()
	if err := s.Set(t.Context(), space, key, json.RawMessage(value), lifetime); err != nil {
		t.Fatal(err)
	}
}

// get returns the value of a key, or "none".
func get(t *testing.T, s *kv.Store, space kv.Space, key string) string {
	t.Helper()
	value, ok, err := s.Get(t.Context(), space, key)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "none"
	}
	return string(value)
}

func TestValuesAreDurable(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder)
	set(t, s, mix, "a", `{"n":1}`, 0)
	set(t, s, mix, "a", `{"n":2}`, time.Hour)
	set(t, s, kv.Space{Owner: "ada", Script: "other"}, "a", `3`, 0)
	set(t, s, kv.Space{Owner: "bob", Script: "mix"}, "a", `4`, 0)
	s = open(t, folder) // after a restart
	if got := get(t, s, mix, "a"); got != `{"n":2}` {
		t.Errorf("got %s", got)
	}
	for _, want := range []bool{true, false} {
		if removed, err := s.Delete(t.Context(), mix, "a"); removed != want || err != nil {
			t.Errorf("removed %v, %v, want %v", removed, err, want)
		}
	}
	if got := get(t, s, kv.Space{Owner: "ada", Script: "other"}, "a") + get(t, s, kv.Space{Owner: "bob", Script: "mix"}, "a"); got != "34" {
		t.Errorf("other spaces: %s", got)
	}
}

func TestListByPrefix(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for _, key := range []string{"track/ü2", "track/ü1", "track", "a%b", "TRACK/ü3"} {
		set(t, s, mix, key, `"`+key+`"`, 0)
	}
	for prefix, want := range map[string]string{"": "TRACK/ü3 a%b track track/ü1 track/ü2", "track/ü": "track/ü1 track/ü2", "%": ""} {
		entries, err := s.List(t.Context(), mix, prefix)
		var keys []string
		for _, e := range entries {
			keys = append(keys, e.Key)
			if string(e.Value) != `"`+e.Key+`"` || !e.Expires.IsZero() {
				t.Errorf("entry %+v", e)
			}
		}
		if got := strings.Join(keys, " "); err != nil || got != want {
			t.Errorf("%q: %q, %v", prefix, got, err)
		}
	}
}

func TestValuesExpire(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	set(t, s, mix, "lock", `"me"`, time.Microsecond)
	set(t, s, mix, "long", `1`, time.Hour)
	clocktest.Await(t, func() bool { return get(t, s, mix, "lock") == "none" })
	entries, err := s.List(t.Context(), mix, "")
	if err != nil || len(entries) != 1 || entries[0].Key != "long" || entries[0].Expires.IsZero() {
		t.Errorf("entries %v, %v", entries, err)
	}
	swapped, err := s.Swap(t.Context(), mix, "lock", kv.Change{New: json.RawMessage(`"you"`)})
	if err != nil || !swapped {
		t.Errorf("an expired value counts as none: %v, %v", swapped, err)
	}
}

func TestSwapCounts(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	set(t, s, mix, "n", "0", 0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for done := 0; done < 5; {
				value, _, err := s.Get(t.Context(), mix, "n")
				if err != nil {
					t.Error(err)
					return
				}
				var n int
				_ = json.Unmarshal(value, &n)
				swapped, err := s.Swap(t.Context(), mix, "n", kv.Change{Old: value, New: json.RawMessage(fmt.Sprint(n + 1))})
				if err != nil {
					t.Error(err)
					return
				}
				if swapped {
					done++
				}
			}
		})
	}
	wg.Wait()
	if got := get(t, s, mix, "n"); got != "20" {
		t.Errorf("counted to %s", got)
	}
}

func TestSwapCompares(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	swap := func(old, value string) bool {
		t.Helper()
		c := kv.Change{Old: json.RawMessage(old), New: json.RawMessage(value)}
		if old == "" {
			c.Old = nil
		}
		if value == "" {
			c.New = nil
		}
		swapped, err := s.Swap(t.Context(), mix, "k", c)
		if err != nil {
			t.Fatal(err)
		}
		return swapped
	}
	for _, c := range []struct {
		old, value string
		want       bool
	}{
		{`1`, `2`, false},
		{``, `{"a":[1.0,2],"b":null}`, true},
		{``, `3`, false},
		{`{"b":null,"a":[1,2.0]}`, `9007199254740993`, true},
		{`9007199254740992`, `4`, false},
		{`9007199254740993`, ``, true},
		{``, `5`, true},
	} {
		if got := swap(c.old, c.value); got != c.want {
			t.Errorf("from %s to %s: %v", c.old, c.value, got)
		}
	}
}

// A job that is interrupted after its change repeats it: the first outcome counts, also
// if the value has changed since.
func TestSwapIsRepeated(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder)
	first, lost := kv.Change{New: json.RawMessage("1"), Token: "job/1"}, kv.Change{New: json.RawMessage("2"), Token: "job/2"}
	for range 2 {
		if swapped, err := s.Swap(t.Context(), mix, "k", first); err != nil || !swapped {
			t.Errorf("first: %v, %v", swapped, err)
		}
		if swapped, err := s.Swap(t.Context(), mix, "k", lost); err != nil || swapped {
			t.Errorf("lost: %v, %v", swapped, err)
		}
		set(t, s, mix, "k", "7", 0)
		s = open(t, folder)
	}
	if got := get(t, s, mix, "k"); got != "7" {
		t.Errorf("got %s", got)
	}
}

func TestSpacesAreLimited(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for key, code := range map[string]fault.Code{"": fault.InvalidParams, strings.Repeat("k", 513): fault.InvalidParams, "\xff": fault.InvalidParams} {
		if err := s.Set(t.Context(), mix, key, json.RawMessage("1"), 0); fault.CodeOf(err) != code {
			t.Errorf("key %q: %v", key, err)
		}
	}
	large := `"` + strings.Repeat("x", 1<<20-2) + `"`
	if err := s.Set(t.Context(), mix, "k", json.RawMessage(large+" "), 0); fault.CodeOf(err) != fault.Limit {
		t.Errorf("a large value: %v", err)
	}
	for i := range 64 {
		set(t, s, mix, fmt.Sprint(i), large, 0)
	}
	if err := s.Set(t.Context(), mix, "more", json.RawMessage("1"), 0); fault.CodeOf(err) != fault.Limit {
		t.Errorf("a full space: %v", err)
	}
	set(t, s, mix, "1", "1", 0) // frees what it replaces
	set(t, s, mix, "more", "1", 0)
}
