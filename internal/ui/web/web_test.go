package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/ui/web"
)

type clockBeat struct {
	N int `json:"n"`
}

func (clockBeat) EventType() string { return "clock.beat" }

type reconnecting struct {
	Name string `json:"name"`
}

func (reconnecting) EventType() string { return "upstream.reconnecting" }

// unencodable cannot be written as JSON.
type unencodable struct {
	Fault func()
}

func (unencodable) EventType() string { return "odd" }

// fixture is a running server and its event bus.
type fixture struct {
	bus *event.Bus
	url string
}

func open(t *testing.T, o web.Options, bus event.BusOptions) fixture {
	t.Helper()
	o.Bus = event.New(bus)
	server := httptest.NewServer(principal.Unguarded(web.New(o).Routes()))
	t.Cleanup(server.Close)
	t.Cleanup(o.Bus.Close)
	return fixture{o.Bus, server.URL}
}

// get requests a path.
func (f fixture) get(t *testing.T, path string, header ...string) *http.Response {
	t.Helper()
	return httpjsontest.Open(t, http.MethodGet, f.url+path, "", header...)
}

// read returns the next n lines that are not empty, without retry fields.
func read(t *testing.T, from *bufio.Scanner, n int) (lines []string) {
	t.Helper()
	for len(lines) < n && from.Scan() {
		if line := from.Text(); line != "" && !strings.HasPrefix(line, "retry:") {
			lines = append(lines, line)
		}
	}
	if len(lines) < n {
		t.Fatalf("the stream ended after %q: %v", lines, from.Err())
	}
	return lines
}

// types returns the types of the next n events.
func types(t *testing.T, from *bufio.Scanner, n int) (list []string) {
	t.Helper()
	for _, line := range read(t, from, 2*n) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var e event.Event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			list = append(list, e.Type)
		}
	}
	return list
}

func TestEventsStream(t *testing.T) {
	t.Parallel()
	s := open(t, web.Options{}, event.BusOptions{})
	answer := s.get(t, "/api/v1/events")
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	lines := bufio.NewScanner(answer.Body)
	s.bus.Publish(clockBeat{1})
	s.bus.Publish(unencodable{})
	s.bus.Publish(reconnecting{"fs\n\ndata: forged"})
	got := read(t, lines, 6)
	if got[0] != "id: 1" || !strings.Contains(got[1], `"type":"clock.beat","data":{"n":1}`) {
		t.Errorf("first event: %q", got[:2])
	}
	if !strings.Contains(got[3], `"type":"odd"`) || !strings.Contains(got[3], "unsupported type") {
		t.Errorf("unencodable event: %q", got[3])
	}
	if got[4] != "id: 3" || !strings.Contains(got[5], `fs\n\ndata: forged`) {
		t.Errorf("a hostile name: %q", got[4:])
	}
}

func TestEventsResumeAndFilter(t *testing.T) {
	t.Parallel()
	s := open(t, web.Options{Process: "me"}, event.BusOptions{Keep: 3})
	for _, p := range []event.Payload{clockBeat{1}, reconnecting{"a"}, clockBeat{2}, reconnecting{"b"}, clockBeat{3}} {
		s.bus.Publish(p)
	}
	tests := []struct {
		name, path string
		header     []string
		want       []string
	}{
		{"all buffered", "?after=all", nil, []string{"clock.beat", "upstream.reconnecting", "clock.beat"}},
		{"the newest", "?after=all&newest=2", nil, []string{"upstream.reconnecting", "clock.beat"}},
		{"more than there are", "?after=all&newest=9", nil, []string{"clock.beat", "upstream.reconnecting", "clock.beat"}},
		{"all after an id", "?after=all&newest=1", []string{"Last-Event-ID", "3"}, []string{"upstream.reconnecting", "clock.beat"}},
		{"by Last-Event-ID", "", []string{"Last-Event-ID", "3"}, []string{"upstream.reconnecting", "clock.beat"}},
		{"header before query: a browser repeats the URL", "?after=all", []string{"Last-Event-ID", "4"}, []string{"clock.beat"}},
		{"position no longer buffered", "?after=1", nil, []string{"event.missed", "clock.beat", "upstream.reconnecting", "clock.beat"}},
		{"id of this process", "?after=4.me", nil, []string{"clock.beat"}},
		{"id of another process", "", []string{"Last-Event-ID", "4.another"}, []string{"event.missed", "clock.beat", "upstream.reconnecting", "clock.beat"}},
		{"id of another process, same number", "", []string{"Last-Event-ID", "5.another"}, []string{"event.missed", "clock.beat", "upstream.reconnecting", "clock.beat"}},
		{"by prefix", "?after=all&types=upstream.*", nil, []string{"upstream.reconnecting"}},
		{"several types", "?after=all&types=job.finished,clock.beat&types=x", nil, []string{"clock.beat", "clock.beat"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lines := bufio.NewScanner(s.get(t, "/api/v1/events"+tt.path, tt.header...).Body)
			if got := types(t, lines, len(tt.want)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFollowFalseEndsAfterBufferedEvents(t *testing.T) {
	t.Parallel()
	s := open(t, web.Options{}, event.BusOptions{Keep: 3})
	s.bus.Publish(clockBeat{1})
	s.bus.Publish(reconnecting{"a"})
	body, err := io.ReadAll(s.get(t, "/api/v1/events?after=all&follow=false").Body)
	if err != nil || strings.Count(string(body), "data: ") != 2 {
		t.Errorf("%q, %v", body, err)
	}
}

func TestSilentStreamSendsKeepalive(t *testing.T) {
	t.Parallel()
	s := open(t, web.Options{Keepalive: time.Millisecond}, event.BusOptions{})
	lines := bufio.NewScanner(s.get(t, "/api/v1/events").Body)
	if got := read(t, lines, 2); got[0] != ": keepalive" {
		t.Errorf("got %q", got)
	}
}

func TestStreamEndsWithBus(t *testing.T) {
	t.Parallel()
	s := open(t, web.Options{}, event.BusOptions{})
	answer := s.get(t, "/api/v1/events")
	s.bus.Publish(clockBeat{1})
	s.bus.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), "clock.beat") {
		t.Errorf("%q, %v", body, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := open(t, web.Options{}, event.BusOptions{})
	tests := []struct {
		name, path string
		status     int
		says       string
	}{
		{"after is no number", "/api/v1/events?after=soon", 400, "the id of the last event"},
		{"follow is no bool", "/api/v1/events?follow=perhaps", 400, "neither true nor false"},
		{"too many types", "/api/v1/events?types=" + strings.Repeat("x,", 65), 400, "use prefixes"},
		{"limit below 1", "/api/v1/traces?limit=-1", 400, "above 0"},
		{"unknown trace", "/api/v1/traces/0af7651916cd43dd8448eb211c80319c", 404, "recent_traces"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := s.get(t, tt.path)
			body, _ := io.ReadAll(answer.Body)
			var shape struct{ Error, Code, Message string }
			if err := json.Unmarshal(body, &shape); err != nil || shape.Error == "" || shape.Code == "" || shape.Message == "" {
				t.Errorf("%s: %v", body, err)
			}
			if answer.StatusCode != tt.status || !strings.Contains(string(body), tt.says) {
				t.Errorf("%d %s", answer.StatusCode, body)
			}
		})
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{RecentTraces: 2})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tel.Tracer("x").Start(t.Context(), "request")
	span.End()
	s := open(t, web.Options{Traces: tel.Traces()}, event.BusOptions{})
	var list struct{ Traces []telemetry.Trace }
	if err := json.NewDecoder(s.get(t, "/api/v1/traces").Body).Decode(&list); err != nil || len(list.Traces) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	var whole telemetry.Trace
	if err := json.NewDecoder(s.get(t, "/api/v1/traces/"+list.Traces[0].ID).Body).Decode(&whole); err != nil || len(whole.Spans) != 1 || whole.Spans[0].Name != "request" {
		t.Errorf("%+v, %v", whole, err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	s := open(t, web.Options{Config: func(_ principal.Principal, w io.Writer) error { _, err := io.WriteString(w, "listen = 1"); return err }}, event.BusOptions{})
	body, _ := io.ReadAll(s.get(t, "/api/v1/config").Body)
	if string(body) != "listen = 1" {
		t.Errorf("%s", body)
	}
}

func TestLogsAreEvents(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	tel, err := telemetry.Setup(t.Context(), telemetry.Options{Tap: web.NewLogHandler(bus)})
	if err != nil {
		t.Fatal(err)
	}
	sub := bus.Subscribe(event.Options{})
	defer sub.Close()
	log := tel.Logger().With("part", "x").WithGroup("call")
	log.DebugContext(t.Context(), "below the level")
	log.WarnContext(t.Context(), "slow", "tool", "fs.read", slog.Group("at", "line", 3), "key", secret.New("hunter2"))
	e, err := sub.Next(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	line := e.Data.(web.LogLine)
	if line.Level != "WARN" || line.Message != "slow" || line.Attrs["part"] != "x" || line.Attrs["call.tool"] != "fs.read" || line.Attrs["call.at.line"] != "3" {
		t.Errorf("%+v", line)
	}
	if strings.Contains(line.Attrs["call.key"], "hunter2") {
		t.Errorf("a secret was published: %+v", line)
	}
}

// "/" is a page with a strict policy, and no other file is served.
func TestPage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(web.Page())
	t.Cleanup(server.Close)
	s := fixture{url: server.URL}
	front := s.get(t, "/")
	body, _ := io.ReadAll(front.Body)
	if front.StatusCode != 200 || !strings.HasPrefix(front.Header.Get("Content-Type"), "text/html") || !strings.Contains(string(body), "<title>Luanette</title>") {
		t.Errorf("%d %s", front.StatusCode, body)
	}
	if policy := front.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self';") {
		t.Errorf("policy %q", policy)
	}
	for _, path := range []string{"/README", "/../web.go", "/assets/", "/assets/index.js.gz", "/nothing"} {
		if answer := s.get(t, path); answer.StatusCode != 404 {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}
