package adminapi_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// auditFake records the filter that it is asked for.
type auditFake struct {
	adminapi.Audit // what a test does not use
	filter         audit.Filter
	sessions       audit.SessionFilter
	verified       []audit.Verified
	err            error
}

func (a *auditFake) Find(_ context.Context, f audit.Filter) ([]audit.Entry, error) {
	a.filter = f
	return nil, a.err
}

func (a *auditFake) Sessions(_ context.Context, f audit.SessionFilter) ([]audit.Session, error) {
	a.sessions = f
	return nil, a.err
}

func (a *auditFake) Chains(context.Context) ([]audit.Chain, error) { return nil, a.err }

func (a *auditFake) Verify(context.Context) ([]audit.Verified, error) { return a.verified, a.err }

func auditServer(a *auditFake) *adminapi.Server {
	return adminapi.New(adminapi.Options{Audit: func() (adminapi.Audit, error) { return a, nil }})
}

func TestAuditFilter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for query, want := range map[string]audit.Filter{
		"": {Limit: 100},
		"?org=acme&who=ada&tool=git.*&decision=deny&node=n1&after=7&limit=3": {Org: "acme", Who: "ada", Tool: "git.*", Decision: "deny", Node: "n1", After: 7, Limit: 3},
		"?since=2026-03-01T12:00:00Z&until=2026-03-01T13:00:00Z":             {Since: at, Until: at.Add(time.Hour), Limit: 100},
		"?limit=9999999": {Limit: 10_000},
	} {
		a := &auditFake{}
		answer := expect(t, auditServer(a), http.StatusOK, "GET", "/api/v1/audit"+query, "")
		if a.filter != want {
			t.Errorf("%s: filter %+v, want %+v", query, a.filter, want)
		}
		if entries, ok := answer["entries"].([]any); !ok || len(entries) != 0 {
			t.Errorf("%s: %v, want an empty list", query, answer)
		}
	}
	for _, query := range []string{"?since=yesterday", "?until=12:00", "?limit=-1", "?limit=many", "?after=1.5"} {
		a := &auditFake{}
		if answer := expect(t, auditServer(a), http.StatusBadRequest, "GET", "/api/v1/audit"+query, ""); answer["hint"] == nil || a.filter != (audit.Filter{}) {
			t.Errorf("%s: %v, searched for %+v", query, answer, a.filter)
		}
	}
}

// TestAuditVerify checks that one damaged chain makes the log unsound.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	sound, damaged := audit.Verified{Entries: 3}, audit.Verified{Entries: 2, Problems: []string{"entry 2 was changed"}}
	for _, c := range []struct {
		chains []audit.Verified
		sound  bool
	}{{nil, true}, {[]audit.Verified{sound, sound}, true}, {[]audit.Verified{damaged, sound}, false}} {
		if answer := expect(t, auditServer(&auditFake{verified: c.chains}), http.StatusOK, "GET", "/api/v1/audit/verify", ""); answer["sound"] != c.sound {
			t.Errorf("%+v: %v, want sound %t", c.chains, answer, c.sound)
		}
	}
	if answer := expect(t, auditServer(&auditFake{}), http.StatusOK, "GET", "/api/v1/audit/chains", ""); answer["chains"] == nil {
		t.Errorf("no chains: %v, want an empty list", answer)
	}
}

func TestAuditErrors(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/v1/audit", "/api/v1/audit/chains", "/api/v1/audit/verify"} {
		expect(t, auditServer(&auditFake{err: errors.New("the database is unreachable")}), http.StatusInternalServerError, "GET", path, "")
		off := adminapi.New(adminapi.Options{Audit: func() (adminapi.Audit, error) { return nil, errors.New("there is no audit log") }})
		if answer := expect(t, off, http.StatusInternalServerError, "GET", path, ""); answer["message"] != "there is no audit log" {
			t.Errorf("%s: %v", path, answer)
		}
	}
}
