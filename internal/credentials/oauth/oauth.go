// Package oauth logs in to tool servers that require it. It finds the server's
// authorization server, gets a token there with a person's consent, stores it
// encrypted, renews it, and sends it only to the server it is for.
//
// A token belongs to one upstream, one URL, one issuer, and one owner or everybody. Nodes with
// the same database share the stored tokens. Only one of them renews a token at a time, because
// authorization servers treat the reuse of a refresh token as theft.
package oauth

import (
	"context"
	"embed"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/sealed"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Server is a tool server that may require a login.
type Server struct {
	Name     string // the name of the upstream
	Owner    string // the ID of the principal whose account is used; empty: one that all share
	Org      string // the owner's organisation; may be empty
	URL      string // the resource of its tokens
	Trusted  bool   // configured by the owner, not by a model or a script
	CAFile   string // a PEM file with more certificate authorities; may be empty
	Settings Settings
}

// The grants of Settings.
const (
	GrantCode        = "code"        // a person confirms in a browser
	GrantDevice      = "device"      // a person confirms on another device, with a short code
	GrantCredentials = "credentials" // no person: the client has its own credentials
)

// Settings are the configured options of a server's logins. All may be empty.
type Settings struct {
	ClientID     string
	ClientSecret string   // or a reference to it
	ClientKey    string   // a private key (PEM), or a reference to it: signs assertions instead of sending a secret
	Scopes       []string // instead of those the server requires
	Issuer       string   // the only authorization server to use
	Grant        string   // GrantCode when empty
	TokenURL     string   // where the server's own description says that client credentials get tokens
}

// Topic is where processes notify each other of logins.
const Topic = "logins"

// Options are the options of Logins.
type Options struct {
	// Key returns the key that encrypts stored tokens; it has at least 16 bytes.
	Key func() (secret.Text, error)
	// Resolve returns the secret of a reference in Settings. nil: the text is the
	// secret itself.
	Resolve func(reference string) (secret.Text, error)
	// MetadataURL is the address of our client metadata document, for authorization
	// servers that fetch it; empty: none.
	MetadataURL string
	// AllowedHosts are names and addresses outside the public internet that
	// authorization servers may have.
	AllowedHosts []string
	// CAFile is a PEM file with more certificate authorities for all servers; may be empty.
	CAFile string
	Proxy  netguard.ProxyFunc // nil: none
	// ClientName is the name that people see when they confirm a login; "Luanette"
	// when empty.
	ClientName string
	// Connect returns the address of the page on which people log in to an upstream with
	// accounts of their own. nil: there is none.
	Connect func(upstream string) string

	Clock clock.Clock  // nil: the machine's
	Log   *slog.Logger // nil: discards
}

// Logins has all logins. It is safe for concurrent use.
type Logins struct {
	db      *db.DB
	options Options
	box     secret.Box

	mu    sync.Mutex
	known map[Key]login         // cached; a zero login means there is none
	turns map[Key]chan struct{} // one caller renews, the others wait
}

// Key identifies a login: the upstream, whose account it is, and the URL of its tokens.
type Key struct{ Upstream, Owner, Server string }

// address returns the URL without its query, which may contain secrets.
func (s Server) address() string {
	address, _, _ := strings.Cut(s.URL, "?")
	return address
}

func (s Server) key() Key { return Key{s.Name, s.Owner, s.address()} }

// subject is what an encrypted value is bound to.
func (s Server) subject(kind, issuer, rest string) []string {
	if s.Owner == "" {
		return []string{kind, s.Name, issuer, rest}
	}
	return []string{kind, s.Name, issuer, rest, s.Owner}
}

// Open opens the logins in a database and brings its tables up to date.
func Open(ctx context.Context, database *db.DB, o Options) (*Logins, error) {
	if err := database.Migrate(ctx, "oauth", Migrations); err != nil {
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

// The states of logins.
const (
	StateNone       = "none"
	StateActive     = "active"
	StateNeedsLogin = "needs_login" // it has ended: the person has to log in again
)

// Status is the state of the login to one server.
type Status struct {
	LoggedIn bool      `json:"logged_in"`
	State    string    `json:"state"`
	Issuer   string    `json:"issuer,omitempty"`
	Account  string    `json:"account,omitempty"` // the name of the account, if the issuer tells
	Scopes   []string  `json:"scopes,omitempty"`
	Expires  time.Time `json:"expires,omitzero"` // of the access token
	Renews   bool      `json:"renews,omitempty"` // can be renewed without a person
	Changed  time.Time `json:"changed,omitzero"`
	Version  int64     `json:"-"`
}

// Status returns the state of the login to a server. It reads only the database.
func (l *Logins) Status(ctx context.Context, s Server) (Status, error) {
	have, err := l.load(ctx, s)
	if err != nil || have.Issuer == "" {
		return Status{State: StateNone}, err
	}
	status := Status{
		State: StateNeedsLogin, Issuer: have.Issuer, Account: have.Account, Scopes: have.Scopes, Expires: have.Expires,
		Renews: have.Refresh != "", Changed: have.updated, Version: have.version,
	}
	if have.Access != "" && !(have.ended(l.options.Clock.Now()) && s.Settings.Grant != GrantCredentials) {
		status.State, status.LoggedIn = StateActive, true
	}
	return status, nil
}

// Logout deletes the shared tokens and the registration of an upstream. It reports whether
// there were any tokens.
func (l *Logins) Logout(ctx context.Context, upstream string) (bool, error) {
	found, err := l.End(ctx, upstream, "")
	if err != nil {
		return found, err
	}
	// The logins of people need their registration.
	return found, l.db.Exec(ctx, `DELETE FROM oauth_clients WHERE upstream = $1
		AND NOT EXISTS (SELECT 1 FROM oauth_logins WHERE upstream = $1)`, upstream)
}

// forgetKnown removes logins from the cache.
func (l *Logins) forgetKnown(which func(Key) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.known {
		if which(key) {
			delete(l.known, key)
		}
	}
}

// Sealed are the columns with encrypted logins and clients.
func Sealed() []sealed.Column {
	login := func(of []string) []string { return Server{Name: of[0], Owner: of[1]}.subject("login", of[3], of[2]) }
	of := []string{"upstream", "owner", "server", "issuer"}
	return []sealed.Column{
		{Table: "oauth_logins", Name: "sealed", Of: of, About: login},
		{Table: "oauth_revocations", Name: "sealed", Of: of, About: login},
		{Table: "oauth_clients", Name: "sealed", Of: []string{"upstream", "issuer", "redirect"}, About: func(of []string) []string { return append([]string{"client"}, of...) }},
	}
}
