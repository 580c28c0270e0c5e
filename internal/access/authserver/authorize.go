package authserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/cookie"
	"github.com/luanette/luanette/internal/access/page"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// request is what a client asks a person for.
type request struct {
	Client    string   `json:"client"`
	Name      string   `json:"name"`
	Host      string   `json:"host"` // that vouches for the name; may be empty
	Redirect  string   `json:"redirect"`
	State     string   `json:"state"`
	Challenge string   `json:"challenge"`
	Resource  string   `json:"resource"`
	Scopes    []string `json:"scopes"`
}

// authorize takes a client's request and leads on to the page that asks the person. A
// request whose client or redirect is not valid is answered here: a redirect would let
// anybody send people anywhere.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	for name, values := range query {
		if len(values) > 1 && name != "resource" {
			return fault.New(fault.InvalidParams, "the parameter %s is repeated", shown(name))
		}
	}
	c, err := s.client(r.Context(), query.Get("client_id"))
	if err != nil {
		return err
	}
	redirect, ok := c.redirect(query.Get("redirect_uri"))
	if !ok {
		return fault.New(fault.InvalidParams, "the redirect URI is not one of the client's").WithHint("it must be exactly as the client registered it")
	}
	q := request{Client: c.ID, Name: c.Name, Host: c.host(), Redirect: redirect, State: query.Get("state"), Challenge: query.Get("code_challenge")}
	if no := s.fill(&q, query); no != "" {
		return s.answer(w, r, q, map[string]string{"error": no})
	}
	id := rand.Text() + rand.Text()
	if err := s.saveRequest(r.Context(), id, signin.Browser(w, r, s.options.Browsers, s.options.Now()), q); err != nil {
		return err
	}
	page.Continue(w, r, consentPath+"?request="+id)
	return nil
}

// fill reads the rest of a request. It returns the error code of one that is not valid.
func (s *Server) fill(q *request, query url.Values) (no string) {
	var ok bool
	switch {
	case query.Has("request") || query.Has("request_uri"):
		return "request_not_supported"
	case query.Get("response_type") != "code":
		return "unsupported_response_type"
	case query.Get("code_challenge_method") != "S256" || len(q.Challenge) != base64.RawURLEncoding.EncodedLen(sha256.Size):
		return "invalid_request"
	case query.Get("prompt") == "none":
		return "interaction_required"
	}
	if q.Resource, ok = s.resource(query["resource"]); !ok {
		return "invalid_target"
	}
	if q.Scopes, ok = scopes(query.Get("scope")); !ok {
		return "invalid_scope"
	}
	return ""
}

// answer sends the browser back to the client. The answer names this server, so that
// clients of several servers cannot be made to mix them up (RFC 9207).
func (s *Server) answer(w http.ResponseWriter, r *http.Request, q request, what map[string]string) error {
	what["state"], what["iss"] = q.State, s.options.Issuer
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, with(q.Redirect, what), http.StatusSeeOther)
	return nil
}

func (s *Server) saveRequest(ctx context.Context, id, browser string, q request) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	now := s.options.Now()
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM as_requests WHERE expires < $1", now.UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO as_requests (id, browser, body, expires) VALUES ($1, $2, $3, $4)",
			hashOf(id), hashOf(browser), string(body), now.Add(cookie.FlowTime).UnixMicro())
		return err
	})
}

// pending returns the request that a page is about, if this browser brought it.
func (s *Server) pending(r *http.Request, id string) (q request, err error) {
	var body string
	ctx, browser := r.Context(), cookie.In(r, s.options.Browsers).Get(cookie.Flow)
	err = s.db.QueryRow(ctx, "SELECT body FROM as_requests WHERE id = $1 AND browser = $2 AND expires > $3",
		hashOf(id), hashOf(browser), s.options.Now().UnixMicro()).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return q, fault.New(fault.Denied, "this browser has not begun this request, or it has ended").
			WithHint("connect the client again; do not open links to this page that somebody sent you")
	}
	if err != nil {
		return q, err
	}
	return q, json.Unmarshal([]byte(body), &q)
}

// person returns who uses the browser, and their session. Without one they are sent to
// sign in, and come back to next.
func (s *Server) person(w http.ResponseWriter, r *http.Request, next string) (who principal.Principal, session string, err error) {
	session = cookie.In(r, s.options.Browsers).Get(cookie.Session)
	err = errNobody
	if people.IsSession(session) {
		who, err = s.Session(r.Context(), session)
	}
	if fault.CodeOf(err) == fault.NeedsAuth && r.Method == http.MethodGet {
		http.Redirect(w, r, signin.Path+"?next="+url.QueryEscape(next), http.StatusSeeOther)
		return who, "", nil
	}
	return who, session, err
}

var errNobody = fault.New(fault.NeedsAuth, "nobody is signed in").WithHint("sign in: %s", signin.Path)

// showConsent asks the person whether a client may act for them. Every client is asked
// for on its own, whoever is signed in at the provider.
func (s *Server) showConsent(w http.ResponseWriter, r *http.Request) error {
	id := r.URL.Query().Get("request")
	q, err := s.pending(r, id)
	if err != nil {
		return err
	}
	who, session, err := s.person(w, r, consentPath+"?request="+url.QueryEscape(id))
	if err != nil || session == "" {
		return err
	}
	given, err := s.hasConsent(r.Context(), who, q)
	if err != nil {
		return err
	}
	orgs := s.choices(who, who.Org)
	if given && len(orgs) == 0 {
		return s.allow(w, r, who, id, q)
	}
	where, local := place(q.Redirect)
	page.WriteForm(w, http.StatusOK, consentPage, map[string]any{
		"Person": who.Name, "Client": q.Name, "Host": q.Host, "Place": where, "Local": local, "Scopes": described(q.Scopes, who),
		"Orgs": orgs, "Request": id, "CSRF": apikey.CSRF(session),
	}, "'self' "+formTarget(q.Redirect))
	return nil
}

var consentPage = page.New("consent", `<h1>Allow {{or .Client "a client"}}?</h1>
<p>You are signed in as <b>{{.Person}}</b>. {{if .Host}}A client of <b>{{.Host}}</b>{{else}}A client that nobody vouches for{{end}}, which calls itself “{{.Client}}”, wants to act for you.</p>
<ul>{{range .Scopes}}<li><b>{{.Name}}</b>: {{.Text}}</li>{{end}}</ul>
<p>It gets access at <code>{{.Place}}</code>.{{if .Local}} Any program on your machine can be behind that: allow this only if you have just started it yourself.{{end}}</p>
<form method="post"><input type="hidden" name="csrf" value="{{.CSRF}}"><input type="hidden" name="request" value="{{.Request}}">
`+orgFields+`<button name="decision" value="allow">Allow</button> <button name="decision" value="deny">Deny</button></form>`)

// described says what scopes allow, those that the person has.
func described(names []string, who principal.Principal) (list []map[string]string) {
	for _, name := range names {
		if scope := principal.Scope(name); who.May(scope, who.Org) {
			list = append(list, map[string]string{"Name": name, "Text": scope.Description()})
		}
	}
	return list
}

// decideConsent carries out what the person decided.
func (s *Server) decideConsent(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	id := r.PostFormValue("request")
	q, err := s.pending(r, id)
	if err != nil {
		return err
	}
	who, session, err := s.person(w, r, "")
	if err != nil {
		return err
	}
	if !apikey.SameCSRF(session, r.PostFormValue("csrf")) {
		return fault.New(fault.Denied, "the form does not repeat the session's CSRF token").WithHint("connect the client again")
	}
	if r.PostFormValue("decision") != "allow" {
		if err := s.takeRequest(r.Context(), id); err != nil {
			return err
		}
		return s.answer(w, r, q, map[string]string{"error": "access_denied"})
	}
	if who, err = s.chosen(r, who); err != nil {
		return err
	}
	return s.allow(w, r, who, id, q)
}

// hasConsent reports whether a person has allowed a client this before. A client on the
// person's machine is asked for every time, since any program could pretend to be it.
func (s *Server) hasConsent(ctx context.Context, who principal.Principal, q request) (bool, error) {
	where, local := place(q.Redirect)
	if local {
		return false, nil
	}
	var given string
	err := s.db.QueryRow(ctx, "SELECT scopes FROM as_consents WHERE person = $1 AND org = $2 AND client = $3 AND redirect = $4",
		people.PersonOf(who), who.Org, q.Client, where).Scan(&given)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	before := strings.Fields(given)
	return !slices.ContainsFunc(q.Scopes, func(scope string) bool { return !slices.Contains(before, scope) }), err
}

// codeTime is how long a client has to exchange its code.
const codeTime = time.Minute

// allow stores the consent, and gives the client a code for tokens.
func (s *Server) allow(w http.ResponseWriter, r *http.Request, who principal.Principal, id string, q request) error {
	ctx, now := r.Context(), s.options.Now()
	code := "lnc_" + rand.Text() + rand.Text()
	where, _ := place(q.Redirect)
	g := grant{id: newGrantID(q.Client), person: people.PersonOf(who), org: who.Org, client: q.Client, name: q.Name, resource: q.Resource, scopes: q.Scopes}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		if err := deleteRequest(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO as_consents (person, org, client, redirect, scopes, given) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (person, org, client, redirect) DO UPDATE SET scopes = excluded.scopes, given = excluded.given`,
			g.person, g.org, g.client, where, strings.Join(g.scopes, " "), now.UnixMicro()); err != nil {
			return err
		}
		if err := g.insert(ctx, tx, now); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM as_codes WHERE expires < $1", now.Add(-time.Hour).UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO as_codes (hash, grant_id, redirect, challenge, expires) VALUES ($1, $2, $3, $4, $5)",
			hashOf(code), g.id, q.Redirect, q.Challenge, now.Add(codeTime).UnixMicro())
		return err
	})
	if err != nil {
		return err
	}
	s.audit(principal.With(ctx, who), "client.allow", g)
	return s.answer(w, r, q, map[string]string{"code": code})
}

// takeRequest deletes a request, so that it is decided once.
func (s *Server) takeRequest(ctx context.Context, id string) error {
	return s.db.Write(ctx, func(tx *db.Tx) error { return deleteRequest(ctx, tx, id) })
}

func deleteRequest(ctx context.Context, tx *db.Tx, id string) error {
	n, err := tx.Exec(ctx, "DELETE FROM as_requests WHERE id = $1", hashOf(id))
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.New(fault.Denied, "this request was decided already")
	}
	return nil
}
