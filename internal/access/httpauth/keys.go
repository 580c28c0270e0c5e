package httpauth

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/authserver"
	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// KeyView is a key as the API shows it, without its token.
type KeyView struct {
	ID   string `json:"id"` // the name, after whose it is
	Name string `json:"name"`
	apikey.Rights
	State   string     `json:"state"` // active, expired or revoked
	Fixed   bool       `json:"fixed,omitempty"`
	Created *time.Time `json:"created,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	Used    *time.Time `json:"used,omitempty"`
	Token   string     `json:"token,omitempty"` // only in the answer that creates the key
}

// ViewOf is a key as the API shows it.
func ViewOf(k apikey.Key, now time.Time) KeyView {
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.UTC().Truncate(time.Second)
		return &t
	}
	v := KeyView{ID: k.ID(), Name: k.Name, Rights: k.Rights, State: k.Invalid(now), Fixed: k.Fixed, Created: at(k.Created), Expires: at(k.Expires), Used: at(k.Used)}
	if v.State == "" {
		v.State = "active"
	}
	return v
}

// NewKey describes a key to create, as POST /api/v1/keys takes it.
type NewKey struct {
	Name string `json:"name"`
	apikey.Rights
	Expires string `json:"expires,omitempty"` // "90d", "12h", a day or a time; empty: never
}

// Key is the key to create.
func (n NewKey) Key(now time.Time) (apikey.Key, error) {
	k := apikey.Key{Name: n.Name, Rights: n.Rights}
	if len(k.Scopes) == 0 {
		k.Scopes = principal.DefaultScopes
	}
	var err error
	k.Expires, err = ParseExpiry(n.Expires, now)
	return k, err
}

// ParseExpiry reads a time of expiry: a duration such as "90d" or "12h", or a date or
// time such as "2027-01-31" or "2027-01-31T12:00:00Z". Empty means never.
func ParseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" || text == "never" {
		return time.Time{}, nil
	}
	if n, ok := daysOf(text); ok {
		return now.AddDate(0, 0, n), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.New(fault.InvalidParams, "%q is not a time at which a key can expire", text).
		WithHint("write 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z")
}

// daysOf reads a number of days, at most a hundred years.
func daysOf(text string) (n int, ok bool) {
	days, ok := strings.CutSuffix(text, "d")
	n, err := strconv.Atoi(days)
	return n, ok && err == nil && n > 0 && n <= 36_500
}

func (a *Authenticator) keys(r *http.Request) (any, error) {
	list, err := a.options.Keys.List(r.Context())
	if err != nil {
		return nil, err
	}
	views := make([]KeyView, len(list))
	for i := range list {
		views[i] = ViewOf(list[i], time.Now())
	}
	return map[string]any{"keys": views}, nil
}

func (a *Authenticator) create(w http.ResponseWriter, r *http.Request) error {
	var want NewKey
	if err := readJSON(r, &want); err != nil {
		return err
	}
	key, err := want.Key(time.Now())
	if err != nil {
		return err
	}
	required, err := a.KeyRequired(r.Context())
	if err != nil {
		return err
	}
	onPage := cookie.In(r, a.options.Browsers).Get(cookie.Session) != ""
	if isAdmin := slices.Contains(key.Scopes, principal.Admin) && key.Org == ""; !required && onPage && !isAdmin {
		return fault.New(fault.InvalidParams, "the first key must be an administrator's: from then on everybody needs one").
			WithHint("create one with the scope admin first")
	}
	return a.make(w, r, key)
}

// make creates a key and answers with its token.
func (a *Authenticator) make(w http.ResponseWriter, r *http.Request, key apikey.Key) error {
	made, token, err := a.options.Keys.Create(r.Context(), key)
	if err != nil {
		return err
	}
	a.options.Log.InfoContext(r.Context(), "admin_action", "event", "admin_action", "by", principal.Of(r.Context()).ID, "made_key", made.ID())
	v := ViewOf(made, time.Now())
	v.Token = token
	httpjson.JSON(w, http.StatusCreated, v)
	return nil
}

func (a *Authenticator) revokeNamed(r *http.Request) (any, error) {
	return a.revoke(r, r.PathValue("name"))
}

func (a *Authenticator) revoke(r *http.Request, named string) (any, error) {
	key, err := a.options.Keys.Revoke(r.Context(), named)
	if err != nil {
		return nil, err
	}
	a.options.Log.InfoContext(r.Context(), "admin_action", "event", "admin_action", "by", principal.Of(r.Context()).ID, "revoked_key", key.ID())
	return ViewOf(key, time.Now()), nil
}

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
func (a *Authenticator) ownKeys(r *http.Request) (any, error) {
	_, id, err := person(r)
	if err != nil {
		return nil, err
	}
	list, err := a.options.Keys.List(r.Context())
	if err != nil {
		return nil, err
	}
	views := []KeyView{}
	for _, key := range list {
		if key.Person == id {
			views = append(views, ViewOf(key, time.Now()))
		}
	}
	return map[string]any{"keys": views}, nil
}

// createOwn makes a key for the person who asks. It has at most their rights, at any time.
func (a *Authenticator) createOwn(w http.ResponseWriter, r *http.Request) error {
	var want NewKey
	if err := readJSON(r, &want); err != nil {
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
		Scopes: want.Scopes, Org: who.Org, User: id, Person: id, Namespaces: want.Namespaces, Tools: want.Tools, Set: want.Set, Limits: want.Limits,
	}
	key, err := want.Key(time.Now())
	if err != nil {
		return err
	}
	return a.make(w, r, key)
}

// revokeOwn revokes a key of the person who asks: by its name in their organisation, or by its
// ID.
func (a *Authenticator) revokeOwn(r *http.Request) (any, error) {
	who, id, err := person(r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	key, err := a.options.Keys.Find(r.Context(), name, func(k apikey.Key) bool { return k.Person == id && k.Org == who.Org })
	if err != nil {
		key, err = a.options.Keys.Find(r.Context(), name, func(k apikey.Key) bool { return k.Person == id })
	}
	if fault.CodeOf(err) == fault.NotFound {
		return nil, fault.New(fault.NotFound, "you have no key %s", name)
	}
	if err != nil {
		return nil, err
	}
	return a.revoke(r, key.ID())
}
