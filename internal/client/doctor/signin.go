package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/certpool"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/serverapi"
)

// authorities checks the file with the authorities that everything here trusts.
func (d *doctor) authorities(context.Context) {
	const check = "ca_file"
	if d.Config.CAFile == "" {
		return
	}
	if _, err := certpool.Load(d.Config.CAFile); err != nil {
		d.failed(check, err)
		return
	}
	d.ok(check, "%s", d.Config.CAFile)
}

// sealing checks that there is a key for what is stored encrypted: without one nobody can sign in,
// or log in to an upstream.
func (d *doctor) sealing(context.Context) {
	if d.foreign || d.Config.OAuth.Key == "" && len(d.Config.Identity) == 0 {
		return // the service has variables and files of its own; or nothing needs a key yet
	}
	if err := d.Config.OAuthKeyProblem(d.Config.SecretFinder(d.Env)); err != nil {
		d.failed("oauth.key", err)
	}
}

// providers asks the identity providers as a sign-in does, and finds our secrets there.
func (d *doctor) providers(ctx context.Context) {
	for _, p := range d.Config.SignInProviders(d.Config.SecretFinder(d.Env)) {
		check := "identity " + p.Name
		if err := d.provider(ctx, p); err != nil {
			d.failed(check, err)
			continue
		}
		d.ok(check, "%s answers; its redirect URI is %s", p.Issuer, d.Config.PublicURL+signin.CallbackPath)
	}
}

func (d *doctor) provider(ctx context.Context, p signin.Provider) error {
	client, err := d.Config.IssuerClient(d.Env)
	if err != nil {
		return err
	}
	if p.Secret != nil && !d.foreign { // the service has variables of its own
		if _, err := p.Secret(); err != nil {
			return err
		}
	}
	at, err := jwt.NewProvider(p.Issuer, p.ClientID, client).Endpoints(ctx)
	if err == nil && (at.Authorize == "" || at.Token == "") {
		err = fault.New(fault.Upstream, "%s has no authorization or token endpoint", p.Issuer).WithHint("check the issuer in [identity]")
	}
	return err
}

// publicURL opens the address that people and clients use. Without a running server its proxy
// has nothing to lead to.
func (d *doctor) publicURL(ctx context.Context) {
	const check = "public_url"
	if d.Config.PublicURL == "" {
		return
	}
	err := d.reach(ctx, d.Config.PublicURL)
	switch {
	case err == nil:
		d.ok(check, "%s leads to a luanette", d.Config.PublicURL)
	case d.server == nil:
		d.report(Finding{check, Note, fmt.Sprintf("%s does not lead to a luanette, and none runs here: %v", d.Config.PublicURL, err), ""})
	default:
		d.failed(check, err)
	}
}

// reach reports why no server of ours answers at an address.
func (d *doctor) reach(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	client, err := d.Config.IssuerClient(d.Env)
	if err != nil {
		return err
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	api := serverapi.API{Base: address, HTTP: client}
	var health struct{ Status, Version string }
	raw, err := api.Send(ctx, http.MethodGet, "/health", nil)
	if err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "open public_url").WithHint("%s", cmp.Or(certpool.Hint(err), proxyHint))
	}
	if json.Unmarshal(raw, &health) != nil || health.Status == "" {
		return fault.New(fault.Upstream, "%s/health is not answered by a luanette", address).WithHint(proxyHint)
	}
	if len(d.Config.Identity) > 0 {
		return d.leadsBack(ctx, client)
	}
	return nil
}

// leadsBack checks that clients without a token are told the public address: they are told that
// of the machine if the proxy does not pass the Host on.
func (d *doctor) leadsBack(ctx context.Context, client *http.Client) error {
	request, err := serverapi.NewRequest(ctx, http.MethodGet, d.Config.PublicURL+"/mcp", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "open public_url")
	}
	defer response.Body.Close()
	if told := response.Header.Get("WWW-Authenticate"); !strings.Contains(told, `"`+d.Config.PublicURL+"/") {
		return fault.New(fault.Config, "%s/mcp tells clients without a token another address: %d %s", d.Config.PublicURL, response.StatusCode, told).WithHint(proxyHint)
	}
	return nil
}

const proxyHint = "the proxy at public_url must pass requests with their Host on to this server: docs/security.md"
