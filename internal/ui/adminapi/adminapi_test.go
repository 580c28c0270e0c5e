package adminapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// object is a decoded response body.
type object map[string]any

// request sends a request as who and returns the status and the decoded body.
func request(t *testing.T, s *adminapi.Server, who principal.Principal, method, path, body string) (int, object) {
	t.Helper()
	r := httptest.NewRequestWithContext(principal.With(t.Context(), who), method, "http://localhost"+path, strings.NewReader(body))
	w := httptest.NewRecorder()
	principal.InProcess(s.Routes()).ServeHTTP(w, r)
	answer := object{}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s answered %q: %v", method, path, w.Body, err)
	}
	return w.Code, answer
}

// expect is request as the local owner, which must answer with that status.
func expect(t *testing.T, s *adminapi.Server, status int, method, path, body string) object {
	t.Helper()
	got, answer := request(t, s, principal.Local(), method, path, body)
	if got != status {
		t.Fatalf("%s %s %s: %d %v, want %d", method, path, body, got, answer, status)
	}
	return answer
}

func reader() principal.Principal {
	return principal.Principal{ID: "key:web", Name: "web", Scopes: []principal.Scope{principal.Read}}
}

func noNodes(context.Context) (adminapi.Nodes, error) {
	return adminapi.Nodes{Node: "n1", Nodes: []node.Info{}}, nil
}

// TestScopes checks that every route refuses a key without its scope before it does
// anything: no option is set, so a handler that ran would panic.
func TestScopes(t *testing.T) {
	t.Parallel()
	s := adminapi.New(adminapi.Options{})
	if len(s.Routes()) == 0 {
		t.Fatal("no routes")
	}
	for _, route := range s.Routes() {
		method, path, _ := strings.Cut(route.Pattern, " ")
		who := reader()
		if route.Scope == principal.Read {
			who.Scopes = []principal.Scope{principal.Chat}
		}
		status, answer := request(t, s, who, method, path, "{}")
		hint, _ := answer["hint"].(string)
		if status != http.StatusForbidden || answer["code"] != string(fault.Denied) || !strings.HasSuffix(hint, string(route.Scope)) {
			t.Errorf("%s without the scope %s: %d %v", route.Pattern, route.Scope, status, answer)
		}
	}
	s = adminapi.New(adminapi.Options{Nodes: noNodes})
	if status, answer := request(t, s, reader(), "GET", "/api/v1/nodes", ""); status != http.StatusOK || answer["node"] != "n1" {
		t.Errorf("with the scope read: %d %v", status, answer)
	}
}

// TestErrorStatuses checks the HTTP status of each error code.
func TestErrorStatuses(t *testing.T) {
	t.Parallel()
	for code, want := range map[fault.Code]int{
		fault.InvalidParams: http.StatusBadRequest, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
		fault.Denied: http.StatusForbidden, fault.Config: http.StatusConflict, fault.NeedsAuth: http.StatusUnauthorized,
		fault.Unavailable: http.StatusServiceUnavailable, fault.Internal: http.StatusInternalServerError,
	} {
		s := adminapi.New(adminapi.Options{Nodes: func(context.Context) (adminapi.Nodes, error) {
			return adminapi.Nodes{}, fault.New(code, "no").WithHint("try this")
		}})
		answer := expect(t, s, want, "GET", "/api/v1/nodes", "")
		if answer["code"] != string(code) || answer["message"] != "no" || answer["hint"] != "try this" || answer["error"] != http.StatusText(want) {
			t.Errorf("%s: %v", code, answer)
		}
	}
	s := adminapi.New(adminapi.Options{Nodes: func(context.Context) (adminapi.Nodes, error) {
		return adminapi.Nodes{}, errors.New("without a code")
	}})
	expect(t, s, http.StatusInternalServerError, "GET", "/api/v1/nodes", "")
}

func TestInvalidBodies(t *testing.T) {
	t.Parallel()
	s := adminapi.New(adminapi.Options{})
	for body, want := range map[string]string{
		``:                    "Invalid JSON body",
		`{"upstream": 7}`:     "upstream must be a string, not a number",
		`{"upstrem": "docs"}`: "upstrem",
		`{"flagged": true}`:   "upstream is missing",
	} {
		answer := expect(t, s, http.StatusBadRequest, "POST", "/api/v1/pins/approve", body)
		if text, _ := answer["message"].(string); !strings.Contains(text, want) || answer["hint"] == "" {
			t.Errorf("%.30q: %v, want %q", body, answer, want)
		}
	}
	expect(t, s, http.StatusRequestEntityTooLarge, "POST", "/api/v1/pins/approve", strings.Repeat(" ", 64<<10+1))
}

type allowing struct{}

func (allowing) Check(_ context.Context, tool, key, _ string) (adminapi.PolicyCheck, error) {
	return adminapi.PolicyCheck{Tool: tool, Key: key, Verdict: "allow"}, nil
}

func TestPolicyCheck(t *testing.T) {
	t.Parallel()
	s := adminapi.New(adminapi.Options{Policy: allowing{}})
	if answer := expect(t, s, http.StatusOK, "GET", "/api/v1/policy/check?tool=git.push&key=ci", ""); answer["tool"] != "git.push" || answer["key"] != "ci" {
		t.Errorf("asked about %v", answer)
	}
	if answer := expect(t, s, http.StatusOK, "GET", "/api/v1/policy/check?tool=git.push", ""); answer["key"] != "local" {
		t.Errorf("without a key: %v, want local", answer)
	}
	if answer := expect(t, s, http.StatusBadRequest, "GET", "/api/v1/policy/check", ""); answer["message"] != "tool is missing" {
		t.Errorf("without a tool: %v", answer)
	}
}
