package httpcall

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

// testClient is a client of a test server that waits for nothing.
type testClient struct {
	*Client
	server *httptest.Server
	waited []time.Duration
}

func newTestClient(t *testing.T, handler http.HandlerFunc, change func(*api.Environment)) *testClient {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	env := api.Environment{Name: "shop", Header: http.Header{"User-Agent": {"test"}}}
	if change != nil {
		change(&env)
	}
	client, err := New(env, server.URL+"/api")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	c := &testClient{Client: client, server: server}
	client.sleep = func(_ context.Context, d time.Duration) error {
		c.waited = append(c.waited, d)
		return nil
	}
	return c
}

// send sends a request and returns the status and the body.
func (c *testClient) send(t *testing.T, r Request) (int, string) {
	t.Helper()
	answer, err := c.try(t, r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func (c *testClient) try(t *testing.T, r Request) (*http.Response, error) {
	t.Helper()
	if r.URL == nil {
		u, err := url.Parse(c.server.URL + "/api/orders")
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
	}
	if r.Method == "" {
		r.Method, r.Repeatable = http.MethodGet, true
	}
	return c.Do(t.Context(), r)
}

func text(s string) func() (io.ReadCloser, int64, error) {
	return func() (io.ReadCloser, int64, error) { return io.NopCloser(strings.NewReader(s)), int64(len(s)), nil }
}

func TestCredentialsAreForTheServiceOnly(t *testing.T) {
	t.Parallel()
	seen := func(r *http.Request) string {
		return r.Header.Get("Authorization") + "|" + r.Header.Get("X-Key") + "|" + r.Header.Get("Cookie") + "|" + r.URL.RawQuery
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, seen(r)) }))
	defer other.Close()
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/here":
			http.Redirect(w, r, "/api/orders", http.StatusFound)
		default:
			_, _ = io.WriteString(w, r.Method+" "+seen(r))
		}
	}, func(env *api.Environment) {
		env.Header.Set("X-Key", "k1")
		env.Settings = api.Settings{User: "ann", Password: "pw", Cookies: map[string]string{"sid": "c1"}, Query: map[string]string{"key": "q1"}}
	})
	at := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	const all = "Basic YW5uOnB3|k1|sid=c1|key=q1"
	if _, got := c.send(t, Request{URL: at(c.server.URL + "/api/orders?key=forged")}); got != "GET "+all {
		t.Errorf("the service got %s", got)
	}
	if _, got := c.send(t, Request{URL: at(c.server.URL + "/here"), Method: http.MethodPost, Body: text("x")}); got != "GET "+all {
		t.Errorf("a redirect on the same host got %s", got)
	}
	if status, _ := c.send(t, Request{URL: at(c.server.URL + "/away")}); status != http.StatusTemporaryRedirect {
		t.Errorf("a redirect to another host is %d", status)
	}
	if _, got := c.send(t, Request{URL: at(other.URL)}); got != "|||" {
		t.Errorf("another host got %s", got)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers    []int
		header     http.Header
		repeatable bool
		want       int
		waited     []time.Duration
	}{
		"seconds":         {[]int{429, 200}, http.Header{"Retry-After": {"3"}}, true, 200, []time.Duration{3 * time.Second}},
		"long wait":       {[]int{503, 200}, http.Header{"Retry-After": {"25"}}, true, 200, []time.Duration{10 * time.Second, 10 * time.Second, 5 * time.Second}},
		"too long":        {[]int{503, 200}, http.Header{"Retry-After": {"3600"}}, true, 503, nil},
		"not allowed":     {[]int{503, 200}, http.Header{"Retry-After": {"1"}}, false, 503, nil},
		"no time":         {[]int{429, 200}, nil, true, 429, nil},
		"reset":           {[]int{403, 200}, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"2"}}, true, 200, []time.Duration{2 * time.Second}},
		"forbidden":       {[]int{403, 200}, http.Header{"X-Ratelimit-Remaining": {"7"}, "X-Ratelimit-Reset": {"2"}}, true, 403, nil},
		"gateway":         {[]int{502, 200}, nil, true, 200, []time.Duration{500 * time.Millisecond}},
		"gateway, twice":  {[]int{502, 502, 200}, nil, true, 502, []time.Duration{500 * time.Millisecond}},
		"always":          {[]int{429, 429, 429, 429, 200}, http.Header{"Retry-After": {"1"}}, true, 429, []time.Duration{time.Second, time.Second, time.Second}},
		"a wrong request": {[]int{400, 200}, http.Header{"Retry-After": {"1"}}, true, 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			left := c.answers
			client := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if body, _ := io.ReadAll(r.Body); string(body) != "order" {
					t.Errorf("the body is %q", body)
				}
				if left[0] != http.StatusOK {
					for name, values := range c.header {
						w.Header()[name] = values
					}
				}
				w.WriteHeader(left[0])
				left = left[1:]
			}, nil)
			status, _ := client.send(t, Request{Method: http.MethodPut, Repeatable: c.repeatable, Body: text("order")})
			if status != c.want || !slices.Equal(client.waited, c.waited) {
				t.Errorf("status %d after %v, want %d after %v", status, client.waited, c.want, c.waited)
			}
		})
	}
}

// TestUsedUpRateLimit checks that the next call waits, or is refused without asking.
func TestUsedUpRateLimit(t *testing.T) {
	t.Parallel()
	for reset, refused := range map[time.Duration]bool{20 * time.Second: false, time.Hour: true} {
		c := newTestClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(reset).Unix(), 10))
		}, nil)
		c.send(t, Request{})
		var told []string
		answer, err := c.try(t, Request{Method: http.MethodPost, Progress: func(message string) { told = append(told, message) }})
		if err == nil {
			answer.Body.Close()
		}
		if (fault.CodeOf(err) == fault.Limit) != refused && err != nil || (err != nil) != refused {
			t.Errorf("reset in %v: %v", reset, err)
		}
		if !refused && (len(told) == 0 || !strings.Contains(told[0], "rate limit")) {
			t.Errorf("the caller was told %q", told)
		}
	}
}

func TestAnswersWithETagAreNotSentAgain(t *testing.T) {
	t.Parallel()
	var full int
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		full++
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"size":"`+strings.Repeat("x", len(r.Header.Get("X-Size"))*maxCachedBody)+`"}`)
	}, nil)
	for range 3 {
		if status, body := c.send(t, Request{}); status != http.StatusOK || body != `{"size":""}` {
			t.Errorf("status %d, body %s", status, body)
		}
	}
	if full != 1 {
		t.Errorf("it was sent %d times", full)
	}
	for range 2 { // too large, and for another header
		if _, body := c.send(t, Request{Header: http.Header{"X-Size": {"1"}}}); len(body) != maxCachedBody+len(`{"size":""}`) {
			t.Errorf("the body has %d bytes", len(body))
		}
	}
	if full != 3 {
		t.Errorf("it was sent %d times", full)
	}
	for i := range 100 {
		c.cache.put(&cachedAnswer{key: strconv.Itoa(i), body: make([]byte, maxCachedBody)})
	}
	if c.cache.size > maxCache || len(c.cache.byKey) != maxCache/maxCachedBody {
		t.Errorf("the cache has %d answers of %d bytes", len(c.cache.byKey), c.cache.size)
	}
}

// login has the tokens t1, t2 and so on.
type login struct{ refused []api.Refusal }

func (l *login) At(string) api.Login                           { return l }
func (l *login) Token(context.Context, string) (string, error) { return "t1", nil }
func (l *login) Refused(_ context.Context, _ string, r api.Refusal) (string, error) {
	l.refused = append(l.refused, r)
	if len(l.refused) > 1 {
		return "", fault.New(fault.NeedsAuth, "log in").WithHint("luanette upstream login shop")
	}
	return "t2", nil
}

func TestLogin(t *testing.T) {
	t.Parallel()
	accepted := "Bearer t2"
	tokens := &login{}
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != accepted {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		}
	}, func(env *api.Environment) { env.Login = tokens })
	if status, _ := c.send(t, Request{}); status != http.StatusOK || len(tokens.refused) != 1 || tokens.refused[0] != (api.Refusal{Status: 401, Challenge: "Bearer", Token: "t1"}) {
		t.Errorf("status %d, refused %+v", status, tokens.refused)
	}
	accepted = "no token"
	if _, err := c.try(t, Request{}); fault.CodeOf(err) != fault.NeedsAuth {
		t.Errorf("without a valid token: %v", err)
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }, func(env *api.Environment) {
		env.DialControl = netguard.Outbound{}.Control
	})
	if _, err := c.try(t, Request{}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a private address: %v", err)
	}
}

func TestErrorsAndSpansHaveNoSecrets(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Traceparent") == "" {
			t.Error("the request has no trace context")
		}
		if r.URL.Path == "/api/broken" {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusTeapot)
	}, func(env *api.Environment) {
		env.Settings.Query = map[string]string{"key": "very-secret"}
		env.Header.Set("X-Key", "very-secret")
		env.Tracer, env.Propagator = provider.Tracer("test"), propagation.TraceContext{}
	})
	c.send(t, Request{Template: "/orders"})
	u, err := url.Parse(c.server.URL + "/api/broken?key=very-secret")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.try(t, Request{Method: http.MethodPost, URL: u})
	if fault.CodeOf(err) != fault.Unavailable || strings.Contains(err.Error(), "very-secret") {
		t.Errorf("the error is %v", err)
	}
	got := spans.GetSpans()
	if len(got) != 2 || got[0].Name != "GET /orders" {
		t.Fatalf("spans are %+v", got)
	}
	for _, span := range got {
		for _, a := range span.Attributes {
			if strings.Contains(a.Value.String(), "very-secret") {
				t.Errorf("%s is %s", a.Key, a.Value.String())
			}
		}
		if strings.Contains(span.Status.Description, "very-secret") {
			t.Errorf("the status is %s", span.Status.Description)
		}
	}
}
