package authserver

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// assertion gives an access token for an identity assertion grant (ID-JAG, RFC 7523): the
// word of the person's provider, instead of their consent.
func (s *Server) assertion(w http.ResponseWriter, r *http.Request, form url.Values) error {
	a, g, err := s.verifyAssertion(w, r, form)
	if err != nil {
		return err
	}
	isNew := false
	err = s.carryOut(w, r, form, func(ctx context.Context, tx *db.Tx, _ url.Values, got *tokens) (err error) {
		isNew, err = s.redeem(ctx, tx, a, &g, got)
		return err
	})
	if err == nil && isNew {
		if who, err := s.Principal(r.Context(), a.Person, a.Org); err == nil {
			s.audit(principal.With(r.Context(), who), "client.allow", g)
		}
	}
	return err
}

// verifyAssertion returns a client's assertion and what it grants.
func (s *Server) verifyAssertion(w http.ResponseWriter, r *http.Request, form url.Values) (a signin.Assertion, g grant, err error) {
	proof, err := clientOf(r, form)
	if err != nil {
		return a, g, err
	}
	if a, err = s.options.SignIn.Assertion(r.Context(), form.Get("assertion"), s.options.Issuer, proof); err == nil {
		_, err = s.Principal(r.Context(), a.Person, a.Org)
	}
	switch {
	case errors.Is(err, signin.ErrClient):
		w.Header().Set("WWW-Authenticate", `Basic realm="Luanette"`)
		return a, g, refusal{http.StatusUnauthorized, "invalid_client", err.Error()}
	case fault.CodeOf(err) == fault.Denied:
		return a, g, refusal{http.StatusBadRequest, "invalid_grant", err.Error()}
	case err != nil:
		return a, g, err
	}
	resource, ours := s.resource(a.Resources)
	if !ours {
		return a, g, refusal{http.StatusBadRequest, "invalid_grant", "the grant is for a resource of another server"}
	}
	wanted, ok := commonScopes(a.Scopes, form.Get("scope"))
	if !ok {
		return a, g, refusal{http.StatusBadRequest, "invalid_scope", "the grant has none of these scopes"}
	}
	id := assertionGrant + newGrantID(proof.ID)
	return a, grant{id: id, person: a.Person, org: a.Org, client: proof.ID, name: proof.ID, resource: resource, scopes: wanted}, nil
}

// assertionGrant is the prefix of grants that a provider gave.
const assertionGrant = "idp-"

// clientOf returns how the client of a request proves who it is.
func clientOf(r *http.Request, form url.Values) (signin.Client, error) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		return signin.Client{ID: form.Get("client_id"), Secret: form.Get("client_secret")}, nil
	}
	plainID, err := url.QueryUnescape(id) // RFC 6749 section 2.3.1
	plain, secretErr := url.QueryUnescape(secret)
	named := form.Get("client_id")
	if err != nil || secretErr != nil || form.Has("client_secret") || named != id && named != plainID {
		return signin.Client{}, refusal{http.StatusBadRequest, "invalid_request", "the client authenticates in two ways"}
	}
	return signin.Client{ID: plainID, Secret: plain}, nil
}

// commonScopes are the scopes that the provider granted and the client asks for; those of
// the provider if it asks for none in particular.
func commonScopes(granted []string, asked string) ([]string, bool) {
	have, ok := scopes(strings.Join(granted, " "))
	if asked == "" || !ok {
		return have, ok
	}
	wanted, ok := scopes(asked)
	wanted = slices.DeleteFunc(wanted, func(scope string) bool { return !slices.Contains(have, scope) })
	return wanted, ok && len(wanted) > 0
}

// redeem gives an access token for an assertion, once. There is no refresh token: the
// client brings another assertion, which asks the provider again. It reports whether the
// person had no grant for the client yet.
func (s *Server) redeem(ctx context.Context, tx *db.Tx, a signin.Assertion, g *grant, got *tokens) (isNew bool, err error) {
	if err := takeAssertion(ctx, tx, a); err != nil {
		return false, err
	}
	now := s.options.Now()
	err = tx.QueryRow(ctx, "SELECT id FROM as_grants WHERE person = $1 AND org = $2 AND client = $3 AND resource = $4 AND scopes = $5 AND revoked = 0 AND id LIKE $6 ORDER BY created LIMIT 1",
		g.person, g.org, g.client, g.resource, strings.Join(g.scopes, " "), assertionGrant+"%").Scan(&g.id)
	if errors.Is(err, sql.ErrNoRows) {
		isNew, err = true, g.insert(ctx, tx, now)
	}
	if err != nil {
		return isNew, err
	}
	return isNew, s.giveAccess(ctx, tx, *g, now, got)
}

// assertionSlack is how long after its expiry an assertion stays known, because clocks
// differ.
const assertionSlack = 10 * time.Minute

// takeAssertion notes that an assertion was used, on all nodes. Its times are those of the
// real clock, by which it was verified.
func takeAssertion(ctx context.Context, tx *db.Tx, a signin.Assertion) error {
	if _, err := tx.Exec(ctx, "DELETE FROM as_assertions WHERE expires < $1", time.Now().Add(-assertionSlack).UnixMicro()); err != nil {
		return err
	}
	n, err := tx.Exec(ctx, "INSERT INTO as_assertions (issuer, id, expires) VALUES ($1, $2, $3) ON CONFLICT (issuer, id) DO NOTHING",
		a.Issuer, hashOf(a.ID), a.Expires.UnixMicro())
	if err != nil {
		return err
	}
	if n == 0 {
		return refusal{http.StatusBadRequest, "invalid_grant", "the grant was used already"}
	}
	return nil
}
