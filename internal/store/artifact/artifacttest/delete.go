package artifacttest

import (
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/artifact"
)

// deletesAndRestores checks that a deleted artifact is not found, that its descendants stay,
// and that it is restored as it was.
func deletesAndRestores(t *testing.T, s *artifact.Store, _ *event.Bus) {
	parent := put(t, s, "one", artifact.Details{Name: "one", Tags: []string{"a"}, Creator: "ann", Description: "the first"})
	child := put(t, s, "two", artifact.Details{Name: "two", Parent: parent.Hash})
	before, err := s.Annotate(t.Context(), parent.Hash, artifact.Annotation{Message: "fine"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), parent.Hash); err != nil {
		t.Fatal(err)
	}
	expect(t, s, artifact.Query{}, "two")
	expect(t, s, artifact.Query{Vibe: "first"}, "")
	if _, err := s.Get(t.Context(), parent.Hash); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a deleted artifact: %v", err)
	}
	if _, err := s.Delete(t.Context(), parent.Hash); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
	if line, err := s.Ancestors(t.Context(), child.Hash, 9); err != nil || len(line) != 0 {
		t.Errorf("ancestors: %v, %v", line, err)
	}
	put(t, s, "three", artifact.Details{Name: "three", Parent: child.Hash})
	if content, err := s.Read(t.Context(), parent.Hash, 9); err != nil || string(content) != "one" {
		t.Errorf("its content: %q, %v", content, err)
	}
	after, err := s.Restore(t.Context(), parent.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if after.Name != "one" || after.Creator != "ann" || len(after.Tags) != 1 || len(after.Annotations) != 1 || !after.CreatedAt.Equal(before.CreatedAt) {
		t.Errorf("restored %+v, was %+v", after, before)
	}
	expect(t, s, artifact.Query{Vibe: "first"}, "one")
	if _, err := s.Restore(t.Context(), parent.Hash); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("restored twice: %v", err)
	}
	if _, err := s.Delete(t.Context(), parent.Hash); err != nil {
		t.Fatal(err)
	}
	put(t, s, "one", artifact.Details{Name: "again"})
	expect(t, s, artifact.Query{Name: "again"}, "again")
}

// findsByType checks the filter of types, alone and with words.
func findsByType(t *testing.T, s *artifact.Store, _ *event.Bus) {
	for name, mime := range map[string]string{"song": "audio/wav", "tune": "audio/midi", "note": "text/plain"} {
		put(t, s, name, artifact.Details{Name: name, MIME: mime, Description: "something"})
	}
	expect(t, s, artifact.Query{MIME: []string{"!audio/midi", "audio/%"}}, "song")
	expect(t, s, artifact.Query{MIME: []string{"audio/midi"}, Vibe: "something"}, "tune")
	expect(t, s, artifact.Query{MIME: []string{"!audio/%"}}, "note")
}
