// Package oauth logs us in to tool servers that want it: it finds the server's
// authorization server, gets a token there with a person's consent, keeps it
// encrypted, renews it, and gives it to nobody but the server it is for.
//
// A token belongs to one upstream, one URL and one issuer. Several nodes on one
// database share what is kept here; only one of them renews a token at a time,
// since authorization servers take the use of an old refresh token for theft.
package oauth

import (
	"context"
	"embed"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Server is a tool server that may want a login.
type Server struct {
	Name     string // the upstream
	URL      string // what tokens are for
	Trusted  bool   // the owner wants it, not a model or a script
	Settings Settings
}

// Grants that Settings may ask for.
const (
	GrantCode        = "code"        // a person agrees in a browser
	GrantDevice      = "device"      // a person agrees elsewhere, with a short code
	GrantCredentials = "credentials" // nobody: we have credentials of our own
)

// Settings are what the owner says of a server's logins. All may be empty.
type Settings struct {
	ClientID     string
	ClientSecret string   // or a reference to it
	ClientKey    string   // a private key (PEM), or a reference to it: we sign instead of telling a secret
	Scopes       []string // instead of those the server asks for
	Issuer       string   // the only authorization server to use
	Grant        string   // GrantCode when empty
}

// Topic is where processes tell each other that somebody has logged in.
const Topic = "logins"

// Options are the choices of Logins.
type Options struct {
	// Key encrypts what is kept; it has at least 16 bytes.
	Key func() (secret.Text, error)
	// Resolve finds the secret that a reference in Settings means. nil: it is the
	// secret itself.
	Resolve func(reference string) (secret.Text, error)
	// MetadataURL is where our client metadata document is, for authorization
	// servers that fetch it; empty: nowhere.
	MetadataURL string
	// AllowedHosts are names and addresses beyond the public internet where
	// authorization servers may be.
	AllowedHosts []string
	// ClientName is how people see us when they are asked; "Luanette" when empty.
	ClientName string

	Clock clock.Clock  // nil: the machine's
	Log   *slog.Logger // nil: silent
}

// Logins are all of ours. They are safe for concurrent use.
type Logins struct {
	db      *db.DB
	options Options
	box     secret.Box

	mu    sync.Mutex
	known map[Key]login         // from memory; a zero login means there is none
	turns map[Key]chan struct{} // one renews, the others wait
}

// Key names a login: the upstream, and the URL its tokens are for.
type Key struct{ Upstream, Server string }

// address is the URL without its query, in which people put secrets.
func (s Server) address() string {
	address, _, _ := strings.Cut(s.URL, "?")
	return address
}

func (s Server) key() Key { return Key{s.Name, s.address()} }

// Open finds what is in the database, whose tables it brings up to date.
func Open(ctx context.Context, database *db.DB, o Options) (*Logins, error) {
	if err := database.Migrate(ctx, "oauth", migrations); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.ClientName == "" {
		o.ClientName = "Luanette"
	}
	if o.Resolve == nil {
		o.Resolve = func(text string) (secret.Text, error) { return secret.New(text), nil }
	}
	return &Logins{
		db: database, options: o, box: secret.Box{Key: sync.OnceValues(o.Key), RecoveryHint: "log in again with `luanette upstream login`"},
		known: map[Key]login{}, turns: map[Key]chan struct{}{},
	}, nil
}

// Status is how we stand with one server.
type Status struct {
	LoggedIn bool      `json:"logged_in"`
	Issuer   string    `json:"issuer,omitempty"`
	Scopes   []string  `json:"scopes,omitempty"`
	Expires  time.Time `json:"expires,omitzero"` // of the access token
	Renews   bool      `json:"renews,omitempty"` // by itself, without a person
	Changed  time.Time `json:"changed,omitzero"`
	Version  int64     `json:"-"`
}

// Status tells how we stand with a server. It asks the database, nobody else.
func (l *Logins) Status(ctx context.Context, s Server) (Status, error) {
	have, err := l.load(ctx, s)
	if err != nil || have.Access == "" {
		return Status{}, err
	}
	return Status{
		LoggedIn: true, Issuer: have.Issuer, Scopes: have.Scopes, Expires: have.Expires,
		Renews: have.Refresh != "", Changed: have.updated, Version: have.version,
	}, nil
}

// Logout forgets the tokens of an upstream, and what it was registered as. It
// tells whether there were any.
func (l *Logins) Logout(ctx context.Context, upstream string) (bool, error) {
	found := false
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		result, err := tx.Exec(ctx, `DELETE FROM oauth_logins WHERE upstream = $1`, upstream)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		found = n > 0
		for _, table := range []string{"oauth_clients", "oauth_flows", "oauth_challenges"} {
			if err == nil {
				_, err = tx.Exec(ctx, `DELETE FROM `+table+` WHERE upstream = $1`, upstream)
			}
		}
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.known {
		if key.Upstream == upstream {
			delete(l.known, key)
		}
	}
	return found, err
}
