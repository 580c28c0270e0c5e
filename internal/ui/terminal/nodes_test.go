package terminal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/ui/terminal"
)

// publishFrom adds an event of another node.
func (s *fakeServer) publishFrom(node, kind string, data map[string]any) {
	s.publish(kind, data)
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
	s := newFakeServer(t)
	s.answer("/api/v1/nodes", severalNodes())
	s.publishFrom("elm", "tool.call_started", map[string]any{"call": 1, "namespace": "files", "tool": "read_file", "depth": 1})
	s.publish("tool.call_started", map[string]any{"call": 1, "namespace": "files", "tool": "write_file", "depth": 1}) // each node numbers its own calls
	s.publishFrom("elm", "tool.call_ended", map[string]any{"call": 1, "namespace": "files", "tool": "read_file", "depth": 1, "duration_ms": 3.2})
	s.publishFrom("elm", "script.published", map[string]any{"name": "greet"})
	p := s.open(160, 40)
	p.golden("nodes-160x40", "2 nodes, 1 silent")
	p.types("9")
	p.golden("nodes-list-160x40", "oak (this node)")
	p.types("\r")
	p.waitFor("last seen")

	var text strings.Builder
	if err := terminal.Once(t.Context(), terminal.Options{Server: s.server.URL, Output: &text, Now: func() time.Time { return noon }}, 0, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"elm              silent", "120 calls/min", "files.read_file @elm", "script greet: published @elm"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestRestoreRemovedUpstream(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	s.answer("/api/v1/upstreams", map[string]any{"upstreams": []any{
		map[string]any{"namespace": "files", "endpoint": "http://files.example/mcp", "state": "removed", "origin": "config"},
	}})
	p := s.open(120, 30)
	p.waitFor("removed but still configured: r restores it")
	p.types("r")
	p.waitFor("files restored")
	if !s.wasCalled("/api/v1/upstreams/files/restore") {
		t.Errorf("called: %v", s.called)
	}
}

func TestReconnectsShareOneLine(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t)
	for attempt := range 30 {
		s.publish("upstream.reconnecting", map[string]any{"upstream": "search", "attempt": attempt + 1, "delay_ms": 3000, "error": "no"})
	}
	s.publishFrom("elm", "upstream.reconnecting", map[string]any{"upstream": "search", "attempt": 7, "delay_ms": 3000, "error": "no"})
	p := s.open(80, 24)
	p.waitFor("─ Log 2 ")
	p.waitFor("30× search: disconnected, attempt 30 in 3.0 s: no")
	p.waitFor("attempt 7 in 3.0 s: no @elm")
	p.types("8j\r")
	p.waitFor("30 times, first at 12:00:00")
}
