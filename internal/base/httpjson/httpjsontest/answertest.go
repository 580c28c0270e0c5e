// Package httpjsontest asks servers over HTTP, in tests.
package httpjsontest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Open sends a request and returns the answer, whose body is closed when the test is
// over. Headers are names and values in turn, without those of an empty value; Host
// is who is asked for. A body is JSON unless they say otherwise.
func Open(t testing.TB, method, url, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
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
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() }) // it was only read
	return answer
}

// Read is Open, with all of the body.
func Read(t testing.TB, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	answer := Open(t, method, url, body, headers...)
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// Bearer is the header of who has a token; "" is nobody.
func Bearer(token string) (name, value string) {
	if token == "" {
		return "Authorization", ""
	}
	return "Authorization", "Bearer " + token
}
