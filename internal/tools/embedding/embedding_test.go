package embedding_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db/dbtest"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/embedding"
)

// endpoint is a stand-in that speaks the wire format of OpenAI's embeddings API. Its model
// knows some words that mean the same.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	inputs []string                         // all texts so far
	before func(w http.ResponseWriter) bool // answers in place of the model if it returns true
}

// meanings are words of one meaning each; a text's vector counts them.
var meanings = [][]string{
	{"vehicle", "car", "automobile"}, {"weather", "rain", "umbrella"}, {"invoice", "bill", "owe"}, {"holiday", "vacation", "leave"},
}

func startEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", e.serve)
	e.Server = httptest.NewServer(mux)
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model  string
		Input  []string
		Format string `json:"encoding_format"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Model != "tiny" || r.Header.Get("Authorization") != "Bearer sesame" || request.Format != "float" {
		http.Error(w, `{"error":{"message":"bad request"}}`, http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.inputs = append(e.inputs, request.Input...)
	before := e.before
	e.mu.Unlock()
	if before != nil && before(w) {
		return
	}
	data := make([]any, len(request.Input))
	for i, text := range request.Input { // the order of the data is not that of the texts
		data[len(data)-1-i] = map[string]any{"object": "embedding", "index": i, "embedding": vector(text)}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": request.Model, "data": data, "usage": map[string]int{"prompt_tokens": 1}})
}

func vector(text string) []float64 {
	v := make([]float64, len(meanings)+1)
	v[len(meanings)] = 0.1
	for i, words := range meanings {
		for _, word := range words {
			v[i] += float64(strings.Count(strings.ToLower(text), word))
		}
	}
	return v
}

// answer has the endpoint answer differently; nil: by its model.
func (e *endpoint) answer(before func(w http.ResponseWriter) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.before = before
}

// taken returns the texts so far, and forgets them.
func (e *endpoint) taken() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.inputs
	e.inputs = nil
	return all
}

func open(t *testing.T, e *endpoint, folder string, o embedding.Options) *embedding.Model {
	t.Helper()
	o.URL, o.Model, o.Key, o.Client = e.URL+"/v1", "tiny", secret.New("sesame"), httpjsontest.Client
	o.QueryPrefix, o.ToolPrefix = "query: ", "tool: "
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
	m, err := embedding.Open(t.Context(), dbtest.Open(t, dbtest.In(t, folder)), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

type source []tool.Info

func (s *source) Tools(context.Context) ([]tool.Info, error) { return slices.Clone(*s), nil }

func (s *source) Call(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

func garage() *source {
	s := &source{}
	for name, text := range map[string]string{"vehicles": "List of vehicles.", "forecast": "Weather tomorrow.", "invoices": "Open invoices.", "holidays": "Holidays of the staff."} {
		*s = append(*s, tool.Info{Ref: tool.Ref{Space: "garage", Name: name}, Description: text, Input: json.RawMessage(`{"type":"object","properties":{"page":{}}}`)})
	}
	slices.SortFunc(*s, func(a, b tool.Info) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func find(ctx context.Context, c *catalog.Catalog, query string, others ...string) string {
	hits, _ := c.Search(ctx, catalog.Query{Text: query, Others: others})
	if len(hits) == 0 {
		return ""
	}
	return hits[0].Name
}

// awaitFound searches until the tool is found: tools are embedded in the background.
func awaitFound(t *testing.T, c *catalog.Catalog, query, want string) {
	t.Helper()
	clocktest.Await(t, func() bool { return find(t.Context(), c, query) == want })
}

func TestToolsAreFoundByMeaning(t *testing.T) {
	t.Parallel()
	e, dir := startEndpoint(t), t.TempDir()
	tools := garage()
	c := catalog.New(catalog.Options{Sources: []tool.Source{tools}, Meaning: open(t, e, dir, embedding.Options{Batch: 3})})
	awaitFound(t, c, "automobile", "vehicles")
	for query, want := range map[string]string{"do I take an umbrella": "forecast", "what do they owe us": "invoices", "my vacation": "holidays", "forecast": "forecast"} {
		if got := find(t.Context(), c, query); got != want {
			t.Errorf("%s: found %q", query, got)
		}
	}
	if got := find(t.Context(), c, "qqqq", "my automobile"); got != "vehicles" {
		t.Errorf("two wordings: found %q", got)
	}
	texts := e.taken()
	if !slices.Contains(texts, "tool: garage vehicles\nList of vehicles.\nParameters: page") || !slices.Contains(texts, "query: automobile") {
		t.Errorf("embedded %q", texts)
	}
	// The same tools are not embedded again, nor are queries; a changed tool is.
	c = catalog.New(catalog.Options{Sources: []tool.Source{tools}, Meaning: open(t, e, dir, embedding.Options{})})
	awaitFound(t, c, "automobile", "vehicles")
	if texts := e.taken(); !slices.Equal(texts, []string{"query: automobile"}) {
		t.Errorf("after a restart embedded %q", texts)
	}
	(*tools)[0].Description = "How much it will rain."
	c.Refresh(t.Context())
	awaitFound(t, c, "automobile", "vehicles")
	clocktest.Await(t, func() bool { return find(t.Context(), c, "my umbrella") == "forecast" })
	if texts := e.taken(); !slices.Equal(slices.Sorted(slices.Values(texts)), []string{"query: my umbrella", "tool: garage forecast\nHow much it will rain.\nParameters: page"}) {
		t.Errorf("after a change embedded %q", texts)
	}
}

// TestEndpointIsDown checks that an endpoint that fails is left alone, and used again when
// it works.
func TestEndpointIsDown(t *testing.T) {
	t.Parallel()
	e, now := startEndpoint(t), clock.NewVirtual(time.Unix(0, 0))
	m := open(t, e, t.TempDir(), embedding.Options{Clock: now})
	e.answer(func(w http.ResponseWriter) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	for i := range 10 {
		if got := m.Queries(t.Context(), []string{fmt.Sprint("car ", i)}); got != nil {
			t.Errorf("vectors %v", got)
		}
	}
	if texts := e.taken(); len(texts) != 3 {
		t.Errorf("asked %q", texts)
	}
	e.answer(nil)
	if m.Queries(t.Context(), []string{"car"}) != nil {
		t.Error("an endpoint that failed is asked at once")
	}
	now.Advance(time.Minute)
	if got := m.Queries(t.Context(), []string{"car", "rain"}); len(got) != 2 {
		t.Errorf("vectors %v", got)
	}
	if texts := e.taken(); !slices.Equal(texts, []string{"query: car", "query: rain"}) {
		t.Errorf("asked %q", texts)
	}
}

// TestSlowEndpoint checks that a search does not wait for the answer, and that it is used
// later.
func TestSlowEndpoint(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t)
	m := open(t, e, t.TempDir(), embedding.Options{Wait: time.Millisecond})
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	e.answer(func(http.ResponseWriter) bool {
		<-answer
		return false
	})
	c := catalog.New(catalog.Options{Sources: []tool.Source{garage()}, Meaning: m})
	if got := find(t.Context(), c, "vehicle"); got != "vehicles" {
		t.Errorf("by words found %q", got)
	}
	if got := find(t.Context(), c, "automobile"); got != "" {
		t.Errorf("found %q before the answer", got)
	}
	release()
	awaitFound(t, c, "automobile", "vehicles")
}

// TestToolsAreRetried checks that tools are embedded when an endpoint that was down works
// again.
func TestToolsAreRetried(t *testing.T) {
	t.Parallel()
	e, now := startEndpoint(t), clock.NewVirtual(time.Unix(0, 0))
	m := open(t, e, t.TempDir(), embedding.Options{Clock: now})
	e.answer(func(w http.ResponseWriter) bool {
		http.Error(w, "loading", http.StatusServiceUnavailable)
		return true
	})
	tools := m.Prepare(*garage())
	if err := now.AwaitSleepers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	e.answer(nil)
	query := m.Queries(t.Context(), []string{"car"})
	if got := tools.Similar(query); slices.Max(got) != 0 {
		t.Errorf("similar %v", got)
	}
	now.Advance(time.Minute)
	clocktest.Await(t, func() bool { return slices.Max(tools.Similar(query)) > 0.9 })
}

func TestAnswersThatAreWrong(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t)
	for name, answer := range map[string]string{
		"no JSON":        `<html>`,
		"too few":        `{"data":[]}`,
		"wrong index":    `{"data":[{"index":1,"embedding":[1]}]}`,
		"negative index": `{"data":[{"index":-1,"embedding":[1]}]}`,
		"no direction":   `{"data":[{"index":0,"embedding":[0,0]}]}`,
		"no numbers":     `{"data":[{"index":0,"embedding":["a"]}]}`,
		"base64":         `{"data":[{"index":0,"embedding":"AAAA"}]}`,
	} {
		m := open(t, e, t.TempDir(), embedding.Options{})
		e.answer(func(w http.ResponseWriter) bool {
			_, _ = w.Write([]byte(answer))
			return true
		})
		if got := m.Queries(t.Context(), []string{"car"}); got != nil {
			t.Errorf("%s: vectors %v", name, got)
		}
	}
}

// TestUnusedVectorsAreRemoved checks that vectors of tools that are gone do not stay.
func TestUnusedVectorsAreRemoved(t *testing.T) {
	t.Parallel()
	e, dir, now := startEndpoint(t), t.TempDir(), clock.NewVirtual(time.Unix(0, 0))
	embedded := func(name string) []string {
		m := open(t, e, dir, embedding.Options{Clock: now})
		tools := m.Prepare([]tool.Info{{Ref: tool.Ref{Name: name}, Description: "A car."}})
		query := m.Queries(t.Context(), []string{"car"})
		clocktest.Await(t, func() bool { return slices.Max(tools.Similar(query)) > 0.9 })
		m.Close()
		return slices.DeleteFunc(e.taken(), func(text string) bool { return strings.HasPrefix(text, "query: ") })
	}
	for _, step := range []struct {
		name string
		days int
		want int
	}{{"a", 0, 1}, {"a", 20, 0}, {"b", 20, 1}, {"a", 0, 0}, {"c", 40, 1}, {"a", 0, 1}} {
		now.Advance(time.Duration(step.days) * 24 * time.Hour)
		if got := embedded(step.name); len(got) != step.want {
			t.Errorf("%s after %d days: embedded %q", step.name, step.days, got)
		}
	}
}

// TestNoModel checks that a model that is not configured does nothing.
func TestNoModel(t *testing.T) {
	t.Parallel()
	var m *embedding.Model
	if m.Queries(t.Context(), []string{"x"}) != nil || m.Prepare(nil).Similar(nil) != nil {
		t.Error("no model gives vectors")
	}
	m.Close()
}
