package config

import (
	"net/url"

	"github.com/luanette/luanette/internal/base/fault"
)

// Search configures how tools are found.
type Search struct {
	Learn      bool       `toml:"learn" help:"learn from the tools that a caller calls after a search, for this caller and its organization; false also erases what was learned; docs/search.md"`
	Embeddings Embeddings `toml:"embeddings"`
}

// Embeddings configures a model that compares tools and searches by their meaning.
type Embeddings struct {
	URL         string `toml:"url" trust:"needed" secret:"url" help:"base URL of an endpoint with OpenAI's embeddings API, such as http://127.0.0.1:11434/v1; texts of tools and searches are sent to it; empty means that searches compare words only"`
	Model       string `toml:"model" help:"name of the model at the endpoint"`
	Key         string `toml:"key" trust:"needed" secret:"all" help:"the key, best as a reference: ${env:NAME}, ${file:PATH} or ${keyring:SERVICE/NAME}; empty means none"`
	QueryPrefix string `toml:"query_prefix" help:"what the model expects before a search, such as 'search_query: '"`
	ToolPrefix  string `toml:"tool_prefix" help:"what the model expects before the text of a tool, such as 'search_document: '"`
}

// Host returns the host of the endpoint.
func (c Embeddings) Host() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func defaultSearch() Search { return Search{Learn: true} }

func (c Search) check() error {
	e := c.Embeddings
	if e.URL == "" {
		return nil
	}
	if u, err := url.Parse(e.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fault.New(fault.Config, "search.embeddings.url: %q is no http address", e.URL).WithHint("give one such as http://127.0.0.1:11434/v1")
	}
	if e.Model == "" {
		return fault.New(fault.Config, "search.embeddings.model: missing").WithHint("give the name of the model at the endpoint")
	}
	return nil
}
