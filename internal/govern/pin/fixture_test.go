package pin_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// listFake is a source whose list the test changes.
type listFake struct{ tools []tool.Info }

func (s *listFake) Tools(context.Context) ([]tool.Info, error) { return s.tools, nil }

// offer replaces the list by definitions, each "space {json}".
func (s *listFake) offer(t testing.TB, definitions ...string) {
	t.Helper()
	s.tools = nil
	for _, d := range definitions {
		space, raw, _ := strings.Cut(d, " ")
		var read struct{ Name, Description string }
		if err := json.Unmarshal([]byte(raw), &read); err != nil {
			t.Fatal(err)
		}
		s.tools = append(s.tools, tool.Info{
			Ref: tool.Ref{Space: space, Name: read.Name}, Description: read.Description, Raw: json.RawMessage(raw),
		})
	}
	slices.SortFunc(s.tools, func(a, b tool.Info) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
}

func database(t testing.TB) *db.DB {
	t.Helper()
	d := dbtest.OpenWith(t, dbtest.Fresh(t), db.Options{})
	return d
}

func pinned(spaces ...string) pin.Settings {
	s := pin.Settings{Modes: map[string]pin.Mode{}, Owned: map[string]bool{}}
	for _, space := range spaces {
		s.Modes[space] = pin.Pinned
	}
	return s
}

func guard(t testing.TB, d *db.DB, inner tool.Lister, o pin.Options) *pin.Guard {
	t.Helper()
	g, err := pin.New(t.Context(), d, inner, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func listed(t testing.TB, s tool.Lister) (names []string) {
	t.Helper()
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range tools {
		names = append(names, info.Ref.String())
	}
	return names
}

func call(t *testing.T, g *pin.Guard, name string) error {
	t.Helper()
	space, rest, _ := strings.Cut(name, ".")
	return g.CheckCall(t.Context(), tool.Ref{Space: space, Name: rest})
}

func approve(t *testing.T, g *pin.Guard, id string) {
	t.Helper()
	p, err := g.Get(id)
	if err == nil {
		_, err = g.Decide(t.Context(), id, pin.Decision{Approve: true, Digest: p.Digest, By: "ann"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// events are the types of what was published so far.
func events(bus *event.Bus) (types []string) {
	sub := bus.Subscribe(event.Options{After: event.All})
	defer sub.Close()
	for e, ok := sub.Poll(); ok; e, ok = sub.Poll() {
		types = append(types, e.Type)
	}
	return types
}
