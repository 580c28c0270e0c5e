package people

import (
	"context"
	"io"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// API serves the people to administrators, and those of an organisation to its own.
type API struct {
	People *Store
	// Audit records what an administrator did.
	Audit func(ctx context.Context, action, subject string, detail []byte)
}

// Routes are the routes of the API.
func (a API) Routes() []principal.Route {
	route := func(pattern string, serve func(*http.Request) (any, error)) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Admin, Serve: serve}
	}
	return []principal.Route{
		route("GET /api/v1/people", func(r *http.Request) (any, error) {
			list, err := a.People.List(r.Context())
			return map[string]any{"people": append([]Person{}, list...)}, err
		}),
		{Pattern: "GET /api/v1/orgs/{org}/people", Scope: principal.Org, Serve: func(r *http.Request) (any, error) {
			return map[string]any{"people": a.People.Members(r.PathValue("org"))}, nil
		}},
		route("POST /api/v1/people/{id}/block", a.change("person.block", a.People.Block)).Reads(principal.NoBody),
		route("POST /api/v1/people/{id}/unblock", a.change("person.unblock", a.People.Unblock)).Reads(principal.NoBody),
		route("POST /api/v1/people/{id}/orgs", a.join),
		route("DELETE /api/v1/people/{id}/orgs/{name}", a.leave),
	}
}

// change serves a change of one person.
func (a API) change(action string, do func(context.Context, string) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id := r.PathValue("id")
		if err := do(r.Context(), id); err != nil {
			return nil, err
		}
		a.Audit(r.Context(), action, id, nil)
		return map[string]string{"id": id}, nil
	}
}

// join gives a person roles in an organisation.
func (a API) join(r *http.Request) (any, error) {
	var body struct {
		Org   string   `json:"org"`
		Roles []string `json:"roles"`
	}
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		err = httpjson.Decode(raw, &body)
	}
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read body")
	}
	id := r.PathValue("id")
	if err := a.People.Join(r.Context(), id, body.Org, body.Roles); err != nil {
		return nil, err
	}
	a.Audit(r.Context(), "person.join", id, raw)
	return map[string]string{"id": id}, nil
}

// leave removes a person from an organisation.
func (a API) leave(r *http.Request) (any, error) {
	return a.change("person.leave", func(ctx context.Context, id string) error { return a.People.Leave(ctx, id, r.PathValue("name")) })(r)
}
