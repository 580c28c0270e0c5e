package tool

import (
	"context"
	"maps"
)

// Scope limits what a call may lead to. It is part of the context, so that a script or
// a tool that calls tools cannot reach further than its caller. It must be safe for
// concurrent use.
type Scope struct {
	// Allows reports whether a tool exists for this caller. A Ref without a name
	// stands for a namespace: whether any tool in it may exist.
	Allows func(Ref) bool
	// Admit is called before every call of a tool that exists; its error refuses the
	// call. nil admits all.
	Admit func(Ref) error
	// Names are the names that the caller has for namespaces: the namespace of each. The
	// other functions of a scope get namespaces, not these.
	Names map[string]string
	// HideArgs excludes arguments from traces: they are private.
	HideArgs bool
}

type scopeKey struct{}

// WithScope returns ctx with a scope. Inside another scope, only what both allow is
// allowed.
func WithScope(ctx context.Context, s *Scope) context.Context {
	if outer := ScopeOf(ctx); outer != nil {
		s = outer.and(s)
	}
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeOf returns the scope of ctx, or nil: everything is allowed.
func ScopeOf(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}

// and returns a scope that allows what both allow.
func (s *Scope) and(inner *Scope) *Scope {
	names := s.Names
	if len(inner.Names) > 0 {
		names = maps.Clone(names)
		if names == nil {
			names = map[string]string{}
		}
		maps.Copy(names, inner.Names)
	}
	return &Scope{
		Allows: func(r Ref) bool { return s.Allows(r) && inner.Allows(r) },
		Admit: func(r Ref) error {
			for _, one := range []*Scope{inner, s} {
				if one.Admit == nil {
					continue
				}
				if err := one.Admit(r); err != nil {
					return err
				}
			}
			return nil
		},
		Names:    names,
		HideArgs: s.HideArgs || inner.HideArgs,
	}
}
