// Package help is the help function of scripts, and the manual behind it: the pages of
// all modules, by module and by function.
package help

import (
	_ "embed"

	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed help.md
var page string

// Module is the global function help, which knows the given modules and itself.
func Module(modules []host.Module) host.Module {
	m := host.Module{Page: page}
	manual := NewManual(append(modules[:len(modules):len(modules)], m))
	m.Funcs = []host.Func{{Name: "help", Pure: func(args host.Args) ([]host.Value, error) {
		topic, err := args.OptString(1, "")
		if err != nil {
			return nil, err
		}
		text, err := manual.Lookup(topic)
		return []host.Value{text}, err
	}}}
	return m
}
