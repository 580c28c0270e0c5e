package share

import (
	"context"
	"io"
	"net/http"
	"slices"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// API serves the shares of whoever asks.
type API struct {
	Shares *Store
	// Audit records what was shared with whom.
	Audit func(ctx context.Context, action, subject string, detail []byte)
}

// Routes are the routes of the API. They need no scope: what somebody may share depends on
// the kind, and everybody may know what is shared with them.
func (a API) Routes() []principal.Route {
	return []principal.Route{
		{Pattern: "GET /api/v1/shares", Scope: principal.Open, Serve: known(a.list)},
		{Pattern: "POST /api/v1/shares", Scope: principal.Open, Write: a.create},
		{Pattern: "DELETE /api/v1/shares/{id}", Scope: principal.Open, Serve: known(a.remove)},
		{Pattern: "GET /api/v1/people/colleagues", Scope: principal.Open, Serve: known(a.colleagues)},
	}
}

// list lists the shares of a thing, those with the caller, or those of the caller's things.
func (a API) list(r *http.Request) (any, error) {
	query, s := r.URL.Query(), a.Shares
	var list []Share
	var err error
	switch with := query.Get("with"); {
	case with == "me":
		list, err = s.WithCaller(r.Context())
	case with != "":
		err = fault.New(fault.InvalidParams, "with=%s is unknown", with).WithHint("with=me lists what others share with you")
	case query.Get("kind") != "" || query.Get("id") != "":
		list, err = s.Of(r.Context(), principal.Kind(query.Get("kind")), query.Get("id"))
	default:
		list, err = s.OfCaller(r.Context())
	}
	return map[string]any{"shares": append([]Share{}, list...)}, err
}

// WithCaller returns what others share with the caller.
func (s *Store) WithCaller(ctx context.Context) ([]Share, error) {
	who := principal.Of(ctx)
	names, org := s.identities(who)
	if len(names) == 0 {
		return nil, nil
	}
	where, args := withOneOf(names, org, who.ID)
	list, err := s.list(ctx, where, args...)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(one Share) bool { return who.User != "" && one.isOfConversation(who) })
	return s.existing(ctx, list)
}

// Of returns the shares of a thing of the caller, or of the caller's organisation.
func (s *Store) Of(ctx context.Context, kind principal.Kind, id string) ([]Share, error) {
	thing, err := s.ofCaller(ctx, kind, id)
	if err != nil {
		return nil, err
	}
	list, err := s.list(ctx, "kind = $1 AND thing = $2", string(kind), thing.ID)
	for i := range list {
		list[i].Title = thing.Title
	}
	return list, err
}

// OfCaller returns the shares of everything of the caller.
func (s *Store) OfCaller(ctx context.Context) ([]Share, error) {
	who := principal.Of(ctx)
	if err := mayShare(who, ""); err != nil || who.Person != "" {
		return nil, err
	}
	list, err := s.list(ctx, "owner = $1 OR kind = $2 AND owner = $3", who.ID, string(principal.Conversation), principal.PersonID(who.User, who.Org))
	if err != nil {
		return nil, err
	}
	return s.existing(ctx, list)
}

func (a API) create(w http.ResponseWriter, r *http.Request) error {
	made, err := known(a.created)(r)
	if err == nil {
		httpjson.JSON(w, http.StatusCreated, made)
	}
	return err
}

func (a API) created(r *http.Request) (any, error) {
	var body struct {
		Kind principal.Kind  `json:"kind"`
		ID   string          `json:"id"`
		To   string          `json:"to"`
		May  principal.Level `json:"may"`
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read body")
	}
	if err := httpjson.Decode(raw, &body); err != nil {
		return nil, err
	}
	made, err := a.Shares.Create(r.Context(), body.Kind, body.ID, body.To, body.May)
	if err == nil {
		a.Audit(r.Context(), "share.create", string(made.Kind)+" "+made.Thing, raw)
	}
	return made, err
}

func (a API) remove(r *http.Request) (any, error) {
	gone, err := a.Shares.Remove(r.Context(), r.PathValue("id"))
	if err == nil {
		a.Audit(r.Context(), "share.remove", string(gone.Kind)+" "+gone.Thing, nil)
	}
	return gone, err
}

// colleagues lists with whom the caller can share: it is for people who are signed in, their
// keys, and administrators.
func (a API) colleagues(r *http.Request) (any, error) {
	who := principal.Of(r.Context())
	if err := mayShare(who, ""); err != nil {
		return nil, err
	}
	if people.PersonOf(who) == "" && !administers(who, who.Org) {
		return nil, fault.New(fault.Denied, "people are shown to people who are signed in").WithHint("sign in at /signin, or with luanette login")
	}
	list, roles := []people.Colleague{}, []string{}
	if store := a.Shares.options.People; store != nil {
		list, roles = store.Colleagues(who.Org), store.Roles()
	}
	return map[string]any{"people": list, "roles": roles}, nil
}

// known serves known callers.
func known(serve func(*http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if principal.Of(r.Context()).ID == principal.Anonymous().ID {
			return nil, fault.New(fault.Denied, "shares are those of somebody: sign in, or send a key")
		}
		return serve(r)
	}
}
