package debug

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/principal"
)

func get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
	principal.Unguarded(Routes()).ServeHTTP(w, r)
	return w
}

func TestOnlyAdministrators(t *testing.T) {
	t.Parallel()
	for _, route := range Routes() {
		if route.Scope != principal.Admin {
			t.Errorf("%s needs the scope %q", route.Pattern, route.Scope)
		}
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"heap", "allocs", "goroutine", "mutex", "block", "threadcreate"} {
		w := get(t, "/debug/pprof/"+name)
		unpacked, err := gzip.NewReader(bytes.NewReader(w.Body.Bytes()))
		if w.Code != http.StatusOK || err != nil {
			t.Errorf("%s: %d, %v", name, w.Code, err)
			continue
		}
		if content, err := io.ReadAll(unpacked); err != nil || len(content) == 0 {
			t.Errorf("%s has %d bytes, %v", name, len(content), err)
		}
	}
	if w := get(t, "/debug/pprof/"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "heap") {
		t.Errorf("the index is %d %s", w.Code, w.Body)
	}
	if w := get(t, "/debug/goroutines"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "TestProfiles") || !strings.Contains(w.Body.String(), "goroutine ") {
		t.Errorf("the stacks are %d %s", w.Code, w.Body)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"/debug/pprof/cmdline":               http.StatusNotFound, // it may contain secrets
		"/debug/pprof/nothing":               http.StatusNotFound,
		"/debug/pprof/profile?seconds=61":    http.StatusBadRequest,
		"/debug/pprof/profile?seconds=NaN":   http.StatusBadRequest,
		"/debug/pprof/trace?seconds=-1":      http.StatusBadRequest,
		"/debug/pprof/heap?seconds=3600":     http.StatusBadRequest,
		"/debug/pprof/goroutine?seconds=ten": http.StatusBadRequest,
	} {
		if w := get(t, path); w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}
