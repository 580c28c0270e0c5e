// Package apitest helps the tests of APIs.
package apitest

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// Service is an API that is open.
type Service struct {
	api.API
	Changed chan struct{} // gets a value when the API requests a new List

	mu       sync.Mutex
	progress []string
}

// Open opens an API with a token in its header, as the upstream shop. change may change
// the environment.
func Open(t testing.TB, open api.Opener, settings api.Settings, change func(*api.Environment)) (*Service, error) {
	t.Helper()
	s := &Service{Changed: make(chan struct{}, 100)}
	env := api.Environment{
		Name: "shop", Settings: settings, Header: http.Header{"User-Agent": {"test"}, "Authorization": {"Bearer hush-hush"}},
		MaxAnswer: 1 << 20, Log: slog.New(slog.DiscardHandler), Changed: func() { s.Changed <- struct{}{} },
	}
	if change != nil {
		change(&env)
	}
	var err error
	if s.API, err = open(t.Context(), env); err != nil {
		return nil, err
	}
	t.Cleanup(s.Close)
	return s, nil
}

// MustOpen is Open, and ends the test if that fails.
func MustOpen(t testing.TB, open api.Opener, settings api.Settings, change func(*api.Environment)) *Service {
	t.Helper()
	s, err := Open(t, open, settings, change)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Call calls a tool.
func (s *Service) Call(ctx context.Context, tool, arguments string) (Result, error) {
	raw, err := s.API.Call(ctx, api.Call{Tool: tool, Arguments: json.RawMessage(arguments), Progress: func(_, _ float64, message string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.progress = append(s.progress, message)
	}})
	if err != nil {
		return Result{}, err
	}
	content, _ := rawjson.Get(raw, "content")
	items, _ := rawjson.Items(content)
	r := Result{Failed: rawjson.GetBool(raw, "isError")}
	r.Text, _ = rawjson.GetText(items[0], "text")
	structured, _ := rawjson.Get(raw, "structuredContent")
	r.Structured = string(structured)
	return r, nil
}

// Result is the result of a call.
type Result struct {
	Text, Structured string
	Failed           bool
}

// MustCall is Call, and ends the test if that fails.
func (s *Service) MustCall(t testing.TB, tool, arguments string) Result {
	t.Helper()
	r, err := s.Call(t.Context(), tool, arguments)
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	return r
}

// Progress is what calls have reported.
func (s *Service) Progress() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.progress, "\n")
}

// Tools are the definitions of the tools by name, and what is left out.
func (s *Service) Tools(t testing.TB) (byName map[string]string, leftOut string) {
	t.Helper()
	listing, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName = map[string]string{}
	for _, definition := range listing.Tools {
		name, _ := rawjson.GetText(definition, "name")
		if byName[name] != "" {
			t.Errorf("two tools are named %s", name)
		}
		byName[name] = string(definition)
	}
	return byName, strings.Join(listing.LeftOut, "\n")
}

// Has checks that a text contains all of these.
func Has(t testing.TB, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %s", text, want)
		}
	}
}
