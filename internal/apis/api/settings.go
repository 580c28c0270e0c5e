package api

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

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
	Kind   string // one of the kinds above
	Source string // file or URL of its description; of GraphQL and gRPC the service itself

	// SchemaFile has the description of a GraphQL or gRPC service that does not give it;
	// empty: the service is asked.
	SchemaFile string

	Commands map[string]CommandTool // of the kind Command: its tools by name

	BaseURL   string            // of the service; empty: the description says it
	Variables map[string]string // in the URLs of the description's servers
	Hosts     []string          // that get the credentials too; HOST or HOST:PORT

	// Include and Exclude select operations: tag:NAME, path:PATTERN, method:NAME or
	// operation:PATTERN. Without Include all operations are offered that are not excluded.
	Include []string
	Exclude []string

	Query    map[string]string // sent with every request; values may be secrets
	Cookies  map[string]string // the same as cookies
	User     string            // of basic authentication
	Password string

	CertFile string // client certificate for mutual TLS, PEM
	KeyFile  string

	// IdempotencyHeader is sent with a new value with every call that is not safe to
	// repeat, which makes it safe; empty: none.
	IdempotencyHeader string
	// Reload is how often a description at a URL is read again; zero means an hour, less
	// than zero never.
	Reload time.Duration
}

// IsZero reports whether there is no API.
func (s Settings) IsZero() bool { return s.Kind == "" }

// Equal reports whether nothing differs.
func (s Settings) Equal(other Settings) bool { return reflect.DeepEqual(s, other) }

// Clone is a deep copy.
func (s Settings) Clone() Settings {
	s.Variables, s.Query, s.Cookies = maps.Clone(s.Variables), maps.Clone(s.Query), maps.Clone(s.Cookies)
	s.Hosts = slices.Clone(s.Hosts)
	s.Include, s.Exclude = slices.Clone(s.Include), slices.Clone(s.Exclude)
	s.Commands = maps.Clone(s.Commands)
	for name, c := range s.Commands {
		s.Commands[name] = c.clone()
	}
	return s
}

// Secrets are the texts that may be secrets or refer to one, to be replaced in place.
func (s *Settings) Secrets(replace func(text string) (string, error)) (err error) {
	tables := []map[string]string{s.Query, s.Cookies}
	for _, c := range s.Commands {
		tables = append(tables, c.Env)
	}
	for _, table := range tables {
		for key, text := range table {
			if table[key], err = replace(text); err != nil {
				return err
			}
		}
	}
	if s.User, err = replace(s.User); err != nil {
		return err
	}
	s.Password, err = replace(s.Password)
	return err
}

// Texts are the other texts in which variables are replaced.
func (s *Settings) Texts() []*string {
	return []*string{&s.Source, &s.SchemaFile, &s.BaseURL, &s.CertFile, &s.KeyFile}
}

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
