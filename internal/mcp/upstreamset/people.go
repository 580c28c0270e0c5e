package upstreamset

import (
	"context"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Hides returns which tools are not listed for a principal: those that also hides, and those
// that only others have at an upstream where each has a connection of its own. nil: none.
func (u *Set) Hides(who principal.Principal, also func(*tool.Info) bool) func(*tool.Info) bool {
	if u == nil {
		return also
	}
	others := u.Manager.Hides(who)
	if others == nil {
		return also
	}
	return func(info *tool.Info) bool {
		if also != nil && also(info) {
			return true
		}
		ref := info.Ref
		if name, err := u.Overlay.OriginalName(context.Background(), ref); err == nil { // from memory
			ref.Name = name
		}
		return others(ref)
	}
}
