package approval

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/scripting/host"
)

// Mode says which effects need approval.
type Mode string

// The modes.
const (
	Never  Mode = "never"  // none
	Writes Mode = "writes" // those that change the world, or may
	All    Mode = "all"    // those that only look at it as well
)

// Modes are all of them.
func Modes() []Mode { return []Mode{Never, Writes, All} }

// Known tells whether a word is a mode.
func (m Mode) Known() bool { return slices.Contains(Modes(), m) }

// Policy is what needs approval before a script may do it. Rules are by tool
// ("git.push"), namespace ("git"), function ("fs.write", "run_command") or module
// ("fs", "http"); the most telling one counts, and Default where there is none.
// The zero value approves everything.
type Policy struct {
	Default Mode
	Rules   map[string]Mode
	// Also says what needs approval besides; nil is nothing.
	Also func(ctx context.Context, e host.Effect) bool
}

// Empty tells that nothing ever needs approval.
func (p Policy) Empty() bool {
	for _, mode := range p.Rules {
		if mode != Never {
			return false
		}
	}
	return p.Also == nil && (p.Default == "" || p.Default == Never)
}

// asks tells whether an effect needs approval.
func (p Policy) asks(e host.Effect) bool {
	switch p.mode(e) {
	case Writes:
		return e.Kind == host.Write || e.Kind == host.Idempotent
	case All:
		return e.Kind == host.Write || e.Kind == host.Idempotent || e.Kind == host.Read && !looksUp(e)
	default:
		return false
	}
}

// looksUp tells that an effect only asks which tools there are.
func looksUp(e host.Effect) bool {
	return slices.Contains([]string{"mcp.has", "mcp.tools", "mcp.namespaces"}, e.Name)
}

func (p Policy) mode(e host.Effect) Mode {
	subject, space := subjectOf(e)
	if mode, ok := p.Rules[subject]; ok {
		return mode
	}
	if mode, ok := p.Rules[space]; ok {
		return mode
	}
	return p.Default
}
