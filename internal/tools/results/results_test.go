package results_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/results"
)

// open opens the store in a folder, as a process does when it starts.
func open(t *testing.T, folder string, o results.Options) *results.Store {
	t.Helper()
	database := dbtest.Open(t, dbtest.In(t, folder))
	s, err := results.Open(t.Context(), database, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func put(t *testing.T, s *results.Store, owner, value string) results.Stored {
	t.Helper()
	stored, err := s.Put(t.Context(), owner, "fs.list", json.RawMessage(value))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

const folder = `{"items":[{"name":"a","size":1},{"name":"b~/c","size":2}],"path":"/tmp","a/b":"müde"}`

func TestStoredResultsAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := put(t, open(t, dir, results.Options{}), "ada", folder)
	if k.Handle != "$r1" || k.Shape != "{items: {name: string, size: integer}[], path: string, \"a/b\": string}" || k.Size != int64(len(folder)) {
		t.Errorf("stored %+v", k)
	}
	s := open(t, dir, results.Options{}) // after a restart
	for pointer, want := range map[string]string{
		"": folder, "/items/1/name": `"b~/c"`, "/a~1b": `"müde"`, "/path": `"/tmp"`,
	} {
		if got, err := s.Read(t.Context(), "ada", "$r1", pointer); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", pointer, got, err)
		}
	}
	for pointer, hint := range map[string]string{
		"/items/2": "a list of 2 items", "/itmes": "it has items, path", "items": "a slash before every step", "/path/x": `it is "/tmp"`,
	} {
		if _, err := s.Read(t.Context(), "ada", "$r1", pointer); err == nil || !strings.Contains(fault.HintOf(err), hint) {
			t.Errorf("%s: %v, %s", pointer, err, fault.HintOf(err))
		}
	}
	part, err := s.Slice(t.Context(), "ada", "$r1", "/items", 1, 5)
	if err != nil || string(part.Value) != `[{"name":"b~/c","size":2}]` || part.Total != 2 {
		t.Errorf("%s, %v", part.Value, err)
	}
	if part, err := s.Slice(t.Context(), "ada", "$r1", "/a~1b", 1, 2); err != nil || string(part.Value) != `"üd"` || part.Total != 4 {
		t.Errorf("%s, %v", part.Value, err)
	}
	if _, err := s.Slice(t.Context(), "ada", "$r1", "", 0, 1); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("slice of an object: %v", err)
	}
}

func TestResultsBelongToTheirUser(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), results.Options{})
	put(t, s, "ada", `"hers"`)
	if _, err := s.Read(t.Context(), "bob", "$r1", ""); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("bob: %v", err)
	}
	if k := put(t, s, "bob", `"his"`); k.Handle != "$r1" {
		t.Errorf("bob's first is %s", k.Handle)
	}
	if got, err := s.Read(t.Context(), "ada", "$r1", ""); err != nil || string(got) != `"hers"` {
		t.Errorf("ada: %s, %v", got, err)
	}
	for _, handle := range []string{"r1", "$r", "$rx", "", "$r1; DROP TABLE x"} {
		if _, err := s.Read(t.Context(), "ada", handle, ""); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%q: %v", handle, err)
		}
	}
}

// TestResultsBelongToTheirSetOfTools checks that within a set an owner reaches what was stored
// within it, and without one everything.
func TestResultsBelongToTheirSetOfTools(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), results.Options{})
	sets := []string{"", "research", "mail"}
	within := func(set string) context.Context { return principal.With(t.Context(), principal.Local().InSet(set)) }
	for _, set := range sets {
		if _, err := s.Put(within(set), "ada", "fs.list", json.RawMessage(`"of `+set+`"`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range sets {
		var list []string
		all, err := s.List(within(set), "ada")
		for _, k := range all {
			list = append(list, k.Handle)
		}
		readable := []string{}
		for n, of := range sets {
			handle := fmt.Sprintf("$r%d", n+1)
			switch got, err := s.Read(within(set), "ada", handle, ""); {
			case err == nil && string(got) == `"of `+of+`"`:
				readable = append([]string{handle}, readable...)
			case fault.CodeOf(err) != fault.NotFound || strings.Contains(fault.HintOf(err), handle):
				t.Errorf("%s in %q: %s, %v, %s", handle, set, got, err, fault.HintOf(err))
			}
		}
		want := map[string]string{"": "$r3 $r2 $r1", "research": "$r2", "mail": "$r3"}[set]
		if got := strings.Join(readable, " "); err != nil || got != want || strings.Join(list, " ") != want {
			t.Errorf("in %q: reads %s, lists %s, %v; want %s", set, got, list, err, want)
		}
	}
}

func TestOldResultsExpire(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := open(t, t.TempDir(), results.Options{Count: 3, Bytes: 100, Age: time.Hour, Clock: now})
	for i := range 5 {
		put(t, s, "ada", fmt.Sprint(i))
	}
	if got := handles(t, s); got != "$r5 $r4 $r3" {
		t.Errorf("by count: %s", got)
	}
	put(t, s, "ada", `"`+strings.Repeat("x", 97)+`"`)
	if got := handles(t, s); got != "$r6 $r5" {
		t.Errorf("by size: %s", got)
	}
	if _, err := s.Put(t.Context(), "ada", "x", json.RawMessage(`"`+strings.Repeat("x", 100)+`"`)); fault.CodeOf(err) != fault.Limit {
		t.Errorf("too big: %v", err)
	}
	now.Advance(50 * time.Minute)
	if _, err := s.Read(t.Context(), "ada", "$r5", ""); err != nil {
		t.Error(err)
	}
	now.Advance(20 * time.Minute)
	if _, err := s.Read(t.Context(), "ada", "$r6", ""); fault.CodeOf(err) != fault.NotFound || !strings.Contains(fault.HintOf(err), "stored: $r5") {
		t.Errorf("by age: %v, %s", err, fault.HintOf(err))
	}
	now.Advance(2 * time.Hour)
	if k := put(t, s, "ada", `1`); k.Handle != "$r7" {
		t.Errorf("a handle was used twice: %s", k.Handle)
	}
}

func handles(t *testing.T, s *results.Store) string {
	t.Helper()
	all, err := s.List(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range all {
		names = append(names, k.Handle)
	}
	return strings.Join(names, " ")
}

func TestPreview(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`[1,2,3,4,5]`:                              `[1, 2, 3, … 2 more]`,
		`{"a":{"b":{"c":{"d":{"e":1}}}}}`:          `{a: {b: {c: {d: {…}}}}}`,
		`"` + strings.Repeat("x", 700) + `"`:       strings.Repeat("x", 600) + "…",
		`{"t":"` + strings.Repeat("y", 200) + `"}`: `{t: "` + strings.Repeat("y", 100) + `…"}`,
	} {
		if got := results.Preview(json.RawMessage(value)); got != want {
			t.Errorf("%s", got)
		}
	}
}

func answer(t *testing.T, data any) tool.Result {
	t.Helper()
	r, err := tool.Output("text", data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestShapesAreLearned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, results.Options{})
	ref := tool.Ref{Space: "git", Name: "log"}
	info := tool.Info{Ref: ref, Input: json.RawMessage(`{"type":"object"}`)}
	if _, ok := s.Learned(ref); ok {
		t.Error("a shape before the first result")
	}
	s.Learn(&info, answer(t, map[string]any{"title": "one", "n": 1}))
	s.Learn(&info, answer(t, map[string]any{"title": "two"}))
	s.Learn(&info, tool.Failure(fault.New(fault.Internal, "broken")))
	text, _ := tool.Output(`{"title":"as text"}`, nil)
	s.Learn(&info, text)
	s.Close()
	s = open(t, dir, results.Options{}) // after a restart
	got, ok := s.Learned(ref)
	want := `{"type":"object","properties":{"n":{"type":"integer"},"title":{"type":"string"}},"required":["title"]}`
	if !ok || string(got.Schema) != want || got.Version != 2 {
		t.Errorf("learned %s from %d, version %d", got.Schema, got.Results, got.Version)
	}
	info.Description = "another tool"
	s.Learn(&info, answer(t, map[string]any{"other": true}))
	if got, _ := s.Learned(ref); strings.Contains(string(got.Schema), "title") || got.Results != 1 || got.Version != 3 {
		t.Errorf("learned %s from %d, version %d", got.Schema, got.Results, got.Version)
	}
}
