package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// CommandTool is a program of this machine that is a tool. Its arguments are templates:
// {{name}} is replaced by a value, {{name...}} by one argument per item of a list, and
// {{?name}} by nothing, on the condition that name is true.
type CommandTool struct {
	Description string
	Args        []Argument      // the first is the program
	Params      json.RawMessage // schemas of params by name; those of others follow from the templates
	Stdin       string          // the param that the program gets as standard input; "" is none
	Dash        []string        // params whose values may begin with a dash
	Dir         string          // where it runs
	Env         map[string]string
	Timeout     time.Duration
	Output      string // one of Outputs
	MaxBytes    int    // of the output; the rest is cut off
	ReadOnly    bool
	Idempotent  bool
	Sandbox     profile.Profile // what the program may reach
}

// Argument is one argument, or several that are left out together if a value is missing.
type Argument struct {
	Texts    []string
	Optional bool
}

// What the output of a program is.
const (
	OutputText  = "text"
	OutputLines = "lines"
	OutputJSON  = "json"
)

// Outputs lists them.
func Outputs() []string { return []string{OutputText, OutputLines, OutputJSON} }

func (c CommandTool) clone() CommandTool {
	c.Env, c.Dash = maps.Clone(c.Env), slices.Clone(c.Dash)
	c.Args = slices.Clone(c.Args)
	return c
}

// commandsProblem reports what is wrong with the settings of commands.
func (s Settings) commandsProblem() error {
	for _, name := range slices.Sorted(maps.Keys(s.Commands)) {
		if c := s.Commands[name]; len(c.Args) == 0 || c.Args[0].Optional || c.Args[0].Texts[0] == "" {
			return fmt.Errorf("%s names no program", name)
		}
	}
	return nil
}
