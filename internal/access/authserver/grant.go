package authserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// grant is what a person allowed a client.
type grant struct {
	id, person, org, client, name, resource string
	scopes                                  []string
	created, used                           time.Time
}

// commandLineGrant is the prefix of the grants of our own command line.
const commandLineGrant = "cli-"

func newGrantID(client string) string {
	prefix := "g-"
	if client == CommandLine {
		prefix = commandLineGrant
	}
	return prefix + strings.ToLower(rand.Text()[:16])
}

// IsClient reports whether somebody acts by a client that is neither our command line nor a key
// of theirs.
func IsClient(p principal.Principal) bool {
	_, byKey := p.OwnKey()
	return p.Grant != "" && !byKey && !strings.HasPrefix(p.Grant, commandLineGrant)
}

// OwnPerson returns the person who makes a request themselves, in a browser or with our
// command line; empty for clients that act for somebody, and for keys. What it guards, such
// as making keys, would outlive what a client was allowed.
func OwnPerson(p principal.Principal) string {
	if p.Grant != "" && !strings.HasPrefix(p.Grant, commandLineGrant) {
		return ""
	}
	return people.PersonOf(p)
}

func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func (g grant) principalScopes() (list []principal.Scope) {
	for _, name := range g.scopes {
		list = append(list, principal.Scope(name))
	}
	return list
}

func (g grant) insert(ctx context.Context, tx *db.Tx, now time.Time) error {
	_, err := tx.Exec(ctx, "INSERT INTO as_grants (id, person, org, client, name, resource, scopes, created, used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
		g.id, g.person, g.org, g.client, g.name, g.resource, strings.Join(g.scopes, " "), now.UnixMicro())
	return err
}

const grantColumns = "g.id, g.person, g.org, g.client, g.name, g.resource, g.scopes, g.created, g.used"

// into are the places of grantColumns; done sets what has another type.
func (g *grant) into() (places []any, done func()) {
	var scopes string
	var created, used int64
	return []any{&g.id, &g.person, &g.org, &g.client, &g.name, &g.resource, &scopes, &created, &used}, func() {
		g.scopes, g.created, g.used = strings.Fields(scopes), time.UnixMicro(created).UTC(), time.UnixMicro(used).UTC()
	}
}

var errToken = fault.New(fault.Denied, "the token is not valid, or not any more").WithHint("sign in again")

// find returns the grant of an access token.
func (s *Server) find(ctx context.Context, token string) (g grant, expires time.Time, err error) {
	var until int64
	places, done := g.into()
	err = s.db.QueryRow(ctx, "SELECT "+grantColumns+", t.expires FROM as_tokens t JOIN as_grants g ON g.id = t.grant_id WHERE t.hash = $1 AND t.kind = 'access' AND t.expires > $2 AND g.revoked = 0",
		hashOf(token), s.options.Now().UnixMicro()).Scan(append(places, &until)...)
	if errors.Is(err, sql.ErrNoRows) {
		return g, expires, errToken
	}
	done()
	return g, time.UnixMicro(until), err
}

// checkGrant is fault.Denied if a grant was revoked.
func (s *Server) checkGrant(ctx context.Context, id string) error {
	var n int
	err := s.db.QueryRow(ctx, "SELECT count(*) FROM as_grants WHERE id = $1 AND revoked = 0", id).Scan(&n)
	if err == nil && n == 0 {
		err = fault.New(fault.Denied, "the client may not act for the person any more").WithHint("connect the client again")
	}
	return err
}

// EndGrants revokes all that a person has allowed, in a transaction of people.Store.
func EndGrants(ctx context.Context, tx *db.Tx, person string) error {
	now, err := tx.Now(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "UPDATE as_grants SET revoked = $2 WHERE person = $1 AND revoked = 0", person, now.UnixMicro()); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "DELETE FROM as_consents WHERE person = $1", person)
	return err
}

// end revokes a grant and lets all nodes end what runs with it.
func end(ctx context.Context, tx *db.Tx, id string, now time.Time) error {
	if _, err := tx.Exec(ctx, "UPDATE as_grants SET revoked = $2 WHERE id = $1 AND revoked = 0", id, now.UnixMicro()); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM as_tokens WHERE grant_id = $1 AND kind = 'access'", id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "UPDATE people SET version = version + 1 WHERE id IN (SELECT person FROM as_grants WHERE id = $1)", id); err != nil {
		return err
	}
	return tx.Notify(people.Topic, id)
}

// endReused revokes the grant of a code or token that came twice, and refuses it.
func endReused(ctx context.Context, tx *db.Tx, id string, now time.Time) error {
	if err := end(ctx, tx, id, now); err != nil {
		return err
	}
	return ended{badGrant}
}

// audit records that a person allowed or revoked something.
func (s *Server) audit(ctx context.Context, action string, g grant) {
	detail, _ := json.Marshal(map[string]any{"grant": g.id, "name": g.name, "scopes": g.scopes}) // texts always encode
	s.options.OnGrant(ctx, action, g.client, detail)
}

// GrantView is a grant as the API shows it.
type GrantView struct {
	ID      string    `json:"id"`
	Client  string    `json:"client"`
	Name    string    `json:"name"`
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used"`
}

// owner returns the person who asks about their own grants. A client does not see what
// the person allowed others.
func owner(r *http.Request) (string, error) {
	if id := OwnPerson(principal.Of(r.Context())); id != "" {
		return id, nil
	}
	return "", fault.New(fault.Denied, "only people have grants").WithHint("sign in: /signin")
}

func (s *Server) listGrants(w http.ResponseWriter, r *http.Request) error {
	person, err := owner(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	var list []GrantView
	list, err = db.Find(ctx, s.db, func(row db.Scanner) (GrantView, error) {
		var g grant
		places, done := g.into()
		err := row.Scan(places...)
		done()
		return GrantView{g.id, g.client, g.name, g.scopes, g.created, g.used}, err
	}, "SELECT "+grantColumns+" FROM as_grants g WHERE g.person = $1 AND g.revoked = 0 ORDER BY g.created, g.id", person)
	if err == nil {
		writeJSON(w, http.StatusOK, map[string]any{"grants": append([]GrantView{}, list...)})
	}
	return err
}

func (s *Server) deleteGrant(w http.ResponseWriter, r *http.Request) error {
	person, err := owner(r)
	if err != nil {
		return err
	}
	ctx, now := r.Context(), s.options.Now()
	var g grant
	places, done := g.into()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, "SELECT "+grantColumns+" FROM as_grants g WHERE g.id = $1 AND g.person = $2 AND g.revoked = 0", r.PathValue("id"), person).Scan(places...)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.New(fault.NotFound, "no grant %s", r.PathValue("id"))
		}
		if err != nil {
			return err
		}
		done()
		if _, err := tx.Exec(ctx, "DELETE FROM as_consents WHERE person = $1 AND client = $2", g.person, g.client); err != nil {
			return err
		}
		return end(ctx, tx, g.id, now)
	})
	if err == nil {
		err = s.Refresh(context.WithoutCancel(ctx))
	}
	if err != nil {
		return err
	}
	s.audit(ctx, "client.revoke", g)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
