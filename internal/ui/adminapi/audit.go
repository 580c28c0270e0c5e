package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/govern/audit"
)

// Audit is the audit log.
type Audit interface {
	Find(ctx context.Context, f audit.Filter) ([]audit.Entry, error)
	Chains(ctx context.Context) ([]audit.Chain, error)
	Verify(ctx context.Context) ([]audit.Verified, error)
}

// AuditList is the response with entries.
type AuditList struct {
	Entries []audit.Entry `json:"entries"`
}

// AuditChains is the response with the chains of all nodes.
type AuditChains struct {
	Chains []audit.Chain `json:"chains"`
}

// AuditVerified is the result of verifying all chains.
type AuditVerified struct {
	Sound  bool             `json:"sound"`
	Chains []audit.Verified `json:"chains"`
}

func (s *Server) listAudit(r *http.Request) (any, error) {
	f, err := filter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	store, err := s.options.Audit()
	if err != nil {
		return nil, err
	}
	entries, err := store.Find(r.Context(), f)
	if entries == nil {
		entries = []audit.Entry{}
	}
	return AuditList{entries}, err
}

// filter reads the filter from a query.
func filter(q url.Values) (f audit.Filter, err error) {
	f = audit.Filter{Org: q.Get("org"), Who: q.Get("who"), Tool: q.Get("tool"), Decision: q.Get("decision"), Node: q.Get("node")}
	for name, into := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := q.Get(name); text != "" {
			if *into, err = time.Parse(time.RFC3339Nano, text); err != nil {
				return f, fault.New(fault.InvalidParams, "%s: %q is not a time", name, text).WithHint("for example 2026-03-01T12:00:00Z")
			}
		}
	}
	limit := int64(100)
	for name, into := range map[string]*int64{"after": &f.After, "limit": &limit} {
		if text := q.Get(name); text != "" {
			if *into, err = strconv.ParseInt(text, 10, 64); err != nil || *into < 0 {
				return f, fault.New(fault.InvalidParams, "%s: %q is not a number", name, text).WithHint("use a whole number of at least 0")
			}
		}
	}
	const maxEntries = 10_000
	f.Limit = int(min(limit, maxEntries))
	return f, nil
}

func (s *Server) listChains(r *http.Request) (any, error) {
	store, err := s.options.Audit()
	if err != nil {
		return nil, err
	}
	chains, err := store.Chains(r.Context())
	if chains == nil {
		chains = []audit.Chain{}
	}
	return AuditChains{chains}, err
}

func (s *Server) verifyAudit(r *http.Request) (any, error) {
	store, err := s.options.Audit()
	if err != nil {
		return nil, err
	}
	found, err := store.Verify(r.Context())
	if err != nil {
		return nil, err
	}
	v := AuditVerified{Sound: true, Chains: found}
	for _, c := range found {
		v.Sound = v.Sound && len(c.Problems) == 0
	}
	return v, nil
}
