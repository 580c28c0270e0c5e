package terminal_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/ui/terminal"
)

// nodes answers as a server that knows others, when the test says which.
func (s *stage) nodes(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.answers["nodes"]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(known)
}

func (s *stage) restore(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.called = append(s.called, "restore "+r.PathValue("name"))
	s.mu.Unlock()
	_, _ = w.Write([]byte(`{}`))
}

// far is something that happens on another node.
func (s *stage) far(node, kind string, data map[string]any) {
	s.happens(kind, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[len(s.events)-1]["node"] = node
}

func severalNodes() map[string]any {
	one := func(id, name, state string, hours int) map[string]any {
		return map[string]any{"id": id, "name": name, "state": state, "address": "http://" + name + ":8081", "version": "1.2.3",
			"started": noon.Add(-time.Duration(hours) * time.Hour), "heard": noon}
	}
	busy := one("n1", "oak", "up", 30)
	busy["load"] = map[string]any{"calls_per_minute": 120, "in_flight": 3, "jobs": 1, "sessions": 4, "cpu_percent": 7.4, "memory_mb": 80.2}
	return map[string]any{"node": "n1", "nodes": []any{busy, one("n2", "elm", "silent", 2)}}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.answer("nodes", severalNodes())
	s.far("elm", "tool.call_started", map[string]any{"call": 1, "namespace": "files", "tool": "read_file", "depth": 1})
	s.happens("tool.call_started", map[string]any{"call": 1, "namespace": "files", "tool": "write_file", "depth": 1}) // each node counts its own
	s.far("elm", "tool.call_ended", map[string]any{"call": 1, "namespace": "files", "tool": "read_file", "depth": 1, "duration_ms": 3.2})
	s.far("elm", "script.published", map[string]any{"name": "greet"})
	p := s.sit(160, 40)
	p.golden("nodes-160x40", "2 nodes, 1 silent")
	p.types("n")
	p.golden("nodes-list-160x40", "oak (asked)")
	p.types("q")
	p.reads("1 Upstreams")

	var text strings.Builder
	if err := terminal.Once(t.Context(), terminal.Options{Server: s.server.URL, Output: &text, Now: func() time.Time { return noon }}, 0, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"elm          silent", "120 calls/min", "files.read_file @elm", "script greet: published @elm"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestAloneHasNoNodes(t *testing.T) {
	t.Parallel()
	p := newStage(t).day().sit(80, 24)
	p.reads("live")
	p.types("n")
	p.reads("shares its database with no other")
}

func TestRemovedUpstreamComesBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.answer("mcp_list_upstreams", map[string]any{"upstreams": []any{
		map[string]any{"namespace": "files", "endpoint": "http://files.example/mcp", "state": "removed", "origin": "config"},
	}})
	p := s.sit(120, 30)
	p.reads("the configuration still wants it: r brings it back")
	p.types("r")
	p.reads("files is wanted again")
	if !s.wasCalled("restore files") {
		t.Errorf("called: %v", s.called)
	}
}

func TestWhatComesAgainIsOneLine(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for attempt := range 30 {
		s.happens("upstream.reconnecting", map[string]any{"upstream": "search", "attempt": attempt + 1, "delay_ms": 3000, "error": "no"})
	}
	s.far("elm", "upstream.reconnecting", map[string]any{"upstream": "search", "attempt": 7, "delay_ms": 3000, "error": "no"})
	p := s.sit(80, 24)
	p.reads("4 Log 2")
	p.reads("search: away, try 30 in 3.0 s: no")
	p.reads("try 7 in 3.0 s: no @elm")
}
