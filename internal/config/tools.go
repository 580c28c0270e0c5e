package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/apis/command"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/config/trust"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Tool is a program of this machine that is a tool: commands.NAME.
type Tool struct {
	Command     []any             `toml:"command" help:"the program and its arguments, each a template: \"{{name}}\" is the value of a param, \"{{name...}}\" one argument per item of a list; a list in the list is left out if one of its values is missing, or if \"{{?name}}\" in it is not true"`
	Description string            `toml:"description,omitempty" help:"what it does, for models and the search"`
	Params      map[string]any    `toml:"params,omitempty" help:"JSON Schemas of its params by name; params that are not described are texts, lists of texts, or true or false, as the templates use them"`
	Stdin       string            `toml:"stdin,omitempty" help:"the param that the program reads from its standard input"`
	Dash        []string          `toml:"dash,omitempty" help:"params whose values may begin with a dash; all others are refused where the program could take them for options"`
	Cwd         string            `toml:"cwd,omitempty" help:"folder the program runs in, relative to this file"`
	Env         map[string]string `toml:"env,omitempty" secret:"values" help:"environment variables besides PATH, HOME, LANG, USER and TMPDIR; values may be references to secrets"`
	Timeout     Duration          `toml:"timeout,omitempty" help:"how long it may run (1m)"`
	Output      string            `toml:"output,omitempty" words:"|outputs" help:"what it writes: text, which is the default, lines or json"`
	MaxKB       int               `toml:"max_kb,omitempty" help:"how much of its output is returned, in KiB (256)"`
	ReadOnly    bool              `toml:"read_only,omitempty" help:"true says that it changes nothing"`
	Idempotent  bool              `toml:"idempotent,omitempty" help:"true says that running it twice is the same as once"`

	// These are not in the JSON of commands without them, by which earlier versions
	// remembered what is trusted.
	Sandbox string   `toml:"sandbox,omitempty" json:",omitempty" help:"what the program may reach: off, open, strict, docker:IMAGE or podman:IMAGE; docs/sandbox.md"`
	Read    []string `toml:"read,omitempty" json:",omitempty" help:"folders and files that the sandboxed program may read"`
	Write   []string `toml:"write,omitempty" json:",omitempty" help:"folders that the sandboxed program may write to"`
	Network []string `toml:"network,omitempty" json:",omitempty" help:"hosts that a program in a strict sandbox may connect to"`
}

// commandSpace is the namespace of all commands.
const commandSpace = "commands"

// inheritedByTools are the variables that every command gets.
var inheritedByTools = []string{"PATH", "HOME", "LANG", "USER", "TMPDIR"}

var toolNames = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,49}$`)

// checkTools refuses commands that cannot be run.
func (c *Config) checkTools() error {
	if _, taken := c.Upstreams[commandSpace]; taken && len(c.Tools) > 0 {
		return fault.New(fault.Config, "upstreams.%s: the tools of [tools] have that namespace", commandSpace).WithHint("give the upstream another name")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		if !toolNames().MatchString(name) {
			return fault.New(fault.Config, "tools: %q cannot be the name of a tool", name).WithHint("use letters, digits, _ and -, at most 50, beginning with a letter")
		}
		given, err := c.Tools[name].read()
		if err == nil {
			err = command.Check(given)
		}
		if err != nil {
			return fault.Wrap(fault.Config, err, "tools.%s", name).WithHint("%s", fault.HintOf(err))
		}
	}
	return nil
}

// read returns the command that the configuration describes.
func (t Tool) read() (c api.CommandTool, err error) {
	c = api.CommandTool{
		Description: cmp.Or(t.Description, "Runs "+t.shown()), Stdin: t.Stdin, Dash: t.Dash, Dir: t.Cwd, Env: maps.Clone(t.Env),
		Timeout: cmp.Or(time.Duration(t.Timeout), command.DefaultTimeout), Output: cmp.Or(t.Output, api.OutputText),
		MaxBytes: cmp.Or(t.MaxKB<<10, command.DefaultMaxBytes), ReadOnly: t.ReadOnly, Idempotent: t.Idempotent,
	}
	if c.Args, err = t.arguments(); err != nil {
		return c, err
	}
	if len(c.Args) == 0 || c.Args[0].Optional || c.Args[0].Texts[0] == "" {
		return c, fault.New(fault.Config, "command names no program").WithHint("command = [\"git\", \"log\", \"-n\", \"{{n}}\"]")
	}
	if err := profile.Level(t.Sandbox).Check(); err != nil {
		return c, err
	}
	if len(t.Params) > 0 {
		c.Params, err = json.Marshal(t.Params)
	}
	return c, err
}

// arguments returns the arguments: texts, and lists of texts, which are optional.
func (t Tool) arguments() (args []api.Argument, err error) {
	for _, given := range t.Command {
		switch given := given.(type) {
		case string:
			args = append(args, api.Argument{Texts: []string{given}})
		case []any:
			group := api.Argument{Optional: true}
			for _, one := range given {
				text, ok := one.(string)
				if !ok {
					return nil, fault.New(fault.Config, "command: %v is not a text", one)
				}
				group.Texts = append(group.Texts, text)
			}
			if len(group.Texts) > 0 {
				args = append(args, group)
			}
		default:
			return nil, fault.New(fault.Config, "command: %v is neither a text nor a list of texts", given).WithHint("numbers are texts, too: \"5\"")
		}
	}
	return args, nil
}

// shown is the command for people.
func (t Tool) shown() string {
	args, err := t.arguments()
	if err != nil {
		return "?"
	}
	var words []string
	for _, a := range args {
		text := strings.Join(a.Texts, " ")
		if a.Optional {
			text = "[" + text + "]"
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

// commandSpec is the upstream that offers all commands; false if there are none.
func (l *Loaded) commandSpec(env Environment) (spec upstream.Spec, ok bool, err error) {
	if len(l.Tools) == 0 {
		return spec, false, nil
	}
	settings := api.Settings{Kind: api.Command, Commands: map[string]api.CommandTool{}}
	for name, t := range l.Tools {
		c, err := t.read()
		if err != nil {
			return spec, false, fault.Wrap(fault.Config, err, "tools.%s", name)
		}
		if c.Dir != "" {
			c.Dir = l.beside(c.Dir)
		}
		variables := map[string]string{}
		for _, name := range inheritedByTools {
			if value, set := env[name]; set {
				variables[name] = value
			}
		}
		maps.Copy(variables, c.Env)
		c.Env = variables
		c.Sandbox = l.profile(commandSpace+"."+name, Upstream{Command: t.shown(), Sandbox: t.Sandbox, Read: t.Read, Write: t.Write, Network: t.Network})
		settings.Commands[name] = c
	}
	return upstream.Spec{Name: commandSpace, Settings: upstream.Settings{API: settings}, Trusted: true}, true, nil
}

// toolItem is a command as something that needs trust: it starts a program.
func (l *Loaded) toolItem(name string) trust.Item {
	return trust.NewItem("tools."+name, "starts "+l.Tools[name].shown(), l.Tools[name])
}
