package api

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Kinds of APIs.
const (
	OpenAPI = "openapi" // a document of OpenAPI 3 or Swagger 2
	Command = "command" // programs of this machine
)

// IsKind reports whether a transport of that name is an API.
func IsKind(name string) bool { return name == OpenAPI || name == Command }

// Settings are the configuration of an API. The zero value is no API.
type Settings struct {
	Kind   string // one of the kinds above
	Source string // file or URL of its description

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
	return []*string{&s.Source, &s.BaseURL, &s.CertFile, &s.KeyFile}
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
	case (s.CertFile == "") != (s.KeyFile == ""):
		return fmt.Errorf("cert_file and key_file belong together")
	case s.Password != "" && s.User == "":
		return fmt.Errorf("password without a user")
	}
	if err := checkBaseURL(s.BaseURL); err != nil {
		return err
	}
	for _, pattern := range slices.Concat(s.Include, s.Exclude) {
		kind, text, ok := strings.Cut(pattern, ":")
		if !ok || text == "" || !slices.Contains([]string{"tag", "path", "method", "operation"}, kind) {
			return fmt.Errorf("%q selects no operations: write tag:NAME, path:PATTERN, method:NAME or operation:PATTERN", pattern)
		}
	}
	return nil
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
