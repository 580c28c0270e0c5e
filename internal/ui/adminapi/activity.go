package adminapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/govern/audit"
)

// ActivityList is the response with sessions, the latest first.
type ActivityList struct {
	Sessions []audit.Session `json:"sessions"`
}

// ActivitySession is the response with one session: its latest steps in the order they
// began, or those before a time.
type ActivitySession struct {
	Session audit.Session `json:"session"`
	Steps   []audit.Step  `json:"steps"`
}

func (s *Server) listActivity(r *http.Request) (any, error) {
	f, err := sessionFilter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	store, err := s.options.Audit()
	if err != nil {
		return nil, err
	}
	list, err := store.Sessions(r.Context(), f)
	if list == nil {
		list = []audit.Session{}
	}
	return ActivityList{list}, err
}

func (s *Server) showActivity(r *http.Request) (any, error) {
	q := r.URL.Query()
	before, err := timeIn(q, "before")
	if err != nil {
		return nil, err
	}
	store, err := s.options.Audit()
	if err != nil {
		return nil, err
	}
	session, steps, err := store.Steps(r.Context(), r.PathValue("session"), before, q.Get("own") == "true")
	if steps == nil {
		steps = []audit.Step{}
	}
	return ActivitySession{session, steps}, err
}

// sessionFilter reads the filter from a query.
func sessionFilter(q url.Values) (f audit.SessionFilter, err error) {
	f = audit.SessionFilter{
		Agent: q.Get("agent"), Who: q.Get("who"), Tool: q.Get("tool"), Server: q.Get("server"), Outcome: q.Get("outcome"), Find: q.Get("find"),
		Before: q.Get("before"), Own: q.Get("own") == "true",
	}
	if f.Outcome != "" && !slices.Contains(audit.Outcomes(), f.Outcome) {
		return f, fault.New(fault.InvalidParams, "outcome: %q is not known", f.Outcome).WithHint("use one of %s", strings.Join(audit.Outcomes(), ", "))
	}
	if f.Since, err = timeIn(q, "since"); err != nil {
		return f, err
	}
	if f.Until, err = timeIn(q, "until"); err != nil {
		return f, err
	}
	const maxSessions = 200
	limit, err := wholeIn(q, "limit", 50)
	f.Limit = int(min(limit, maxSessions))
	return f, err
}

// timeIn reads a time from a query; without one it is zero.
func timeIn(q url.Values, name string) (at time.Time, err error) {
	if text := q.Get(name); text != "" {
		if at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return at, fault.New(fault.InvalidParams, "%s: %q is not a time", name, text).WithHint("for example 2026-03-01T12:00:00Z")
		}
	}
	return at, nil
}
