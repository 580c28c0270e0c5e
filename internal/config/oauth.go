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

	"github.com/luanette/luanette/internal/access/oauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// OAuth is about logging in to upstreams.
type OAuth struct {
	Key         string `toml:"key" secret:"all" help:"what tokens are encrypted with, as a reference such as ${env:NAME}; empty makes a file oauth.key in the data folder, which a database that several nodes share does not allow"`
	RedirectURL string `toml:"redirect_url" help:"where browsers come back to after a login at this server, when it is not reached at the address it listens on: https://HOST/oauth/callback"`
	MetadataURL string `toml:"client_metadata_url" help:"where authorization servers find our client metadata: https://HOST/oauth/client.json of this server, or a copy of that page"`
}

// UpstreamOAuth is about logging in to one upstream.
type UpstreamOAuth struct {
	ClientID     string   `toml:"client_id,omitempty" help:"who we are at the authorization server, where it does not register clients by itself"`
	ClientSecret string   `toml:"client_secret,omitempty" secret:"all" help:"and the secret, as a reference such as ${env:NAME}"`
	ClientKey    string   `toml:"client_key,omitempty" secret:"all" help:"or a private key to sign with (PEM, PKCS #8), as a reference"`
	Scopes       []string `toml:"scopes,omitempty" help:"what to be allowed, instead of what the server asks for"`
	Issuer       string   `toml:"issuer,omitempty" help:"the only authorization server to log in at"`
	Grant        string   `toml:"grant,omitempty" help:"code (a person agrees in a browser), device, or credentials (nobody is asked: client_id and its secret or key are enough)"`
	RedirectPort int      `toml:"redirect_port,omitempty" help:"port the browser comes back to when luanette upstream login is used; any when 0"`
}

func (u *UpstreamOAuth) settings() upstream.OAuth {
	if u == nil {
		return upstream.OAuth{}
	}
	return upstream.OAuth{
		ClientID: u.ClientID, ClientSecret: u.ClientSecret, ClientKey: u.ClientKey,
		Scopes: u.Scopes, Issuer: u.Issuer, Grant: u.Grant, RedirectPort: u.RedirectPort,
	}
}

// hidden is what of it may be shown.
func (u *UpstreamOAuth) hidden() *UpstreamOAuth {
	if u == nil {
		return nil
	}
	shown := *u
	shown.ClientSecret, shown.ClientKey = secret.Shown(u.ClientSecret), secret.Shown(u.ClientKey)
	return &shown
}

func (u *UpstreamOAuth) check(name string) error {
	if u == nil {
		return nil
	}
	grants := []string{"", oauth.GrantCode, oauth.GrantDevice, oauth.GrantCredentials}
	switch {
	case !slices.Contains(grants, u.Grant):
		return fault.New(fault.Config, "upstreams.%s.oauth.grant: %q is unknown", name, u.Grant).WithHint("use code, device or credentials")
	case u.Grant == oauth.GrantCredentials && (u.ClientID == "" || u.ClientSecret == "" && u.ClientKey == ""):
		return fault.New(fault.Config, "upstreams.%s.oauth: credentials takes client_id, and client_secret or client_key", name)
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
		Log:          log,
	}
}

// OAuthKey is what tokens are encrypted with: configured, or of a file that only
// its owner may read, made when it is first needed.
func (l *Loaded) OAuthKey(secrets secret.Finder) (secret.Text, error) {
	if l.OAuth.Key != "" {
		return secrets.Find(l.OAuth.Key)
	}
	if own, err := l.ownDatabase(secrets); err != nil {
		return secret.Text{}, err
	} else if !own {
		return secret.Text{}, fault.New(fault.Config, "oauth.key is not set, and nodes that share a database have to share it").
			WithHint("make one with `openssl rand -hex 32` and give it to every node, as oauth.key = \"${env:LUANETTE_OAUTH_SECRET}\"")
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
		return secret.Text{}, fault.New(fault.Config, "others may read %s", path).WithHint("chmod 600 %s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return secret.Text{}, fault.Wrap(fault.Config, err, "read %s", path)
	}
	return secret.New(strings.TrimSpace(string(text))), nil
}
