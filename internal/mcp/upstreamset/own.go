package upstreamset

import (
	"cmp"
	"context"
	"sync"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Pins check the definitions that single principals have.
type Pins interface {
	// CheckVariant checks another definition of a listed tool, by the upstream's name.
	CheckVariant(info *tool.Info) (checked tool.Info, ok bool)
	// Version grows when CheckVariant may decide otherwise.
	Version() uint64
}

// variants are the tools that single principals have otherwise than others, as they are
// listed for them.
type variants struct {
	mu      sync.Mutex
	version [2]uint64                 // of what they were made with
	listed  map[*tool.Info]*tool.Info // by the upstream's definition; nil: it is not listed
}

// maxVariants bounds how many are kept.
const maxVariants = 100_000

// Own returns how listed tools are for the principal of ctx, because each has a connection
// of its own to their upstream: false means that only others have it, a definition that it
// has another one. It is nil if everything is as it is listed.
func (u *Set) Own(ctx context.Context) func(*tool.Info) (*tool.Info, bool) {
	if u == nil {
		return nil
	}
	own := u.Manager.Own(ctx)
	if own == nil {
		return nil
	}
	return func(info *tool.Info) (*tool.Info, bool) {
		of, differs := own[info.Space]
		if !differs {
			return nil, true
		}
		return u.own(ctx, of, info)
	}
}

func (u *Set) own(ctx context.Context, of upstream.OwnTools, info *tool.Info) (*tool.Info, bool) {
	name := cmp.Or(info.Original, info.Name)
	if of.Lacks[name] {
		return nil, false
	}
	defined := of.Defined[name]
	if defined == nil {
		return nil, true
	}
	listed := u.variant(ctx, info, defined)
	return listed, listed != nil
}

// variant is how a definition is listed; nil: not at all.
func (u *Set) variant(ctx context.Context, info, defined *tool.Info) *tool.Info {
	version := [2]uint64{u.Overlay.Version(), u.Pins.Version()}
	u.variants.mu.Lock()
	if u.variants.version != version || len(u.variants.listed) >= maxVariants {
		u.variants.version, u.variants.listed = version, map[*tool.Info]*tool.Info{}
	}
	listed, known := u.variants.listed[defined]
	u.variants.mu.Unlock()
	if known {
		return listed
	}
	if checked, ok := u.Pins.CheckVariant(defined); ok {
		if shown, ok := u.Overlay.Variant(ctx, info, checked); ok {
			listed = &shown
		}
	}
	u.variants.mu.Lock()
	defer u.variants.mu.Unlock()
	if u.variants.version == version {
		u.variants.listed[defined] = listed
	}
	return listed
}

// Hides returns which tools are not listed for a principal: those that also hides, and those
// that only others have at an upstream where each has a connection of its own. nil: none.
func (u *Set) Hides(who principal.Principal, also func(*tool.Info) bool) func(*tool.Info) bool {
	own := u.Own(principal.With(context.Background(), who))
	if own == nil {
		return also
	}
	return func(info *tool.Info) bool {
		if also != nil && also(info) {
			return true
		}
		_, has := own(info)
		return !has
	}
}
