package openapi_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/openapi"
)

// BenchmarkCall compares a call of a tool with the same request of a bare HTTP client that
// reads the answer. It reports the CPU time of both, client and server, and their ratio.
func BenchmarkCall(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":7,"note":"a book","state":"open","items":[{"kind":"book","pages":200}]}`)
	}))
	defer server.Close()
	opened, err := openapi.Open(b.Context(), api.Environment{
		Name: "shop", Settings: api.Settings{Kind: api.OpenAPI, Source: "testdata/shop.yaml", BaseURL: server.URL}, MaxAnswer: 1 << 20,
		Header: http.Header{"User-Agent": {"bench"}, "Authorization": {"Bearer hush-hush"}}, Log: slog.New(slog.DiscardHandler), Changed: func() {},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer opened.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	call := api.Call{Tool: "orders_get", Arguments: json.RawMessage(`{"id__path":7}`), Progress: func(float64, float64, string) {}}

	var tool, bare time.Duration
	for b.Loop() {
		tool += cpuOf(b, func() error {
			_, err := opened.Call(b.Context(), call)
			return err
		})
		bare += cpuOf(b, func() error { return get(client, server.URL+"/orders/7") })
	}
	b.ReportMetric(float64(tool.Microseconds())/float64(b.N*batch), "µs-CPU/call")
	b.ReportMetric(float64(bare.Microseconds())/float64(b.N*batch), "µs-CPU/bare")
	b.ReportMetric(float64(tool)/float64(bare), "ratio")
}

// batch is how often something is done between two looks at the clock of the CPU, which
// is coarse.
const batch = 200

func cpuOf(b *testing.B, do func() error) time.Duration {
	b.Helper()
	before := cpu(b)
	for range batch {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
	return cpu(b) - before
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func get(client *http.Client, url string) error {
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.ReadAll(answer.Body)
	return err
}
