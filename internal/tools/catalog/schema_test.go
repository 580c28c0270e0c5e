package catalog

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
)

func TestSchemasAreCachedByTextAndBounded(t *testing.T) {
	t.Parallel()
	s := newSchemas(slog.New(slog.DiscardHandler))
	made := func(text string) *entry { return &entry{info: tool.Info{Input: json.RawMessage(text)}} }
	first := s.of(made(`{"type":"object"}`))
	if again := s.of(made(`{"type":"object"}`)); again != first {
		t.Error("the same text was compiled twice")
	}
	for i := range maxSchemas + 10 {
		s.of(made(fmt.Sprintf("%d", i))) // no schema at all, and known as such
	}
	if n := s.recent.Len(); n != maxSchemas || len(s.byHash) != maxSchemas {
		t.Errorf("%d schemas are in the list, %d in the map", n, len(s.byHash))
	}
	if again := s.of(made(`{"type":"object"}`)); again == first {
		t.Error("the least recently used schema is still cached")
	}
}

func TestHasSmallNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"a":1e308,"b":-0.25E-10,"c":[1,2,3]}`: true,
		`{"a":"1e99999999"}`:                    true,
		`{"a":"\"1e99999999"}`:                  true,
		`{"a":1e9999}`:                          false,
		`[1E+99999]`:                            false,
		`[1.5e-99999]`:                          false,
		`{"e":12345}`:                           true,
		`[true,false,null]`:                     true,
	} {
		if got := hasSmallNumbers([]byte(text)); got != want {
			t.Errorf("hasSmallNumbers(%s) = %v, want %v", text, got, want)
		}
	}
}
