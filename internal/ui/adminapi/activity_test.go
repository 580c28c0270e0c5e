package adminapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/govern/audit"
)

func TestActivityFilter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for query, want := range map[string]audit.SessionFilter{
		"": {Limit: 50},
		"?agent=cursor&who=ada&tool=git.log&server=git&outcome=denied&find=a+b&before=run:1&own=true&limit=3": {
			Agent: "cursor", Who: "ada", Tool: "git.log", Server: "git", Outcome: "denied", Find: "a b", Before: "run:1", Own: true, Limit: 3,
		},
		"?since=2026-03-01T12:00:00Z&limit=9999999": {Since: at, Limit: 200},
	} {
		a := &auditFake{}
		answer := expect(t, auditServer(a), http.StatusOK, "GET", "/api/v1/activity"+query, "")
		if a.sessions != want {
			t.Errorf("%s: filter %+v, want %+v", query, a.sessions, want)
		}
		if list, ok := answer["sessions"].([]any); !ok || len(list) != 0 {
			t.Errorf("%s: %v, want an empty list", query, answer)
		}
	}
	for _, path := range []string{"?since=yesterday", "?until=12:00", "?limit=many", "?outcome=good", "/run:1?before=noon"} {
		if answer := expect(t, auditServer(&auditFake{}), http.StatusBadRequest, "GET", "/api/v1/activity"+path, ""); answer["hint"] == nil {
			t.Errorf("%s: %v", path, answer)
		}
	}
}
