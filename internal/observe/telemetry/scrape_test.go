package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/observe/telemetry"
)

// scrape serves a request of Prometheus.
func scrape(t *testing.T, tel *telemetry.Telemetry, accept string) (kind, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	if err := tel.Metrics()(w, r); err != nil {
		t.Fatal(err)
	}
	return w.Header().Get("Content-Type"), w.Body.String()
}

// Prometheus sees the same instruments as a collector, without one.
func TestScrape(t *testing.T) {
	t.Parallel()
	tel := setup(t, telemetry.Options{Service: "service", Version: "1.2.3", Scrape: true})
	request(t, tel)
	kind, text := scrape(t, tel, "")
	if !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("content type %q", kind)
	}
	for _, want := range []string{
		"\ntea_cups_total 3\n",
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/tea/{kind}",network_protocol_version="1.1",url_scheme="http"} 1`,
		`service_name="service",service_version="1.2.3"`,
		"\ngo_goroutine_count ", "\nprocess_uptime_seconds ", `go_memory_used_bytes{go_memory_type="stack"} `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if kind, text := scrape(t, tel, "application/openmetrics-text;version=1.0.0"); !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("OpenMetrics: %q, %s", kind, text)
	}
	if setup(t, telemetry.Options{}).Metrics() != nil {
		t.Error("metrics are shown although nothing asked for them")
	}
}

// The handler reports what was answered, and keeps what the response writer can do.
func TestMeasuredResponses(t *testing.T) {
	t.Parallel()
	tel := setup(t, telemetry.Options{Scrape: true})
	mux := http.NewServeMux()
	mux.HandleFunc("/broken/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, io.LimitReader(r.Body, 5)); err != nil {
			t.Error(err)
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
	})
	handler := tel.Handler(mux)
	for target, method := range map[string]string{"/broken/1": "GET", "/broken/2": "BREW", "/stream": "POST"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader("hello")))
	}
	_, text := scrape(t, tel, "")
	for _, want := range []string{
		`_count{error_type="502",http_request_method="GET",http_response_status_code="502",http_route="/broken/{id}",`,
		`_count{error_type="502",http_request_method="_OTHER",http_response_status_code="502",http_route="/broken/{id}",`,
		`_count{http_request_method="POST",http_response_status_code="200",http_route="/stream",`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
