// Package registry reads the official MCP registry: it finds servers, and says how to
// start or reach them.
package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// DefaultURL is the official registry.
const DefaultURL = "https://registry.modelcontextprotocol.io"

// Limits of what is read.
const (
	pageSize   = 100
	maxPages   = 10
	maxBody    = 8 << 20
	minSearch  = 3 // the registry refuses shorter words
	maxMessage = 300
)

// Client reads a registry.
type Client struct {
	URL  string
	HTTP *http.Client
}

// Listing is a version of a server, and what the registry says about it.
type Listing struct {
	Server Server `json:"server"`
	Meta   struct {
		Official Official `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

// Official is what the registry adds to a server.
type Official struct {
	Status        string `json:"status"` // active, deprecated or deleted
	StatusMessage string `json:"statusMessage"`
	IsLatest      bool   `json:"isLatest"`
}

// Status returns "" for an active version.
func (l Listing) Status() string {
	if l.Meta.Official.Status == "active" {
		return ""
	}
	return l.Meta.Official.Status
}

// Search returns the latest versions of servers that have all words in their name,
// title or description, and one of them in their name: the registry itself searches
// names only.
func (c Client) Search(ctx context.Context, words []string) (found []Listing, err error) {
	seen := map[string]bool{}
	asked := false
	for _, word := range words {
		if len(word) < minSearch {
			continue
		}
		asked = true
		named, err := c.named(ctx, word)
		if err != nil {
			return nil, err
		}
		for _, l := range named {
			if !seen[l.Server.Name] && l.Status() != "deleted" && l.has(words) {
				seen[l.Server.Name] = true
				found = append(found, l)
			}
		}
	}
	if !asked {
		return nil, fault.New(fault.InvalidParams, "search the registry for %q", strings.Join(words, " ")).
			WithHint("one of the words must have at least %d letters", minSearch)
	}
	return found, nil
}

// named returns the latest versions of servers that have a word in their name.
func (c Client) named(ctx context.Context, word string) (found []Listing, err error) {
	query := url.Values{"search": {word}, "version": {"latest"}, "limit": {fmt.Sprint(pageSize)}}
	for range maxPages {
		var page struct {
			Servers  []Listing
			Metadata struct{ NextCursor string }
		}
		if err := c.get(ctx, "/v0.1/servers?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		found = append(found, page.Servers...)
		if page.Metadata.NextCursor == "" {
			break
		}
		query.Set("cursor", page.Metadata.NextCursor)
	}
	return found, nil
}

func (l Listing) has(words []string) bool {
	text := strings.ToLower(strings.Join([]string{l.Server.Name, l.Server.Title, l.Server.Description}, "\n"))
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, strings.ToLower(word)) })
}

// Get returns one version of a server; "" is the latest.
func (c Client) Get(ctx context.Context, name, version string) (l Listing, err error) {
	path := "/v0.1/servers/" + url.PathEscape(name) + "/versions/" + url.PathEscape(cmp.Or(version, "latest"))
	err = c.get(ctx, path, &l)
	if fault.CodeOf(err) == fault.NotFound {
		return l, fault.New(fault.NotFound, "the registry has no server %q%s", name, ofVersion(version)).
			WithHint("names look like io.github.owner/server; find one with `luanette registry search WORDS`")
	}
	if err == nil && l.Server.Name == "" {
		err = fault.New(fault.Upstream, "the registry's response for %s has no server", name)
	}
	return l, err
}

func ofVersion(version string) string {
	if version == "" {
		return ""
	}
	return " of version " + version
}

// get requests a path and decodes the response.
func (c Client) get(ctx context.Context, path string, into any) error {
	base := strings.TrimRight(cmp.Or(c.URL, DefaultURL), "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return fault.Wrap(fault.Config, err, "registry.url")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "ask the registry").WithHint("it is at %s; registry.url names another one", base)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "ask the registry")
	case resp.StatusCode == http.StatusNotFound:
		return fault.New(fault.NotFound, "the registry has no such server")
	case resp.StatusCode == http.StatusUnprocessableEntity || resp.StatusCode == http.StatusBadRequest:
		return fault.New(fault.InvalidParams, "the registry refuses the request: %s", problem(body))
	case resp.StatusCode != http.StatusOK:
		return fault.New(fault.Upstream, "the registry answered %s: %s", resp.Status, problem(body)).WithHint("try again later; registry.url names another one")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fault.Wrap(fault.Upstream, errors.Unwrap(err), "%s is not a registry: its response is not what was expected", base).
			WithHint("registry.url is the base URL of a registry, such as %s", DefaultURL)
	}
	return nil
}

// problem returns the text of an error response.
func problem(body []byte) string {
	var p struct {
		Title, Detail string
		Errors        []struct{ Message string }
	}
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &p) == nil {
		text = cmp.Or(p.Detail, p.Title, text)
		for _, e := range p.Errors {
			text += "; " + e.Message
		}
	}
	return text[:min(len(text), maxMessage)]
}

// Server is a server.json.
type Server struct {
	Name        string      `json:"name"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Version     string      `json:"version"`
	WebsiteURL  string      `json:"websiteUrl"`
	Packages    []Package   `json:"packages"`
	Remotes     []Transport `json:"remotes"`
}

// Package is a package that starts the server.
type Package struct {
	RegistryType         string     `json:"registryType"` // npm, pypi, oci, nuget, mcpb or cargo
	Identifier           string     `json:"identifier"`
	Version              string     `json:"version"`
	RuntimeHint          string     `json:"runtimeHint"`
	RuntimeArguments     []Argument `json:"runtimeArguments"`
	PackageArguments     []Argument `json:"packageArguments"`
	EnvironmentVariables []Variable `json:"environmentVariables"`
	Transport            Transport  `json:"transport"`
}

// Transport is how a server is reached.
type Transport struct {
	Type      string           `json:"type"` // stdio, streamable-http or sse
	URL       string           `json:"url"`
	Headers   []Variable       `json:"headers"`
	Variables map[string]Input `json:"variables"`
}

// Input is a value that is fixed, or that a person gives.
type Input struct {
	Value       string           `json:"value"` // fixed; {x} is a variable
	Default     string           `json:"default"`
	Description string           `json:"description"`
	IsRequired  bool             `json:"isRequired"`
	IsSecret    bool             `json:"isSecret"`
	Choices     []string         `json:"choices"`
	Variables   map[string]Input `json:"variables"`
}

// Variable is an environment variable or a header.
type Variable struct {
	Input
	Name string `json:"name"`
}

// Argument is an argument of a command.
type Argument struct {
	Input
	Type      string `json:"type"` // positional or named
	Name      string `json:"name"` // with its dashes
	ValueHint string `json:"valueHint"`
}
