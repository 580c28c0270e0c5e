package erasure

import (
	"net/http"

	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// Routes are the routes of the API; none without a service.
func (s *Service) Routes() []principal.Route {
	if s == nil {
		return nil
	}
	named := func(r *http.Request) (string, error) { return r.PathValue("id"), nil }
	return []principal.Route{
		{Pattern: "GET /api/v1/people/{id}/export", Scope: principal.Admin, Handler: s.handle(s.export, named)},
		{Pattern: "DELETE /api/v1/people/{id}", Scope: principal.Admin, Handler: s.handle(s.erase, named)},
		{Pattern: "GET /api/v1/me/export", Scope: principal.Open, Handler: s.handle(s.export, self)},
		{Pattern: "DELETE /api/v1/me", Scope: principal.Open, Handler: s.handle(s.erase, self)},
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

// handle serves a request about a person, and refuses pages of other sites.
func (s *Service) handle(serve func(http.ResponseWriter, *http.Request, string) error, who func(*http.Request) (string, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.options.Browsers.Refusal(r)
		var id string
		if err == nil {
			id, err = who(r)
		}
		if err == nil {
			err = serve(w, r, id)
		}
		if err != nil {
			httpjson.Error(w, httpjson.StatusOf(err), err)
		}
	})
}

func (s *Service) export(w http.ResponseWriter, r *http.Request, id string) error {
	if _, err := s.find(r.Context(), id); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="`+id+`.jsonl"`)
	w.Header().Set("Cache-Control", "no-store")
	if err := s.Export(r.Context(), id, w); err != nil {
		s.options.Log.WarnContext(r.Context(), "export of a person ended early", "person", id, "error", err)
		panic(http.ErrAbortHandler) // so that the reader does not take a part for the whole
	}
	return nil
}

func (s *Service) erase(w http.ResponseWriter, r *http.Request, id string) error {
	pseudonym, err := s.Erase(r.Context(), id)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, map[string]string{"id": id, "pseudonym": pseudonym})
	return nil
}
