package server

import (
	"net/http"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/core/principal"
)

// addIssuers accepts tokens of the configured issuers.
func (srv *Server) addIssuers(o *httpauth.Options) {
	if len(srv.config.Issuers) == 0 {
		return
	}
	from := srv.outbound()
	from.Loopback = true // issuers are configured by the owner and may be on this machine
	client := &http.Client{Transport: from.Transport()}
	srv.tokens = jwt.New(srv.config.TokenIssuers(), client)
	o.Tokens = srv.tokens
}

// oauthRoutes publish which issuers' tokens are accepted.
func (srv *Server) oauthRoutes() []principal.Route {
	if srv.tokens == nil {
		return nil
	}
	return []principal.Route{
		{Pattern: jwt.Path, Handler: srv.tokens},
		{Pattern: jwt.Path + "/mcp", Handler: srv.tokens},
	}
}
