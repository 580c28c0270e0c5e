// Package authserver is a small OAuth authorization server for clients of this server
// that expect one, as the MCP specification describes: authorization code with PKCE,
// refresh tokens that rotate, and device codes. Who the person is, an identity provider
// says (package signin). Tokens are opaque and end at once when they are revoked.
package authserver

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Options are the options of a Server.
type Options struct {
	Issuer   string // the public address of this server, without a slash at the end
	People   *people.Store
	Browsers netguard.Browsers
	// Documents fetches the metadata documents of clients. Anybody can make it fetch any
	// address, so it must connect to the public internet only.
	Documents *http.Client
	// SignIn verifies the identity assertion grants of providers.
	SignIn *signin.Service
	// Registration allows clients to register themselves (RFC 7591).
	Registration bool
	// OnGrant is called after people allowed or revoked something. It may be nil.
	OnGrant func(ctx context.Context, action, subject string, detail []byte)
	Now     func() time.Time
	Log     *slog.Logger
}

// Server is the authorization server. It is safe for concurrent use. It has everything of
// a people.Store, and adds what clients do for people.
type Server struct {
	*people.Store
	db        *db.DB
	options   Options
	documents documentCache
	attempts  attempts
}

// Open creates the tables.
func Open(ctx context.Context, store *db.DB, o Options) (*Server, error) {
	if err := store.Migrate(ctx, "authserver", Migrations); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnGrant == nil {
		o.OnGrant = func(context.Context, string, string, []byte) {}
	}
	return &Server{Store: o.People, db: store, options: o, attempts: attempts{db: store}}, nil
}

// Paths of the endpoints.
const (
	MetadataPath  = "/.well-known/oauth-authorization-server"
	authorizePath = "/oauth/authorize"
	consentPath   = "/oauth/consent"
	tokenPath     = "/oauth/token"
	revokePath    = "/oauth/revoke"
	registerPath  = "/oauth/register"
	devicePath    = "/oauth/device"
	DevicePage    = "/device" // where people type in the code of a device
)

// Routes are the package's routes. They authenticate requests themselves: by cookie, or by
// the code or token in them.
func (s *Server) Routes() []principal.Route {
	route := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Open, Write: serve, Refuse: s.refuseProgram, Authenticates: true}
	}
	page := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Open, Write: serve, Refuse: s.refusePerson, Authenticates: true}
	}
	return []principal.Route{
		{Pattern: "GET " + MetadataPath, Scope: principal.Open, AnyOrigin: true, Handler: http.HandlerFunc(s.metadata), Authenticates: true},
		page("GET "+authorizePath, s.authorize),
		page("GET "+consentPath, s.showConsent),
		page("POST "+consentPath, s.decideConsent).Reads(principal.Form),
		route("POST "+tokenPath, s.token).Reads(principal.Form),
		route("POST "+revokePath, s.revoke).Reads(principal.Form),
		route("POST "+registerPath, s.register).Reads("the metadata of a client, in JSON"),
		route("POST "+devicePath, s.device).Reads(principal.Form),
		page("GET "+DevicePage, s.showDevice),
		page("POST "+DevicePage, s.decideDevice).Reads(principal.Form),
		{Pattern: "GET /api/v1/me/grants", Scope: principal.Open, Write: s.listGrants, Refuse: s.refuseProgram},
		{Pattern: "DELETE /api/v1/me/grants/{id}", Scope: principal.Open, Write: s.deleteGrant, Refuse: s.refuseProgram},
	}
}

// metadata describes the server (RFC 8414), to pages of any origin.
func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	at := s.options.Issuer
	document := map[string]any{
		"issuer": at, "authorization_endpoint": at + authorizePath, "token_endpoint": at + tokenPath,
		"revocation_endpoint": at + revokePath, "device_authorization_endpoint": at + devicePath,
		"response_types_supported": []string{"code"}, "response_modes_supported": []string{"query"},
		"grant_types_supported":                          []string{grantCode, grantRefresh, grantDevice},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"scopes_supported":                               principal.Scopes,
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          true,
		"service_documentation":                          "https://github.com/luanette/luanette/blob/main/docs/people.md",
	}
	if s.options.Registration {
		document["registration_endpoint"] = at + registerPath
	}
	if s.options.SignIn.AcceptsAssertions() {
		document["grant_types_supported"] = []string{grantCode, grantRefresh, grantDevice, grantAssertion}
		document["token_endpoint_auth_methods_supported"] = []string{"none", "client_secret_basic", "client_secret_post"}
		document["authorization_grant_profiles_supported"] = []string{"urn:ietf:params:oauth:grant-profile:id-jag"}
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "max-age=300")
	httpjson.JSON(w, http.StatusOK, document)
}

// Resource is what tokens are for.
func (s *Server) Resource() string { return s.options.Issuer + "/mcp" }

// resource returns the resource that a client asks for, and whether it is ours. A client
// that names none means this server.
func (s *Server) resource(wanted []string) (string, bool) {
	for _, name := range wanted {
		if rest, ours := strings.CutPrefix(name, s.options.Issuer); !ours || rest != "" && rest != "/" && rest != "/mcp" && !strings.HasPrefix(rest, "/mcp/") {
			return "", false
		}
	}
	return s.Resource(), true
}

// scopes returns the scopes that a client asks for, without those that do not exist. A
// client that names none gets those for MCP.
func scopes(wanted string) ([]string, bool) {
	words := strings.Fields(wanted)
	if len(words) == 0 {
		return []string{string(principal.MCP)}, true
	}
	var known []string
	for _, word := range words {
		if slices.Contains(principal.Scopes, principal.Scope(word)) && !slices.Contains(known, word) {
			known = append(known, word)
		}
	}
	return known, len(known) > 0
}

// Token returns whom a client acts for with a token, with the rights that the person gave
// it and has now. The error is fault.Denied if the token is not good.
func (s *Server) Token(ctx context.Context, token string) (principal.Principal, error) {
	g, expires, err := s.find(ctx, token)
	if err != nil {
		return principal.Anonymous(), err
	}
	if _, ours := s.resource([]string{g.resource}); !ours {
		return principal.Anonymous(), errToken
	}
	who, err := s.Principal(ctx, g.person, g.org)
	if err != nil {
		return who, err
	}
	who.Scopes, who.Grant, who.Client, who.Expires = people.Limit(g.principalScopes(), who), g.id, g.name, expires
	return who, nil
}

// Current returns a stored principal of a person with the rights of now. What a client
// started ends when the person takes its grant back.
func (s *Server) Current(ctx context.Context, was principal.Principal) (principal.Principal, error) {
	if was.Grant != "" {
		if err := s.checkGrant(ctx, was.Grant); err != nil {
			return principal.Anonymous(), err
		}
	}
	return s.Store.Current(ctx, was)
}
