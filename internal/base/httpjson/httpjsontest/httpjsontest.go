// Package httpjsontest sends HTTP requests in tests.
package httpjsontest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// Client is http.DefaultClient with connections of its own. Every httptest.Server that
// is closed also closes the idle connections of http.DefaultTransport, and a request
// that another test is just sending on one of them fails.
var Client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// Open sends a request and returns the response. Its body is closed at the end of the
// test, and ends after clocktest.Timeout, so that no test waits for ever. headers alternates names and values; those with an empty value are omitted,
// and Host sets the host. A body is JSON unless the headers say otherwise.
func Open(t testing.TB, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; {
		case value == "":
		case name == "Host":
			r.Host = value
		default:
			r.Header.Set(name, value)
		}
	}
	answer, err := Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() }) // the body was only read
	return answer
}

// Read is Open that also returns the whole body.
func Read(t testing.TB, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	answer := Open(t, method, url, body, headers...)
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// Bearer returns the header for a token; "" means no token.
func Bearer(token string) (name, value string) {
	if token == "" {
		return "Authorization", ""
	}
	return "Authorization", "Bearer " + token
}
