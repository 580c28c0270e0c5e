package setup

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Definition is a server as the configuration file has it, without its secrets.
type Definition struct {
	Namespace string         `json:"namespace"`
	File      string         `json:"file"`
	Place     string         `json:"place"`   // file:line
	Command   string         `json:"command"` // with its arguments, as in a shell; "" if it is no program
	Settings  map[string]any `json:"settings"`
}

// definition shows a server of the configuration file.
func (s *Service) definition(r *http.Request) (any, error) {
	name := r.PathValue("name")
	loaded, err := config.LoadOrNew(s.Sources)
	if err != nil {
		return nil, err
	}
	entry, there := loaded.Upstreams[name]
	if !there {
		return nil, fault.New(fault.NotFound, "no server %q in %s", name, loaded.File).WithHint("`luanette upstream list` says where it comes from")
	}
	shown := entry.Shown()
	d := Definition{Namespace: name, File: loaded.File, Place: loaded.UpstreamPlaces()[name], Settings: shown}
	if entry.Command != "" {
		d.Command = commandline.Join(append([]string{entry.Command}, entry.Hidden().Args...))
	}
	return d, nil
}

// settings are what the page sends about a server: the command line, and the other
// settings by their keys in the file.
type settings struct {
	Command  string            `json:"command,omitempty"` // with its arguments, as in a shell
	Env      map[string]string `json:"env,omitempty"`
	Sandbox  string            `json:"sandbox,omitempty"` // off, open or strict; if it is missing, a new program gets open
	Settings upstream.Change   `json:"settings,omitempty"`
}

// change returns all settings by their keys in the file.
func (s settings) change() (upstream.Change, error) {
	change := maps.Clone(s.Settings)
	if change == nil {
		change = upstream.Change{}
	}
	if s.Command != "" {
		words, err := splitCommand(s.Command)
		if err != nil {
			return nil, err
		}
		change["command"], change["args"] = asJSON(words[0]), asJSON(words[1:])
		if len(words) == 1 {
			change["args"] = json.RawMessage("null")
		}
	}
	if s.Sandbox != "" {
		change["sandbox"] = asJSON(s.Sandbox)
	}
	if len(s.Env) > 0 {
		change["env"] = asJSON(s.Env)
	}
	if len(change) == 0 {
		return nil, fault.New(fault.InvalidParams, "nothing is given").WithHint("send command, or settings such as openapi")
	}
	return change, nil
}

// splitCommand splits a command line into the program and its arguments.
func splitCommand(line string) (words []string, err error) {
	words, ok := commandline.Split(line)
	if !ok || len(words) == 0 || words[0] == "" {
		return nil, fault.New(fault.InvalidParams, "%q is not a command", line).WithHint("for example npx -y @modelcontextprotocol/server-filesystem /home/me").
			WithDetails(map[string]string{"field": "command"})
	}
	return words, nil
}

func asJSON(v any) json.RawMessage {
	raw, _ := json.Marshal(v) // texts always encode
	return raw
}

// addServer adds a server to the configuration file.
func (s *Service) addServer(r *http.Request) (any, error) {
	var body struct {
		Namespace string `json:"namespace"`
		settings
	}
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	change, err := body.change()
	if err != nil {
		return nil, err
	}
	if err := s.mayAddPrograms(r); err != nil {
		return nil, err
	}
	entry, err := config.NewEntry(body.Namespace, change, s.Sources.Env)
	if err != nil {
		return nil, err
	}
	return s.add(r.Context(), config.NewUpstream{Name: body.Namespace, Entry: entry, Propose: true})
}

// editServer changes a server of the configuration file.
func (s *Service) editServer(r *http.Request) (any, error) {
	var body settings
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	change, err := body.change()
	if err != nil {
		return nil, err
	}
	if err := s.mayAddPrograms(r); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	file, err := config.ChangeUpstream(r.Context(), s.Sources, name, change)
	if err != nil {
		return nil, err
	}
	s.Audit(r.Context(), "upstream.edit", name, asJSON(slices.Sorted(maps.Keys(change))))
	s.Reload(r.Context())
	return Added{name, file, config.SandboxNotes(s.Sources, name)}, nil
}

// remove removes a server from the configuration file.
func (s *Service) remove(r *http.Request) (any, error) {
	name := r.PathValue("name")
	loaded, err := config.LoadOrNew(s.Sources)
	if err != nil {
		return nil, err
	}
	file, err := config.RemoveUpstream(s.Sources, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.removed[name] = loaded.Upstreams[name]
	s.mu.Unlock()
	s.Audit(r.Context(), "upstream.remove", name, nil)
	s.Reload(r.Context())
	return Added{Namespace: name, File: file}, nil
}

// restore adds a server again that was removed since the start.
func (s *Service) restore(r *http.Request) (any, error) {
	name := r.PathValue("name")
	s.mu.Lock()
	entry, there := s.removed[name]
	delete(s.removed, name)
	s.mu.Unlock()
	if !there {
		return nil, fault.New(fault.NotFound, "%s was not removed from the configuration file here", name).WithHint("add it again")
	}
	added, err := s.add(context.WithoutCancel(r.Context()), config.NewUpstream{Name: name, Entry: entry})
	if err != nil {
		s.mu.Lock()
		s.removed[name] = entry
		s.mu.Unlock()
	}
	return added, err
}
