package apikey

import (
	"context"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// CheckCalls refuses calls of principals whose key is no longer valid: a job or a
// script may run longer than the key that started it.
func (s *Store) CheckCalls() tool.Step {
	return tool.Step{Name: "key", ChecksOnly: true, Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		if err := s.Check(principal.Of(ctx)); err != nil {
			return ctx, i.Deny("key", err)
		}
		return ctx, nil
	}}
}
