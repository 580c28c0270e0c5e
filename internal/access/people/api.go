package people

import (
	"context"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
)

// API serves the people to administrators.
type API struct {
	People   *Store
	Browsers netguard.Browsers
	// Audit records what an administrator did.
	Audit func(ctx context.Context, action, subject string, detail []byte)
}

// Routes are the routes of the API.
func (a API) Routes() []principal.Route {
	route := func(pattern string, serve func(*http.Request) (any, error)) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Admin, Handler: a.handle(serve)}
	}
	return []principal.Route{
		route("GET /api/v1/people", func(r *http.Request) (any, error) {
			list, err := a.People.List(r.Context())
			return map[string]any{"people": append([]Person{}, list...)}, err
		}),
		route("POST /api/v1/people/{id}/block", a.change("person.block", a.People.Block)),
		route("POST /api/v1/people/{id}/unblock", a.change("person.unblock", a.People.Unblock)),
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

func (a API) handle(serve func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		err := a.Browsers.Refusal(r)
		if err == nil {
			body, err = serve(r)
		}
		status := http.StatusOK
		switch {
		case fault.CodeOf(err) == fault.NotFound:
			status = http.StatusNotFound
		case fault.CodeOf(err) == fault.Denied:
			status = http.StatusForbidden
		case err != nil:
			status = http.StatusInternalServerError
		}
		if err != nil {
			body = map[string]any{"error": fault.From(err)}
		}
		w.Header().Set("Cache-Control", "no-store")
		httpjson.JSON(w, status, body)
	})
}
