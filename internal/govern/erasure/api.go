package erasure

import (
	"net/http"

	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// Routes are the routes of the API; none without a service.
func (s *Service) Routes() []principal.Route {
	if s == nil {
		return nil
	}
	named := func(r *http.Request) (string, error) { return r.PathValue("id"), nil }
	return []principal.Route{
		{Pattern: "GET /api/v1/people/{id}/export", Scope: principal.Admin, Write: s.exporting(named)},
		{Pattern: "DELETE /api/v1/people/{id}", Scope: principal.Admin, Serve: s.erasing(named)},
		{Pattern: "GET /api/v1/me/export", Scope: principal.Open, Write: s.exporting(self)},
		{Pattern: "DELETE /api/v1/me", Scope: principal.Open, Serve: s.erasing(self)},
	}
}

// self returns the person who makes a request about themselves. Clients that act for them
// may neither read everything nor erase it.
func self(r *http.Request) (string, error) {
	if id := authserver.OwnPerson(principal.Of(r.Context())); id != "" {
		return id, nil
	}
	return "", fault.New(fault.Denied, "only people who are signed in have data of their own").WithHint("sign in at /signin, or with luanette login")
}

// exporting sends all that is known of a person.
func (s *Service) exporting(whose func(*http.Request) (string, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := whose(r)
		if err != nil {
			return err
		}
		if _, err := s.find(r.Context(), id); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/jsonl")
		w.Header().Set("Content-Disposition", `attachment; filename="`+id+`.jsonl"`)
		if err := s.Export(r.Context(), id, w); err != nil {
			s.options.Log.WarnContext(r.Context(), "export of a person ended early", "person", id, "error", err)
			panic(http.ErrAbortHandler) // so that the reader does not take a part for the whole
		}
		return nil
	}
}

// erasing erases a person.
func (s *Service) erasing(whose func(*http.Request) (string, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id, err := whose(r)
		if err != nil {
			return nil, err
		}
		pseudonym, err := s.Erase(r.Context(), id)
		return map[string]string{"id": id, "pseudonym": pseudonym}, err
	}
}
