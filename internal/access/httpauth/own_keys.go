package httpauth

import (
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// person returns the person who manages their own keys. Clients do not: a key would
// outlive what the person allowed them.
func person(r *http.Request) (principal.Principal, string, error) {
	who := principal.Of(r.Context())
	id := authserver.OwnPerson(who)
	if id == "" {
		return who, "", fault.New(fault.Denied, "only people who are signed in have keys of their own").WithHint("sign in at /signin, or with luanette login")
	}
	return who, id, nil
}

// ownKeys lists the keys of the person who asks.
func (a *Authenticator) ownKeys(w http.ResponseWriter, r *http.Request) error {
	_, id, err := person(r)
	if err != nil {
		return err
	}
	list, err := a.options.Keys.List(r.Context())
	if err != nil {
		return err
	}
	views := []KeyView{}
	for _, key := range list {
		if key.Person == id {
			views = append(views, ViewOf(key, time.Now()))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"keys": views})
	return nil
}

// createOwn makes a key for the person who asks. It has at most their rights, at any time.
func (a *Authenticator) createOwn(w http.ResponseWriter, r *http.Request) error {
	var want NewKey
	if err := readJSON(w, r, &want); err != nil {
		return err
	}
	who, id, err := person(r)
	if err != nil {
		return err
	}
	if len(want.Scopes) == 0 {
		want.Scopes = people.Limit(principal.DefaultScopes, who)
	}
	for _, scope := range want.Scopes {
		if !who.May(scope, who.Org) {
			return fault.New(fault.Denied, "%s does not have the scope %s", who.Title(), scope)
		}
	}
	want.Rights = apikey.Rights{
		Scopes: want.Scopes, Org: who.Org, User: id, Person: id, Namespaces: want.Namespaces, Tools: want.Tools, Limits: want.Limits,
	}
	key, err := want.Key(time.Now())
	if err != nil {
		return err
	}
	return a.make(w, r, key)
}

// revokeOwn revokes a key of the person who asks: by its name in their organisation, or by its
// ID.
func (a *Authenticator) revokeOwn(w http.ResponseWriter, r *http.Request) error {
	who, id, err := person(r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	key, err := a.options.Keys.Find(r.Context(), name, func(k apikey.Key) bool { return k.Person == id && k.Org == who.Org })
	if err != nil {
		key, err = a.options.Keys.Find(r.Context(), name, func(k apikey.Key) bool { return k.Person == id })
	}
	if fault.CodeOf(err) == fault.NotFound {
		return fault.New(fault.NotFound, "you have no key %s", name)
	}
	if err != nil {
		return err
	}
	return a.revoke(w, r, key.ID())
}
