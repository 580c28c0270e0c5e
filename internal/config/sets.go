package config

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/config/toml"
)

// Set is a set of tools with an address of its own. It narrows what those who use it may see
// anyway.
type Set struct {
	Tools        []string `toml:"tools" json:"tools" help:"the tools in it, as namespace.tool or the name of a script or one of our tools; * matches any text"`
	Prompts      []string `toml:"prompts,omitempty" json:"prompts,omitempty" help:"the prompts of servers in it, as namespace.prompt; * matches any text"`
	Resources    []string `toml:"resources,omitempty" json:"resources,omitempty" help:"the resources of servers in it, as namespace.URI; * matches any text; pages of its tools are always in it"`
	Menu         string   `toml:"menu,omitempty" json:"menu,omitempty" words:"|menus" help:"what its clients are shown: code, standard, full or direct, which lists its tools; mcp.menu if empty"`
	Instructions string   `toml:"instructions,omitempty" json:"instructions,omitempty" help:"for the models that use it"`
	Org          string   `toml:"org,omitempty" json:"org,omitempty" help:"the organisation for which it exists; empty means everybody"`
}

var setName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// checkSets checks the sets, and that those of keys and roles exist.
func (c *Config) checkSets() error {
	for _, name := range slices.Sorted(maps.Keys(c.Sets)) {
		if !setName.MatchString(name) {
			return fault.New(fault.Config, "sets.%s: the name of a set is part of its address", name).WithHint("use lower-case letters, digits, - and _")
		}
		if len(c.Sets[name].Tools) == 0 {
			return fault.New(fault.Config, "sets.%s: it has no tools", name).WithHint(`name them as in tools = ["brave.*", "notes.search"]`)
		}
	}
	bound := map[string]string{}
	for name, key := range c.Keys {
		bound["keys."+name] = key.Set
	}
	for name, role := range c.Roles {
		bound["roles."+name] = role.Set
	}
	for _, name := range slices.Sorted(maps.Keys(bound)) {
		if bound[name] == "" {
			continue
		}
		if err := c.CheckSet(bound[name]); err != nil {
			return fault.Wrap(fault.Config, err, "%s", name)
		}
	}
	return nil
}

// CheckSet returns an error if there is no set of that name.
func (c *Config) CheckSet(name string) error {
	if _, ok := c.Sets[name]; ok {
		return nil
	}
	known := slices.Sorted(maps.Keys(c.Sets))
	err := fault.New(fault.InvalidParams, "there is no set %q", name)
	if close := suggest.Names(name, known, 1); len(close) > 0 {
		return err.WithHint("did you mean %s?", close[0])
	}
	if len(known) == 0 {
		return err.WithHint("`luanette set add %s PATTERN…` adds it", name)
	}
	return err.WithHint("there are %s", strings.Join(known, ", "))
}

// AddSet adds a set of tools to the configuration file, or replaces the one of that name, and
// returns the file's path.
func AddSet(sources Sources, name string, set Set, replace bool) (file string, err error) {
	loaded, err := LoadOrNew(sources)
	if err != nil {
		return "", err
	}
	_, exists := loaded.Sets[name]
	if exists && !replace {
		return "", fault.New(fault.Conflict, "there is a set %q already", name).WithHint("choose another name, or replace it with --replace")
	}
	if loaded.Sets == nil {
		loaded.Sets = map[string]Set{}
	}
	loaded.Sets[name] = set
	if err := loaded.check(); err != nil {
		return "", err
	}
	return loaded.File, edit(loaded.File, func(text string) (string, error) {
		if exists {
			if text, err = cutSet(text, name); err != nil {
				return "", err
			}
		}
		changed, err := toml.Append([]byte(text), []string{"sets", name}, map[string]any{"sets": map[string]any{name: set}})
		if err != nil {
			return "", fault.Wrap(fault.Internal, err, "write set")
		}
		return string(changed), nil
	})
}

// RemoveSet removes a set of tools from the configuration file.
func RemoveSet(sources Sources, name string) error {
	loaded, err := Load(sources)
	if err != nil {
		return err
	}
	delete(loaded.Sets, name)
	if err := loaded.check(); err != nil { // a key or a role is bound to it
		return err
	}
	return edit(loaded.File, func(text string) (string, error) { return cutSet(text, name) })
}

// cutSet removes a set from the text of a file.
func cutSet(text, name string) (string, error) {
	cut, err := toml.CutTable([]byte(text), "sets", name)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "the set %s has no header of its own", name).WithHint("remove it from the file by hand")
	}
	return string(cut), nil
}

// SetLines are the lines of the configuration file on which its sets are.
func (l *Loaded) SetLines() map[string]int {
	text, err := os.ReadFile(l.File)
	if err != nil {
		return nil // there is no file yet
	}
	return toml.Lines(text, "sets")
}
