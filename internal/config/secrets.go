package config

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/store/db"
)

// SecretFinder resolves references to secrets. Paths are relative to the configuration
// file.
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

// OpenDatabase opens the configured database. Its URL may contain references.
func (l *Loaded) OpenDatabase(ctx context.Context, secrets secret.Finder) (*db.DB, error) {
	url, err := l.DatabaseURL(secrets)
	if err != nil {
		return nil, err
	}
	return db.Open(ctx, url, db.Options{})
}

// DatabaseURL returns the URL of the database, with its references resolved.
func (l *Loaded) DatabaseURL(secrets secret.Finder) (string, error) {
	url, err := secrets.Find(l.Database)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "database").WithHint("%s", fault.HintOf(err))
	}
	return url.Reveal(), nil
}

// DataLocation returns where data is stored, for messages: the data folder, and the
// database if it is elsewhere.
func (l *Loaded) DataLocation() string {
	if strings.HasPrefix(l.Database, "sqlite:") {
		return l.Data
	}
	return l.Data + " and " + db.RedactURL(l.Database)
}

// ownDatabase reports whether only this machine can use the database.
func (l *Loaded) ownDatabase(secrets secret.Finder) (bool, error) {
	address, err := l.DatabaseURL(secrets)
	if err != nil {
		return false, err
	}
	kind, err := db.KindOf(address)
	return kind == db.SQLite, err
}
