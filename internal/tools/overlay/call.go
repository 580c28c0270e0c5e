package overlay

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
)

// CheckCalls refuses relayed calls of tools that the transform hides. Other calls do
// not find such tools in the catalog.
func (s *Source) CheckCalls() tool.Step {
	return tool.Step{Name: "overlay", ChecksOnly: true, Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		if !i.Relayed || !s.transforms() {
			return ctx, nil
		}
		_, err := s.OriginalName(ctx, i.Call.Ref)
		return ctx, err
	}}
}

// transforms tells whether a transform is set.
func (s *Source) transforms() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transform != nil
}
