package personal

import (
	"context"
	"net/http"

	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// API serves the values of whoever asks.
type API struct {
	Values *Store
	// Audit records which value somebody set or deleted.
	Audit func(ctx context.Context, action, subject string, detail []byte)
}

// Routes are the routes of the API. They need no scope: everybody has values of their own.
func (a API) Routes() []principal.Route {
	return []principal.Route{
		{Pattern: "GET /api/v1/me/secrets", Scope: principal.Open, Serve: a.list},
		{Pattern: "PUT /api/v1/me/secrets/{name}", Scope: principal.Open, Serve: a.set},
		{Pattern: "DELETE /api/v1/me/secrets/{name}", Scope: principal.Open, Serve: a.delete},
	}
}

// owner returns whose values a request is about. Clients that act for a person do not
// change them.
func owner(r *http.Request) (who principal.Principal, id string, err error) {
	who = principal.Of(r.Context())
	switch {
	case who.ID == principal.Anonymous().ID:
		return who, "", fault.New(fault.Denied, "values belong to somebody: sign in, or send a key")
	case authserver.IsClient(who):
		return who, "", fault.New(fault.Denied, "clients do not change the values of a person").WithHint("sign in at /signin, or with luanette login")
	}
	return who, who.LoginOwner(), nil
}

func (a API) list(r *http.Request) (any, error) {
	_, id, err := owner(r)
	if err != nil {
		return nil, err
	}
	list, err := a.Values.List(r.Context(), id)
	return map[string]any{"secrets": append([]Value{}, list...)}, err
}

func (a API) set(r *http.Request) (any, error) {
	who, id, err := owner(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		Value string `json:"value"`
	}
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if err := a.Values.Set(r.Context(), who.Org, id, name, body.Value); err != nil {
		return nil, err
	}
	a.Audit(r.Context(), "secret.set", name, nil)
	return map[string]string{"name": name}, nil
}

func (a API) delete(r *http.Request) (any, error) {
	_, id, err := owner(r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if err := a.Values.Delete(r.Context(), id, name); err != nil {
		return nil, err
	}
	a.Audit(r.Context(), "secret.delete", name, nil)
	return map[string]string{"name": name}, nil
}
