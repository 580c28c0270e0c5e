package clientfile

import (
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

// Launch is how a client reaches a server: it starts a command, or it connects to a
// URL.
type Launch struct {
	Command string
	Args    []string
	URL     string
	Headers map[string]string
}

// The entries, whose fields are in the order in which clients write them.
type (
	commandEntry struct {
		Type    string   `json:"type,omitempty"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	localEntry struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}
	urlEntry struct {
		Type      string            `json:"type,omitempty"`
		URL       string            `json:"url,omitempty"`
		ServerURL string            `json:"serverUrl,omitempty"`
		HTTPURL   string            `json:"httpUrl,omitempty"`
		Headers   map[string]string `json:"headers,omitempty"`
		Enabled   bool              `json:"enabled,omitempty"`
	}
	codexURL struct {
		URL     string            `json:"url"`
		Headers map[string]string `json:"http_headers,omitempty"`
	}
	extension struct {
		Enabled     bool              `json:"enabled"`
		Type        string            `json:"type"`
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Command     string            `json:"cmd,omitempty"`
		Args        []string          `json:"args,omitempty"`
		URI         string            `json:"uri,omitempty"`
		Headers     map[string]string `json:"headers,omitempty"`
		Timeout     int               `json:"timeout"`
	}
)

func stdioPlain(l Launch) any { return commandEntry{Command: l.Command, Args: l.Args} }

func stdioTyped(l Launch) any {
	return commandEntry{Type: "stdio", Command: l.Command, Args: l.Args}
}

// entryOf returns entries of clients that write the URL under a key, with a type if
// they have one: without it, several of them take it for the former transport.
func entryOf(command func(Launch) any, kind, key string) func(Launch) (any, error) {
	return func(l Launch) (any, error) {
		if l.URL == "" {
			return command(l), nil
		}
		e := urlEntry{Type: kind, Headers: l.Headers}
		switch key {
		case "serverUrl":
			e.ServerURL = l.URL
		case "httpUrl":
			e.HTTPURL = l.URL
		default:
			e.URL = l.URL
		}
		return e, nil
	}
}

func onlyCommand(l Launch) (any, error) {
	if l.URL != "" {
		return nil, fault.New(fault.InvalidParams, "Claude Desktop starts commands only").
			WithHint("omit --url; or add the URL in its settings, under Connectors")
	}
	return stdioPlain(l), nil
}

func opencodeEntry(l Launch) (any, error) {
	if l.URL != "" {
		return urlEntry{Type: "remote", URL: l.URL, Headers: l.Headers, Enabled: true}, nil
	}
	return localEntry{"local", append([]string{l.Command}, l.Args...), true}, nil
}

func codexEntry(l Launch) (any, error) {
	if l.URL != "" {
		return codexURL{l.URL, l.Headers}, nil
	}
	return stdioPlain(l), nil
}

func gooseEntry(l Launch) (any, error) {
	e := extension{Enabled: true, Type: "stdio", Name: "luanette", Description: "All your tool servers", Command: l.Command, Args: l.Args, Timeout: 300}
	if l.URL != "" {
		e.Type, e.URI, e.Headers = "streamable_http", l.URL, l.Headers
	}
	return e, nil
}

func claudeAdd(name string, l Launch) []string {
	if l.URL == "" {
		return append([]string{"claude", "mcp", "add", "-s", "user", name, "--", l.Command}, l.Args...)
	}
	argv := []string{"claude", "mcp", "add", "-s", "user", "-t", "http", name, l.URL}
	for _, key := range slices.Sorted(maps.Keys(l.Headers)) {
		argv = append(argv, "-H", key+": "+l.Headers[key])
	}
	return argv
}

// codexAdd leaves headers to an edit, which codex has no flag for.
func codexAdd(name string, l Launch) []string {
	switch {
	case l.URL == "":
		return append([]string{"codex", "mcp", "add", name, "--", l.Command}, l.Args...)
	case len(l.Headers) > 0:
		return nil
	default:
		return []string{"codex", "mcp", "add", name, "--url", l.URL}
	}
}

func geminiAdd(name string, l Launch) []string {
	if l.URL == "" {
		return append([]string{"gemini", "mcp", "add", "-s", "user", name, l.Command}, l.Args...)
	}
	argv := []string{"gemini", "mcp", "add", "-s", "user", "-t", "http"}
	for _, key := range slices.Sorted(maps.Keys(l.Headers)) {
		argv = append(argv, "-H", key+": "+l.Headers[key])
	}
	return append(argv, name, l.URL)
}
