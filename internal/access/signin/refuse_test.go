package signin

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

// TestConfigurationIsForTheLog checks that a page for anybody has nothing of the configuration.
func TestConfigurationIsForTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := &Service{options: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	w := httptest.NewRecorder()
	problem := fault.New(fault.Config, "find ${file:/etc/hub/oauth.key}: no such file").WithHint("openssl rand")
	s.refuse(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/signin/to/corp", nil), http.StatusInternalServerError, problem)
	if page := w.Body.String(); strings.Contains(page, "/etc/hub") || strings.Contains(page, "openssl") || !strings.Contains(page, "tell an administrator") {
		t.Errorf("the page: %s", page)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "/etc/hub/oauth.key") || !strings.Contains(log.String(), "openssl") {
		t.Errorf("the log: %s", &log)
	}
}
