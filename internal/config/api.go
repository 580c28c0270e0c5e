package config

import (
	"slices"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/mcp/faultinject"
)

// UpstreamAPI configures an upstream that is an API and no MCP server.
type UpstreamAPI struct {
	SchemaFile  string            `toml:"schema_file,omitempty" help:"file with the schema of a GraphQL service (SDL, or the answer to introspection) or the descriptor set of a gRPC service, instead of asking the service"`
	BaseURL     string            `toml:"base_url,omitempty" help:"URL that the API's paths are added to, instead of the server that the document names"`
	Variables   map[string]string `toml:"variables,omitempty" help:"values of the variables in the URLs of the document's servers"`
	Hosts       []string          `toml:"hosts,omitempty" help:"further hosts of the API that may get its credentials"`
	Include     []string          `toml:"include,omitempty" help:"only these operations are tools: tag:NAME, path:PATTERN, method:NAME or operation:PATTERN; * stands for any text"`
	Exclude     []string          `toml:"exclude,omitempty" help:"operations that are not tools, written like include"`
	Query       map[string]string `toml:"query,omitempty" secret:"values" help:"query parameters sent with every request, such as a key"`
	Cookies     map[string]string `toml:"cookies,omitempty" secret:"values" help:"cookies sent with every request"`
	User        string            `toml:"user,omitempty" help:"user of basic authentication"`
	Password    string            `toml:"password,omitempty" secret:"all" help:"its password, best as a reference such as ${env:NAME}"`
	CertFile    string            `toml:"cert_file,omitempty" help:"PEM file with a client certificate, for mutual TLS"`
	KeyFile     string            `toml:"key_file,omitempty" help:"PEM file with its private key"`
	Idempotency string            `toml:"idempotency_header,omitempty" help:"header with a new value per call, such as Idempotency-Key, with which the API recognizes repeated requests"`
	Reload      Duration          `toml:"reload,omitempty" help:"how often a document at a URL is read again, and a service asked for its schema (1h); less than 0 never"`
}

// apiSettings are the settings of an upstream that is an API.
func (u Upstream) apiSettings() api.Settings {
	var s api.Settings
	switch {
	case u.OpenAPI != "":
		s = api.Settings{Kind: api.OpenAPI, Source: u.OpenAPI}
	case u.GraphQL != "":
		s = api.Settings{Kind: api.GraphQL, Source: u.GraphQL}
	case u.GRPC != "":
		s = api.Settings{Kind: api.GRPC, Source: u.GRPC}
	default:
		return s
	}
	if a := u.API; a != nil {
		s.SchemaFile = a.SchemaFile
		s.BaseURL, s.Variables, s.Hosts, s.Include, s.Exclude = a.BaseURL, a.Variables, a.Hosts, a.Include, a.Exclude
		s.Query, s.Cookies, s.User, s.Password = a.Query, a.Cookies, a.User, a.Password
		s.CertFile, s.KeyFile, s.IdempotencyHeader, s.Reload = a.CertFile, a.KeyFile, a.Idempotency, time.Duration(a.Reload)
	}
	return s
}

// withAPIFiles returns an upstream whose files of the API are found from the working
// folder.
func (l *Loaded) withAPIFiles(u Upstream) Upstream {
	if u.OpenAPI != "" && !api.IsURL(u.OpenAPI) {
		u.OpenAPI = l.beside(u.OpenAPI)
	}
	if u.API != nil {
		moved := *u.API
		for _, file := range []*string{&moved.SchemaFile, &moved.CertFile, &moved.KeyFile} {
			if *file != "" {
				*file = l.beside(*file)
			}
		}
		u.API = &moved
	}
	return u
}

// hidden returns a copy without secrets.
func (a *UpstreamAPI) hidden() *UpstreamAPI {
	if a == nil {
		return nil
	}
	shown := *a
	shown.Query, shown.Cookies, shown.Password = hideValues(a.Query), hideValues(a.Cookies), secret.Shown(a.Password)
	return &shown
}

// places counts in how many ways an upstream says what it is.
func (u Upstream) places() int {
	given := []bool{u.URL != "", u.Command != "", u.OpenAPI != "", u.GraphQL != "", u.GRPC != ""}
	return len(slices.DeleteFunc(given, func(is bool) bool { return !is }))
}

// UpstreamFaults are the faults that calls of an upstream meet.
type UpstreamFaults struct {
	Delay Duration `toml:"delay,omitempty" help:"how long each call is delayed, such as 200ms"`
	Fail  float64  `toml:"fail,omitempty" help:"share of the calls that are answered with an error, from 0 to 1"`
	Drop  float64  `toml:"drop,omitempty" help:"share of the calls during which the connection is lost, from 0 to 1"`
	Seed  int64    `toml:"seed,omitempty" help:"another seed chooses other calls; with the same seed the same calls are chosen"`
}

func (u *UpstreamFaults) settings() faultinject.Faults {
	if u == nil {
		return faultinject.Faults{}
	}
	return faultinject.Faults{Delay: time.Duration(u.Delay), Fail: u.Fail, Drop: u.Drop, Seed: uint64(u.Seed)}
}
