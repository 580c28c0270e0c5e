package pin

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// A server may define a tool otherwise for one person than for others. What is listed for
// all is checked and pinned as usual; what one person has instead is a variant of it.

// Version grows when variants may be decided otherwise.
func (g *Guard) Version() uint64 { return g.version.Load() }

// CheckVariant returns a variant of a listed tool, by the upstream's name, with what is
// suspicious about it; ok is false if it may not be used. Of a pinned upstream only the
// approved definition may.
func (g *Guard) CheckVariant(info *tool.Info) (checked tool.Info, ok bool) {
	c, r := contentOf(definitionOf(info)), g.last.Load()
	if r == nil || r.tools[info.Ref] == nil {
		return *info, g.ModeOf(info.Space) != Pinned
	}
	if r.tools[info.Ref].refuses(c) != nil {
		return *info, false
	}
	return flagged(*info, c.allFindings(&mentions{info.Space, r.naming, ownNames(g.options.Own())})), true
}

// refuses says why a variant of the tool may not be used.
func (j *checkedTool) refuses(variant *content) error {
	if err := j.allowed(); err != nil || j.pin == nil || j.digest == variant.digest {
		return err
	}
	return fault.New(fault.Denied, "tool %s has another definition for you than the approved one", Visible(j.info.Ref.String())).
		WithHint("`luanette pin show %s` shows the approved one", j.pin.ID)
}

// checkPersonal checks a tool as one person's list has it; seen is false if nobody's list
// that was checked has it.
func (g *Guard) checkPersonal(namespace string, raw json.RawMessage, name string) (seen bool, err error) {
	r := g.last.Load()
	if r == nil {
		return false, nil
	}
	j := r.tools[tool.Ref{Space: namespace, Name: name}]
	if j == nil {
		return false, nil
	}
	return true, j.refuses(contentOf(raw))
}
