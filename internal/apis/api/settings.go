package api

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/netguard"
)

// Kinds of APIs.
const (
	OpenAPI = "openapi" // a document of OpenAPI 3 or Swagger 2
	GraphQL = "graphql"
	GRPC    = "grpc"
	Command = "command" // programs of this machine
)

// IsKind reports whether a transport of that name is an API.
func IsKind(name string) bool {
	return slices.Contains([]string{OpenAPI, GraphQL, GRPC, Command}, name)
}

// Settings are the configuration of an API. The zero value is no API.
type Settings struct {
	Kind     string                 `toml:"-" json:"-"`              // one of the kinds above
	Source   string                 `toml:"-" json:"-" vars:"plain"` // file or URL of its description; of GraphQL and gRPC the service itself
	Commands map[string]CommandTool `toml:"-" json:"-"`              // of the kind Command: its tools by name

	SchemaFile        string            `toml:"schema_file,omitempty" vars:"plain" file:"yes" help:"file with the schema of a GraphQL service (SDL, or the answer to introspection) or the descriptor set of a gRPC service, instead of asking the service"`
	BaseURL           string            `toml:"base_url,omitempty" vars:"plain" help:"URL that the API's paths are added to, instead of the server that the document names"`
	Variables         map[string]string `toml:"variables,omitempty" help:"values of the variables in the URLs of the document's servers"`
	Hosts             []string          `toml:"hosts,omitempty" help:"further hosts of the API that may get its credentials"`
	Include           []string          `toml:"include,omitempty" help:"only these operations are tools: tag:NAME, path:PATTERN, method:NAME or operation:PATTERN; * stands for any text"`
	Exclude           []string          `toml:"exclude,omitempty" help:"operations that are not tools, written like include"`
	Query             map[string]string `toml:"query,omitempty" vars:"secret" secret:"values" help:"query parameters sent with every request, such as a key"`
	Cookies           map[string]string `toml:"cookies,omitempty" vars:"secret" secret:"values" help:"cookies sent with every request"`
	User              string            `toml:"user,omitempty" vars:"secret" help:"user of basic authentication"`
	Password          string            `toml:"password,omitempty" vars:"secret" secret:"all" help:"its password, best as a reference such as ${env:NAME}"`
	CertFile          string            `toml:"cert_file,omitempty" vars:"plain" file:"yes" help:"PEM file with a client certificate, for mutual TLS"`
	KeyFile           string            `toml:"key_file,omitempty" vars:"plain" file:"yes" help:"PEM file with its private key"`
	IdempotencyHeader string            `toml:"idempotency_header,omitempty" json:"Idempotency" help:"header with a new value per call, such as Idempotency-Key, with which the API recognizes repeated requests"`
	Reload            duration.Duration `toml:"reload,omitempty" help:"how often a document at a URL is read again, and a service asked for its schema (1h); less than 0 never"`
}

// IsZero reports whether there is no API.
func (s Settings) IsZero() bool { return s.Kind == "" }

// Target is the description's place without what may be a secret in it.
func (s Settings) Target() string {
	if s.Kind == Command {
		return strings.Join(slices.Sorted(maps.Keys(s.Commands)), ", ")
	}
	if !IsURL(s.Source) {
		return s.Source
	}
	u, err := url.Parse(s.Source)
	if err != nil {
		return "?"
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.Redacted()
}

// withScheme adds a scheme to HOST:PORT.
func withScheme(address string) string {
	host, _, err := net.SplitHostPort(address)
	switch {
	case err != nil || host == "" || IsURL(address):
		return address
	case host == "localhost" || netguard.IsLoopback(host):
		return "http://" + address
	}
	return "https://" + address
}

// Endpoint is the URL of a gRPC service: https with TLS, http without. An address without
// a scheme is used without TLS only on this machine.
func (s Settings) Endpoint() (*url.URL, error) {
	text := withScheme(s.Source)
	u, err := url.Parse(text)
	if err != nil || !IsURL(text) || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/")+u.RawQuery != "" {
		return nil, fmt.Errorf("grpc is not HOST:PORT, https://HOST:PORT or http://HOST:PORT")
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	u.Path = ""
	return u, nil
}

// IsURL reports whether a source is a URL and no file.
func IsURL(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}

// Validate reports what is wrong with the settings.
func (s Settings) Validate() error {
	switch {
	case s.Kind == Command:
		return s.commandsProblem()
	case s.Source == "":
		return fmt.Errorf("%s names no description", s.Kind)
	case s.Kind == GraphQL && !IsURL(s.Source):
		return fmt.Errorf("graphql is not an http or https url")
	case s.Kind == OpenAPI && s.SchemaFile != "":
		return fmt.Errorf("schema_file is for graphql and grpc: openapi names the document itself")
	case s.Kind != OpenAPI && (s.BaseURL != "" || len(s.Variables) > 0):
		return fmt.Errorf("base_url and variables are for openapi: %s is the address already", s.Kind)
	case s.Kind == GRPC && len(s.Query)+len(s.Cookies)+len(s.Hosts)+len(s.IdempotencyHeader) > 0:
		return fmt.Errorf("query, cookies, hosts and idempotency_header are for HTTP: gRPC has headers")
	case (s.CertFile == "") != (s.KeyFile == ""):
		return fmt.Errorf("cert_file and key_file belong together")
	case s.Password != "" && s.User == "":
		return fmt.Errorf("password without a user")
	}
	if err := checkBaseURL(s.BaseURL); err != nil {
		return err
	}
	if s.Kind == GRPC {
		if _, err := s.Endpoint(); err != nil {
			return err
		}
	}
	return s.checkSelectors()
}

func checkBaseURL(base string) error {
	if base == "" {
		return nil
	}
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return fmt.Errorf("base_url is not an http or https url without a user")
	}
	return nil
}
