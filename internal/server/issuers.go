package server

import (
	"net/http"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/core/principal"
)

// addIssuers lets tokens of the configured issuers in.
func (srv *Server) addIssuers(o *httpauth.Options) {
	if len(srv.config.Issuers) == 0 {
		return
	}
	from := srv.outbound()
	from.Loopback = true // the owner names issuers, which may be on this machine
	client := &http.Client{Transport: from.Transport()}
	srv.tokens = jwt.New(srv.config.TokenIssuers(), client)
	o.Tokens = srv.tokens
}

// oauthRoutes tell clients who makes the tokens that we take.
func (srv *Server) oauthRoutes() []principal.Route {
	if srv.tokens == nil {
		return nil
	}
	return []principal.Route{
		{Pattern: jwt.Path, Handler: srv.tokens},
		{Pattern: jwt.Path + "/mcp", Handler: srv.tokens},
	}
}
