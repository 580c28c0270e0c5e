package config

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/credentials/exchange"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// OAuth configures logins to upstreams.
type OAuth struct {
	Key         string `toml:"key" secret:"all" help:"key that encrypts tokens, as a reference such as ${env:NAME}; further lines are keys that were used before, docs/oauth.md; empty creates a file oauth.key in the data folder, which is not allowed if several nodes share the database"`
	RedirectURL string `toml:"redirect_url" help:"URL that browsers are redirected to after a login: https://HOST/oauth/callback; needed if browsers do not reach the server at its listen address"`
	MetadataURL string `toml:"client_metadata_url" help:"URL of our client metadata for authorization servers: https://HOST/oauth/client.json of this server, or a copy of that document"`
}

// checkLogin refuses logins to an upstream that cannot work.
func checkLogin(name string, u Upstream) error {
	if err := checkExchange(name, u); err != nil {
		return err
	}
	o, grants := u.OAuth, []string{"", oauth.GrantCode, oauth.GrantDevice, oauth.GrantCredentials, exchange.GrantBehalf}
	switch {
	case !slices.Contains(grants, o.Grant):
		return fault.New(fault.Config, "upstreams.%s.oauth.grant: %q is unknown", name, o.Grant).WithHint("use code, device or credentials")
	case o.Grant == oauth.GrantCredentials && (o.ClientID == "" || o.ClientSecret == "" && o.ClientKey == ""):
		return fault.New(fault.Config, "upstreams.%s.oauth: credentials needs client_id, and client_secret or client_key", name)
	}
	return nil
}

// checkExchange refuses exchanges that cannot work, or could give tokens of people to a
// server that the upstream chooses.
func checkExchange(name string, u Upstream) error {
	o, exchanges := u.OAuth, u.Login == upstream.LoginExchange || u.Login == upstream.LoginIDJAG
	switch {
	case !exchanges && (o.Audience != "" || o.Subject != "" || o.Grant == exchange.GrantBehalf):
		return fault.New(fault.Config, "upstreams.%s.oauth: audience, subject and on-behalf-of are for tokens that are exchanged", name).WithHint(`set login = "exchange"`)
	case o.Subject != "" && !slices.Contains(exchange.Subjects, o.Subject):
		return fault.New(fault.Config, "upstreams.%s.oauth.subject: %q is unknown", name, o.Subject).WithHint("use %s", strings.Join(exchange.Subjects, ", "))
	case exchanges && o.ClientID != "" && o.Issuer == "":
		return fault.New(fault.Config, "upstreams.%s.oauth: client_id needs issuer", name).WithHint("the client's secret and the tokens of people are for that authorization server only")
	case u.Login == upstream.LoginIDJAG && o.ClientID == "":
		return fault.New(fault.Config, "upstreams.%s: login = \"id-jag\" needs oauth.issuer and oauth.client_id", name).
			WithHint("those of this server at the upstream's authorization server; docs/people.md")
	}
	return nil
}

// OAuthOptions are the options of logins to upstreams.
func (l *Loaded) OAuthOptions(secrets secret.Finder, log *slog.Logger) oauth.Options {
	return oauth.Options{
		Key:          func() (secret.Text, error) { return l.OAuthKey(secrets) },
		Resolve:      secrets.Find,
		MetadataURL:  l.OAuth.MetadataURL,
		AllowedHosts: l.MCP.AllowedHosts,
		CAFile:       l.CAFile,
		Log:          log,
	}
}

// OAuthKey returns the key that encrypts tokens. It is configured, or read from a file
// that only its owner may read, which is created on first use.
func (l *Loaded) OAuthKey(secrets secret.Finder) (secret.Text, error) {
	if l.OAuth.Key != "" {
		return secrets.Find(l.OAuth.Key)
	}
	if own, err := l.ownDatabase(secrets); err != nil {
		return secret.Text{}, err
	} else if !own {
		return secret.Text{}, fault.New(fault.Config, "oauth.key is not set, and nodes that share a database must share it").
			WithHint("create one with `openssl rand -hex 32` and set it on every node, as oauth.key = \"${env:LUANETTE_OAUTH_SECRET}\"")
	}
	path := filepath.Join(l.Data, "oauth.key")
	made := make([]byte, 32)
	_, _ = rand.Read(made) // never fails
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = file.WriteString(hex.EncodeToString(made) + "\n")
		if err = errors.Join(err, file.Close()); err != nil {
			return secret.Text{}, fault.Wrap(fault.Config, err, "write %s", path)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return secret.Text{}, fault.Wrap(fault.Config, err, "make %s", path)
	}
	if info, err := os.Stat(path); err == nil && !privateFile(info) {
		return secret.Text{}, fault.New(fault.Config, "other users may read %s", path).WithHint("chmod 600 %s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return secret.Text{}, fault.Wrap(fault.Config, err, "read %s", path)
	}
	return secret.New(strings.TrimSpace(string(text))), nil
}

// OAuthKeyProblem is why there is no key that encrypts tokens; nil if there is one, or a file will
// be made for it.
func (l *Loaded) OAuthKeyProblem(secrets secret.Finder) error {
	if l.OAuth.Key == "" {
		if own, err := l.ownDatabase(secrets); own || err != nil {
			return err
		}
	}
	_, err := l.OAuthKey(secrets)
	return err
}

// BridgeSecret is the secret key with which tools are served over ZeroMQ; empty means
// without security.
func (l *Loaded) BridgeSecret(secrets secret.Finder) (string, error) {
	if l.Bridge.CurveSecret == "" {
		return "", nil
	}
	found, err := secrets.Find(l.Bridge.CurveSecret)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "bridge.curve_secret").WithHint("%s", fault.HintOf(err))
	}
	return found.Reveal(), nil
}
