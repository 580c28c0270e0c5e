package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// How issuers are told that a login has ended.
const (
	revokeAttempts = 8
	revokePause    = time.Minute // until the second attempt; doubles
	revokeEvery    = time.Minute // how often due attempts are looked for
)

// End deletes the login of an owner to an upstream, the shared one if owner is empty, and
// reports whether there was one. Its issuer is told by RunRevocations.
func (l *Logins) End(ctx context.Context, upstream, owner string) (found bool, err error) {
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		found, err = end(ctx, tx, `upstream = $1 AND owner = $2`, upstream, owner)
		return err
	})
	l.forgetKnown(func(key Key) bool { return key.Upstream == upstream && key.Owner == owner })
	return found, err
}

// EndOf deletes all logins of a person, in every organisation, in a transaction of others.
func EndOf(ctx context.Context, tx *db.Tx, person string) error {
	_, err := end(ctx, tx, `(owner = $1 OR substr(owner, 1, length($2)) = $2)`, person, person+"/")
	return err
}

// end deletes logins with what waits for them, and queues their revocation.
func end(ctx context.Context, tx *db.Tx, where string, args ...any) (found bool, err error) {
	if _, err := tx.Exec(ctx, `INSERT INTO oauth_revocations (upstream, owner, server, issuer, version, attempts, due, sealed)
		SELECT upstream, owner, server, issuer, version, 0, 0, sealed FROM oauth_logins WHERE state = 'active' AND `+where+` ON CONFLICT DO NOTHING`, args...); err != nil {
		return false, err
	}
	for _, table := range []string{"oauth_logins", "oauth_flows", "oauth_challenges"} {
		n, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE `+where, args...)
		if err != nil {
			return false, err
		}
		found = found || table == "oauth_logins" && n > 0
	}
	return found, tx.Notify(Topic, "ended")
}

// Reload forgets what is known of stored logins, because another process may have changed
// or ended them.
func (l *Logins) Reload() { l.forgetKnown(func(Key) bool { return true }) }

// RunRevocations tells issuers which logins have ended, until ctx ends.
func (l *Logins) RunRevocations(ctx context.Context) {
	l.db.Poll(ctx, Topic, revokeEvery, l.options.Log, l.Revoke)
}

// revocation is a login that has ended, whose issuer has to be told.
type revocation struct {
	of             Server // name, owner and URL only
	issuer         string
	version, tried int64
	sealed         []byte
}

// Revoke makes the attempts that are due. One node makes each.
func (l *Logins) Revoke(ctx context.Context) error {
	for {
		r, found, err := l.nextRevocation(ctx)
		if err != nil || !found {
			return err
		}
		err = l.revoke(ctx, r)
		log := l.options.Log.With("upstream", r.of.Name, "owner", r.of.Owner, "issuer", r.issuer)
		if err != nil && r.tried < revokeAttempts && ctx.Err() == nil {
			log.InfoContext(ctx, "the end of a login was not told yet", "attempt", r.tried, "error", err)
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			log.WarnContext(ctx, "the end of a login could not be told: its tokens are valid until they expire", "error", err)
		}
		if err := l.deleteRevocation(ctx, r); err != nil {
			return err
		}
	}
}

// nextRevocation claims a due attempt until the time of the next one.
func (l *Logins) nextRevocation(ctx context.Context) (r revocation, found bool, err error) {
	now := l.options.Clock.Now()
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		list, err := db.All(ctx, tx, func(row db.Scanner) (r revocation, err error) {
			return r, row.Scan(&r.of.Name, &r.of.Owner, &r.of.URL, &r.issuer, &r.version, &r.tried, &r.sealed)
		}, `SELECT upstream, owner, server, issuer, version, attempts, sealed FROM oauth_revocations WHERE due <= $1 ORDER BY due, version LIMIT 1`, now.UnixMicro())
		if err != nil || len(list) == 0 {
			found = false
			return err
		}
		r = list[0]
		n, err := tx.Exec(ctx, `UPDATE oauth_revocations SET attempts = attempts + 1, due = $7
			WHERE upstream = $1 AND owner = $2 AND server = $3 AND issuer = $4 AND version = $5 AND attempts = $6`,
			r.of.Name, r.of.Owner, r.of.URL, r.issuer, r.version, r.tried, now.Add(revokePause<<min(r.tried, 20)).UnixMicro())
		r.tried++
		found = n == 1
		return err
	})
	return r, found, err
}

func (l *Logins) deleteRevocation(ctx context.Context, r revocation) error {
	return l.db.Exec(ctx, `DELETE FROM oauth_revocations WHERE upstream = $1 AND owner = $2 AND server = $3 AND issuer = $4 AND version = $5`,
		r.of.Name, r.of.Owner, r.of.URL, r.issuer, r.version)
}

// revoke tells the issuer that a login has ended (RFC 7009). Most end the access token
// together with the refresh token; those that do not end it when it expires.
func (l *Logins) revoke(ctx context.Context, r revocation) error {
	var have sealedLogin
	if err := l.box.Open(r.sealed, &have, r.of.subject("login", r.issuer, r.of.address())...); err != nil {
		return err
	}
	if have.At.Revoke == "" {
		return nil // it cannot be told
	}
	s := have.Server
	f, err := l.fetcher(s)
	if err != nil {
		return err
	}
	form := url.Values{"token": {have.Refresh}, "token_type_hint": {"refresh_token"}}
	if have.Refresh == "" {
		form = url.Values{"token": {have.Access}, "token_type_hint": {"access_token"}}
	}
	endpoint, err := f.parse(have.At.Revoke)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), nil)
	if err != nil {
		return err
	}
	if err := l.addClientAuth(request, s, have.At, have.Client, form); err != nil {
		return err
	}
	status, answer, err := f.post(request, form)
	if err == nil && status != http.StatusOK {
		err = refusal(endpoint.Host, status, answer)
	}
	var no *refused
	if errors.As(err, &no) && no.final() {
		l.options.Log.InfoContext(ctx, "an issuer does not revoke a login", "issuer", r.issuer, "error", no)
		return nil
	}
	return err
}

// final reports whether repeating a request does not help.
func (r *refused) final() bool {
	return r.code == "unsupported_token_type" || r.code == "invalid_client" || r.code == "invalid_request"
}
