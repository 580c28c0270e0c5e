package authserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// The grant types.
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantDevice  = "urn:ietf:params:oauth:grant-type:device_code"

	grantAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// How long tokens last.
const (
	accessTime  = time.Hour
	refreshTime = 30 * 24 * time.Hour // after its last use
	// graceTime is how long an exchanged refresh token still gets access tokens: the answer
	// to the exchange may have been lost, or two processes of a client share the token.
	graceTime = time.Minute
)

// Prefixes make tokens recognizable to people and to secret scanners.
const (
	AccessPrefix  = "lna_"
	refreshPrefix = "lnr_"
)

// tokens is the answer of the token endpoint.
type tokens struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Seconds int    `json:"expires_in"`
	Refresh string `json:"refresh_token,omitempty"`
	Scope   string `json:"scope"`
}

// token gives a client tokens for a code, a refresh token or a device code.
func (s *Server) token(w http.ResponseWriter, r *http.Request) error {
	form, err := formOf(w, r)
	if err != nil {
		return err
	}
	if _, ours := s.resource(form["resource"]); !ours {
		return refusal{http.StatusBadRequest, "invalid_target", "the resource is not of this server"}
	}
	if form.Get("grant_type") == grantAssertion && s.options.SignIn.AcceptsAssertions() {
		return s.assertion(w, r, form)
	}
	found := map[string]exchange{grantCode: s.byCode, grantRefresh: s.byRefresh, grantDevice: s.byDevice}[form.Get("grant_type")]
	if found == nil {
		return refusal{http.StatusBadRequest, "unsupported_grant_type", "use " + grantCode + ", " + grantRefresh + " or " + grantDevice}
	}
	return s.carryOut(w, r, form, found)
}

// carryOut carries out an exchange in one transaction, and answers with its tokens.
func (s *Server) carryOut(w http.ResponseWriter, r *http.Request, form url.Values, exchange exchange) error {
	ctx := r.Context()
	var got tokens
	var no error // a refusal that leaves its traces in the database
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		got, no = tokens{}, nil
		err := exchange(ctx, tx, form, &got)
		if kept := (ended{}); errors.As(err, &kept) {
			no = kept.refusal
			return nil
		}
		return err
	})
	if err == nil && no != nil {
		err = errors.Join(no, s.Refresh(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, got)
	return nil
}

// exchange gives tokens for what is in a form.
type exchange func(context.Context, *db.Tx, url.Values, *tokens) error

// ended is a refusal whose transaction is kept: it revoked the grant, or counted.
type ended struct{ refusal }

// formOf reads the body of a request. A repeated parameter would let two readers see two
// requests.
func formOf(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		return nil, refusal{http.StatusBadRequest, "invalid_request", "the body is not a form"}
	}
	for name, values := range r.PostForm {
		if len(values) > 1 && name != "resource" {
			return nil, refusal{http.StatusBadRequest, "invalid_request", "a parameter is repeated"}
		}
	}
	if id, _, basic := r.BasicAuth(); basic && !r.PostForm.Has("client_id") {
		r.PostForm.Set("client_id", id)
	}
	return r.PostForm, nil
}

// byCode exchanges a code. A code that comes twice was stolen, before or after its
// client used it: the grant ends.
func (s *Server) byCode(ctx context.Context, tx *db.Tx, form url.Values, got *tokens) error {
	now := s.options.Now()
	var id, redirect, challenge string
	var expires, used int64
	err := tx.QueryRow(ctx, "SELECT grant_id, redirect, challenge, expires, used FROM as_codes WHERE hash = $1", hashOf(form.Get("code"))).
		Scan(&id, &redirect, &challenge, &expires, &used)
	if errors.Is(err, sql.ErrNoRows) {
		return badGrant
	}
	if err != nil {
		return err
	}
	if used != 0 {
		return endReused(ctx, tx, id, now)
	}
	g, err := live(ctx, tx, id, form)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	proof := base64.RawURLEncoding.EncodeToString(sum[:])
	if expires <= now.UnixMicro() || form.Get("redirect_uri") != redirect || subtle.ConstantTimeCompare([]byte(proof), []byte(challenge)) != 1 {
		return badGrant
	}
	if _, err := tx.Exec(ctx, "UPDATE as_codes SET used = $2 WHERE hash = $1", hashOf(form.Get("code")), now.UnixMicro()); err != nil {
		return err
	}
	return s.give(ctx, tx, g, now, got)
}

// byRefresh exchanges a refresh token for new ones. For a while the old one still gets
// access tokens; after that, somebody else must have it, and the grant ends.
func (s *Server) byRefresh(ctx context.Context, tx *db.Tx, form url.Values, got *tokens) error {
	now := s.options.Now()
	hash := hashOf(form.Get("refresh_token"))
	var id string
	var expires, used int64
	err := tx.QueryRow(ctx, "SELECT grant_id, expires, used FROM as_tokens WHERE hash = $1 AND kind = 'refresh'", hash).Scan(&id, &expires, &used)
	if errors.Is(err, sql.ErrNoRows) || err == nil && expires <= now.UnixMicro() {
		return badGrant
	}
	if err != nil {
		return err
	}
	g, err := live(ctx, tx, id, form)
	switch {
	case err != nil:
		return err
	case used == 0:
		if _, err := tx.Exec(ctx, "UPDATE as_tokens SET used = $2 WHERE hash = $1", hash, now.UnixMicro()); err != nil {
			return err
		}
		return s.give(ctx, tx, g, now, got)
	case now.Sub(time.UnixMicro(used)) <= graceTime:
		return s.giveAccess(ctx, tx, g, now, got)
	default:
		return endReused(ctx, tx, id, now)
	}
}

// live returns a grant that was not revoked and is of the client that asks.
func live(ctx context.Context, tx *db.Tx, id string, form url.Values) (g grant, err error) {
	places, done := g.into()
	err = tx.QueryRow(ctx, "SELECT "+grantColumns+" FROM as_grants g WHERE g.id = $1 AND g.revoked = 0", id).Scan(places...)
	done()
	if errors.Is(err, sql.ErrNoRows) || err == nil && form.Get("client_id") != g.client {
		return g, badGrant
	}
	return g, err
}

// give gives an access token and a refresh token.
func (s *Server) give(ctx context.Context, tx *db.Tx, g grant, now time.Time, got *tokens) error {
	if err := s.giveAccess(ctx, tx, g, now, got); err != nil {
		return err
	}
	got.Refresh = refreshPrefix + rand.Text() + rand.Text()
	return insertToken(ctx, tx, got.Refresh, g.id, "refresh", now.Add(refreshTime))
}

// giveAccess gives an access token, and deletes tokens that have expired.
func (s *Server) giveAccess(ctx context.Context, tx *db.Tx, g grant, now time.Time, got *tokens) error {
	if _, err := tx.Exec(ctx, "DELETE FROM as_tokens WHERE expires < $1", now.UnixMicro()); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "UPDATE as_grants SET used = $2 WHERE id = $1", g.id, now.UnixMicro()); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "UPDATE as_clients SET used = $2 WHERE id = $1", g.client, now.UnixMicro()); err != nil {
		return err
	}
	*got = tokens{Access: AccessPrefix + rand.Text() + rand.Text(), Type: "Bearer", Seconds: int(accessTime.Seconds()), Scope: strings.Join(g.scopes, " ")}
	return insertToken(ctx, tx, got.Access, g.id, "access", now.Add(accessTime))
}

func insertToken(ctx context.Context, tx *db.Tx, token, id, kind string, expires time.Time) error {
	_, err := tx.Exec(ctx, "INSERT INTO as_tokens (hash, grant_id, kind, expires) VALUES ($1, $2, $3, $4)", hashOf(token), id, kind, expires.UnixMicro())
	return err
}

// revoke ends the grant of a token (RFC 7009). Whether there was one is not told.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	form, err := formOf(w, r)
	if err != nil {
		return err
	}
	ctx, now := r.Context(), s.options.Now()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var id string
		err := tx.QueryRow(ctx, "SELECT g.id FROM as_tokens t JOIN as_grants g ON g.id = t.grant_id WHERE t.hash = $1 AND g.client = $2", hashOf(form.Get("token")), form.Get("client_id")).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return end(ctx, tx, id, now)
	})
	if err == nil {
		err = s.Refresh(context.WithoutCancel(ctx))
	}
	if err == nil {
		writeJSON(w, http.StatusOK, map[string]any{})
	}
	return err
}
