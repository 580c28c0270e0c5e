package server

import (
	"context"
	"net/http"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/identity"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/exchange"
	"github.com/luanette/luanette/internal/ui/login"
)

// addIssuers accepts tokens of the configured issuers.
func (srv *Server) addIssuers(o *httpauth.Options) {
	if len(srv.config.Issuers) == 0 && srv.people == nil {
		return
	}
	srv.tokens = jwt.New(srv.config.TokenIssuers(), srv.issuerClient())
	if srv.people != nil {
		srv.tokens.WithOwn(srv.config.PublicURL, srv.people.Resource())
	}
	o.Tokens = srv.tokens
}

// issuerClient asks issuers, which the owner configured and may be on this machine.
func (srv *Server) issuerClient() *http.Client {
	from := srv.outbound()
	from.Loopback = true
	return &http.Client{Transport: from.Transport()}
}

// openPeople lets people sign in, if an identity provider is configured.
func (srv *Server) openPeople(ctx context.Context, keys *apikey.Options, auth *httpauth.Options) (err error) {
	if len(srv.config.Identity) == 0 {
		return nil
	}
	o := srv.config.IdentityOptions(srv.secrets)
	o.Client, o.OnLogin, o.Audit, o.Interval, o.Log = srv.issuerClient(), srv.auditLogin, srv.auditAdmin, srv.keysMaxAge(), srv.log
	o.OnBlock = login.EndOf
	if srv.people, err = identity.Open(ctx, srv.store, o); err == nil {
		keys.People, auth.People = srv.people, srv.people
	}
	return err
}

// exchangeTokens lets upstreams use the sign-ins of people.
func (srv *Server) exchangeTokens() {
	if srv.people != nil {
		srv.logins.WithExchange(exchange.Options{Providers: srv.people.Providers(), Check: srv.keys.CheckID, SignIn: srv.config.PublicURL + signin.Path})
	}
}

// oauthRoutes publish which issuers' tokens are accepted.
func (srv *Server) oauthRoutes() []principal.Route {
	if srv.tokens == nil {
		return nil
	}
	return []principal.Route{
		{Pattern: jwt.Path, Scope: principal.Open, AnyOrigin: true, Body: principal.NoBody, Handler: srv.tokens},
		{Pattern: jwt.Path + "/mcp", Scope: principal.Open, AnyOrigin: true, Body: principal.NoBody, Handler: srv.tokens},
	}
}
