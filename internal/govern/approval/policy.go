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
	Writes Mode = "writes" // effects that change something, or may
	All    Mode = "all"    // effects that only read as well
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Never, Writes, All} }

// Known reports whether m is one of Modes.
func (m Mode) Known() bool { return slices.Contains(Modes(), m) }

// Policy says which effects of a script need approval. Rules are by tool ("git.push"),
// namespace ("git"), function ("fs.write", "run_command") or module ("fs", "http").
// The most specific rule applies, and Default if there is none. With the zero value
// nothing needs approval.
type Policy struct {
	Default Mode
	Rules   map[string]Mode
	// Also reports whether an effect needs approval in addition to the rules, and whose;
	// may be nil.
	Also func(ctx context.Context, e host.Effect) (Demand, bool)
	// Own means that people may approve what they asked for themselves, except where a
	// role is needed.
	Own bool
}

// demand returns who must agree to an effect.
func (p Policy) demand(ctx context.Context, e host.Effect) (d Demand, needed bool) {
	if p.Also != nil {
		d, needed = p.Also(ctx, e)
	}
	return d, needed || p.needsApproval(e)
}

// Empty reports whether no effect ever needs approval.
func (p Policy) Empty() bool {
	for _, mode := range p.Rules {
		if mode != Never {
			return false
		}
	}
	return p.Also == nil && (p.Default == "" || p.Default == Never)
}

// needsApproval reports whether an effect needs approval.
func (p Policy) needsApproval(e host.Effect) bool {
	switch p.mode(e) {
	case Writes:
		return changes(e)
	case All:
		return changes(e) || e.Kind == host.Read && !listsTools(e)
	default:
		return false
	}
}

// changes reports whether an effect changes something, or may.
func changes(e host.Effect) bool { return e.Kind == host.Write || e.Kind == host.Idempotent }

// listsTools reports whether an effect only lists the available tools.
func listsTools(e host.Effect) bool {
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
