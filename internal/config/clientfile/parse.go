// Package clientfile knows the configuration files of MCP clients: where they are, how
// they list servers, and how to change them without touching anything else.
package clientfile

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Server is one server of a client's file.
type Server struct {
	Key      string        // its name in the file
	Path     []string      // where the file has it
	Spec     upstream.Spec // its variables are not replaced yet
	Disabled bool
	Project  string   // the folder for which Claude Code uses it; "" means everywhere
	Inputs   []Input  // what the client asks a person for
	Warnings []string // what is not supported; without values
}

// Source is how to read a file.
type Source struct {
	Path      string // of the file
	Syntax    Syntax
	Keys      []string // where the servers are; nil finds them
	Variables Variables
	Home      string
	Project   string // the folder of the project the file belongs to, or ""
}

// SourceOf returns how to read a file that may belong to any client.
func SourceOf(path, home string) Source {
	s := Source{Path: path, Syntax: SyntaxOf(path), Home: home}
	folder := filepath.Dir(path)
	switch name := filepath.Base(folder); {
	case slices.Contains([]string{".vscode", ".cursor", ".roo", ".gemini", ".kiro", ".amazonq"}, name):
		s.Project = filepath.Dir(folder)
	case filepath.Base(path) == ".mcp.json":
		s.Project = folder
	}
	return s
}

// places are where files have their servers, in the order in which they are tried.
var places = [][]string{{"mcpServers"}, {"servers"}, {"context_servers"}, {"mcp_servers"}, {"mcp", "servers"}, {"mcp"}, {"extensions"}}

// Parse reads the servers of a file, in its order.
func Parse(text []byte, source Source) ([]Server, error) {
	document, err := source.Syntax.Decode(text)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "read servers of %s", source.Path).WithHint("correct the file; no program can read it as it is")
	}
	keys := source.Keys
	if keys == nil {
		at := slices.IndexFunc(places, func(place []string) bool { return listAt(document, place) != nil })
		if at < 0 && projectsOf(document) == nil {
			return nil, fault.New(fault.Config, "read servers: %s has no object mcpServers or servers", source.Path).
				WithHint(`write {"mcpServers": {"name": {"command": "…"}}} or {"mcpServers": {"name": {"url": "…"}}}`)
		}
		if at >= 0 {
			keys = places[at]
		}
		if at >= 0 && slices.Equal(keys, []string{"mcp"}) {
			source.Variables = OpenCode
		}
	}
	asked := inputsOf(document)
	servers := source.serversAt(document, keys, asked)
	rawjson.Each(projectsOf(document), func(folder string, project json.RawMessage) bool {
		inner := source
		inner.Project = folder
		for _, s := range inner.serversAt(project, []string{"mcpServers"}, asked) {
			s.Path, s.Project = append([]string{"projects", folder}, s.Path...), folder
			servers = append(servers, s)
		}
		return true
	})
	return servers, nil
}

// projectsOf returns the projects of Claude Code's own file.
func projectsOf(document json.RawMessage) json.RawMessage {
	projects, _ := rawjson.Get(document, "projects")
	if !rawjson.IsObject(projects) {
		return nil
	}
	return projects
}

// listAt returns the object or list at a path, or nil.
func listAt(document json.RawMessage, path []string) json.RawMessage {
	for _, key := range path {
		document, _ = rawjson.Get(document, key)
	}
	if len(path) == 0 || document == nil || document[0] != '{' && document[0] != '[' {
		return nil
	}
	if items, _ := rawjson.Items(document); document[0] == '[' && (path[0] != "mcpServers" || len(items) == 0) {
		return nil // only Continue has a list, of servers with names
	}
	return document
}

func (s Source) serversAt(document json.RawMessage, keys []string, asked []Input) (servers []Server) {
	list := listAt(document, keys)
	if items, ok := rawjson.Items(list); ok && list != nil {
		for _, item := range items {
			if name, _ := rawjson.GetText(item, "name"); name != "" {
				servers = s.add(servers, append(slices.Clone(keys), name), item, asked)
			}
		}
		return servers
	}
	if s.Keys != nil && slices.Equal(keys, []string{"mcp"}) { // opencode, in either of its shapes
		if inner := listAt(document, []string{"mcp", "servers"}); inner != nil {
			keys, list = []string{"mcp", "servers"}, inner
		}
	}
	rawjson.Each(list, func(name string, entry json.RawMessage) bool {
		servers = s.add(servers, append(slices.Clone(keys), name), entry, asked)
		return true
	})
	return servers
}

// add reads one entry.
func (s Source) add(servers []Server, path []string, entry json.RawMessage, asked []Input) []Server {
	server := Server{Key: path[len(path)-1], Path: path}
	e := entryReader{raw: entry, warns: &server.Warnings, forms: forms{
		variables: s.Variables, home: s.Home, project: s.Project, folder: filepath.Dir(s.Path), inputs: &server.Inputs,
	}}
	if e.foreign() {
		return servers
	}
	server.Disabled = e.disabled()
	server.Spec = e.spec(server.Key)
	for i, input := range server.Inputs {
		if at := slices.IndexFunc(asked, func(a Input) bool { return a.ID == input.ID }); at >= 0 {
			server.Inputs[i] = asked[at]
		}
	}
	return append(servers, server)
}

// inputsOf reads what a file of VS Code says about its inputs.
func inputsOf(document json.RawMessage) (inputs []Input) {
	raw, ok := rawjson.Get(document, "inputs")
	if inner, nested := rawjson.Get(document, "mcp"); !ok && nested {
		raw, ok = rawjson.Get(inner, "inputs")
	}
	items, isList := rawjson.Items(raw)
	if !ok || !isList {
		return nil
	}
	for _, item := range items {
		var input struct {
			ID, Description, Default string
			Password                 bool
			Options                  []string
		}
		if json.Unmarshal(item, &input) == nil && input.ID != "" {
			inputs = append(inputs, Input{input.ID, input.Description, input.Password, input.Default, input.Options})
		}
	}
	return inputs
}

// Specs returns the enabled servers with their variables replaced. Warnings name what
// is not supported; they contain no values.
func Specs(servers []Server, getenv func(string) (string, bool)) (specs []upstream.Spec, warnings []string) {
	for _, s := range servers {
		if s.Disabled || s.Project != "" {
			continue
		}
		warn := func(format string, args ...any) {
			warnings = append(warnings, fmt.Sprintf("server %q: "+format, append([]any{s.Key}, args...)...))
		}
		for _, text := range s.Warnings {
			warn("%s", text)
		}
		spec, unset := s.Spec.Expand(getenv)
		for _, text := range unset {
			warn("%s", strings.TrimPrefix(text, spec.Name+": "))
		}
		if slices.ContainsFunc(specs, func(other upstream.Spec) bool { return other.Name == spec.Name }) {
			warn("another server has the name %s too, this one is ignored", spec.Name)
			continue
		}
		if err := spec.Validate(); err != nil { // not an error: the file belongs to another program
			warn("it is ignored: %v", err)
			continue
		}
		specs = append(specs, spec)
	}
	return specs, warnings
}
