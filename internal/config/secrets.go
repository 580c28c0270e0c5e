package config

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
)

// SecretFinder looks up what the configuration refers to. Files are beside it.
func (l *Loaded) SecretFinder(env Environment) secret.Finder {
	folder := ""
	if l.File != "" {
		folder = filepath.Dir(l.File)
	}
	return secret.Finder{
		Getenv: env.Lookup, Folder: folder, Keyring: secret.FromKeyring,
		Problem: func(reference string, cause error) error {
			f := fault.Wrap(fault.Config, cause, "find %s", reference)
			if hint := fault.HintOf(cause); hint != "" {
				return f.WithHint("%s", hint)
			}
			return f.WithHint("a secret is ${env:NAME}, ${file:PATH} or ${keyring:SERVICE/NAME}")
		},
	}
}

// OpenDatabase opens the database that the configuration names. Its URL may refer to
// a password.
func (l *Loaded) OpenDatabase(ctx context.Context, secrets secret.Finder) (*db.DB, error) {
	url, err := l.DatabaseURL(secrets)
	if err != nil {
		return nil, err
	}
	return db.Open(ctx, url, db.Options{})
}

// DatabaseURL is where the database is, with what it refers to.
func (l *Loaded) DatabaseURL(secrets secret.Finder) (string, error) {
	url, err := secrets.Find(l.Database)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "database").WithHint("%s", fault.HintOf(err))
	}
	return url.Reveal(), nil
}

// DataLocation is where everything is kept, for people: the data folder, and the database
// where that is elsewhere.
func (l *Loaded) DataLocation() string {
	if strings.HasPrefix(l.Database, "sqlite:") {
		return l.Data
	}
	return l.Data + " and " + db.RedactURL(l.Database)
}

// ownDatabase tells that nobody but this machine uses the database.
func (l *Loaded) ownDatabase(secrets secret.Finder) (bool, error) {
	address, err := l.DatabaseURL(secrets)
	if err != nil {
		return false, err
	}
	kind, err := db.KindOf(address)
	return kind == db.SQLite, err
}
