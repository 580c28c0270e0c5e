package graphql_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/apitest"
	"github.com/luanette/luanette/internal/apis/graphql"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
)

// served opens the shop by its schema in a file, with a service that a function answers.
func served(t *testing.T, handler http.HandlerFunc, change func(*api.Environment)) *apitest.Service {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return apitest.MustOpen(t, graphql.Open, api.Settings{Kind: api.GraphQL, Source: server.URL + "/graphql", SchemaFile: "testdata/shop.graphql"}, change)
}

func TestRequest(t *testing.T) {
	t.Parallel()
	var body atomic.Value
	s := served(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body.Store(string(text))
		if r.Header.Get("Authorization") != "Bearer hush-hush" || r.URL.Query().Get("key") != "k-secret" || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusBadRequest)
		}
		io.WriteString(w, `{"data":{"whoami":"hush-hush k-secret"},"extensions":{}}`)
	}, func(env *api.Environment) { env.Settings.Query = map[string]string{"key": "k-secret"} })
	if result := s.MustCall(t, "whoami", ``); result.Structured != `{"result":"[secret] [secret]"}` {
		t.Errorf("the result is %+v", result)
	}
	if want := `{"query":"query { whoami }","variables":{}}`; body.Load() != want {
		t.Errorf("sent %s", body.Load())
	}
	s.MustCall(t, "product", `{"id":"p1","fields":"id"}`)
	if want := `{"query":"query($id: ID!) { product(id: $id) { id } }","variables":{"id":"p1"}}`; body.Load() != want {
		t.Errorf("sent %s", body.Load())
	}
	s.MustCall(t, "products", `{"fields":"totalCount","page_token":"abc"}`)
	if want := `{"query":"query($first: Int, $after: String) { products(first: $first, after: $after) { totalCount pageInfo { hasNextPage endCursor } } }","variables":{"first":20,"after":"abc"}}`; body.Load() != want {
		t.Errorf("sent %s", body.Load())
	}
}

// TestRepetition repeats queries, and mutations only with a header by which the service
// recognizes them.
func TestRepetition(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]int32{"": 1, "Idempotency-Key": 2} {
		var calls atomic.Int32
		s := served(t, func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			io.WriteString(w, `{"data":{"version":"2"}}`)
		}, func(env *api.Environment) { env.Settings.IdempotencyHeader = header })
		result := s.MustCall(t, "mutation_version", `{"next":"2"}`)
		if calls.Load() != want || result.Failed != (want == 1) {
			t.Errorf("header %q: %d calls, %+v", header, calls.Load(), result)
		}
		calls.Store(0)
		if result := s.MustCall(t, "query_version", ``); result.Failed || calls.Load() != 2 {
			t.Errorf("query: %d calls, %+v", calls.Load(), result)
		}
	}
}

// TestAnswers reads answers that are not as they should be.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status       int
		answer, want string
	}{
		{404, `<h1>nothing here</h1>`, "HTTP 404 Not Found: <h1>"},
		{401, `{"message":"who are you?"}`, "credentials of upstream shop"},
		{400, `{"errors":[{"message":"no","type":"RATE_LIMITED"}]}`, "no [RATE_LIMITED]"},
		{200, `{"errors":[{"message":"no","path":["version",0]}],"data":null}`, "no (at version.0)"},
		{200, `{"errors":[{"message":"` + strings.Repeat("x", 9000) + `"}]}`, "xxx"},
	} {
		s := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			io.WriteString(w, c.answer)
		}, nil)
		result := s.MustCall(t, "query_version", ``)
		if !result.Failed || len(result.Text) > 5000 || len(result.Structured) > 5000 {
			t.Errorf("%s: %+v", c.answer, result)
		}
		apitest.Has(t, result.Text, c.want)
	}
	s := served(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `hello`) }, nil)
	if _, err := s.Call(t.Context(), "query_version", ``); fault.CodeOf(err) != fault.Upstream {
		t.Errorf("what is not GraphQL: %v", err)
	}
	large := served(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":{"version":"`+strings.Repeat("x", 3<<20)+`"}}`)
	}, nil)
	if _, err := large.Call(t.Context(), "query_version", ``); fault.CodeOf(err) != fault.Limit {
		t.Errorf("a large answer: %v", err)
	}
}

// TestNoIntrospection explains what to do about a service that does not tell its schema.
func TestNoIntrospection(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"errors":[{"message":"introspection is off"}]}`: "introspection is off",
		`{"data":{}}`:               "does not tell its schema",
		`{"data":{"__schema":{}}}`:  "no answer to introspection",
		`{"data":{"__schema":null}`: "did not answer as a GraphQL service",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) }))
		t.Cleanup(server.Close)
		_, err := apitest.Open(t, graphql.Open, api.Settings{Kind: api.GraphQL, Source: server.URL}, nil)
		if err == nil {
			t.Errorf("%s is a schema", answer)
			continue
		}
		apitest.Has(t, err.Error(), want)
	}
}

// TestReload uses a changed file, and keeps the last usable one.
func TestReload(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "schema.graphql")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("type Query { one: Int }")
	s := apitest.MustOpen(t, graphql.Open, api.Settings{Kind: api.GraphQL, Source: "https://shop.example/graphql", SchemaFile: file}, nil)
	write("type Query { one: Int two(n: Int): Int }")
	clocktest.Await(t, func() bool { tools, _ := s.Tools(t); return tools["two"] != "" })
	<-s.Changed
	write("type Query { one: Missing }")
	clocktest.Await(t, func() bool {
		_, leftOut := s.Tools(t)
		return strings.Contains(leftOut, "the changed schema is not used")
	})
	if tools, _ := s.Tools(t); tools["two"] == "" {
		t.Error("the tools are gone")
	}
	write("type Query { one: Int two(n: Int): Int }")
	clocktest.Await(t, func() bool { _, leftOut := s.Tools(t); return leftOut == "" })
}

// TestPolling asks the service again, and uses a schema that has changed.
func TestPolling(t *testing.T) {
	t.Parallel()
	var fields atomic.Value
	fields.Store(`{"name":"one","args":[],"type":{"kind":"SCALAR","name":"Int"}}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":{"__schema":{"queryType":{"name":"Q"},"types":[{"kind":"OBJECT","name":"Q","fields":[`+fields.Load().(string)+`]}]}}}`)
	}))
	t.Cleanup(server.Close)
	s := apitest.MustOpen(t, graphql.Open, api.Settings{Kind: api.GraphQL, Source: server.URL, Reload: duration.Duration(10 * time.Millisecond)}, nil)
	fields.Store(`{"name":"two","args":[],"type":{"kind":"SCALAR","name":"Int"}}`)
	clocktest.Await(t, func() bool { tools, _ := s.Tools(t); return tools["two"] != "" })
}
