package overlay

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
)

// Variant applies what changed a listed tool to another definition of it, which one caller
// has. It is false when the transform hides that.
func (s *Source) Variant(ctx context.Context, listed *tool.Info, other tool.Info) (tool.Info, bool) {
	other.Ref, other.Original, other.Priority = listed.Ref, listed.Original, listed.Priority
	s.mu.Lock()
	transform := s.transform
	s.mu.Unlock()
	if transform == nil {
		return other, true
	}
	seen, err := transform(ctx, listed.Space, identified([]tool.Info{other}))
	if err != nil { // as with other lists; the transform logs it
		return other, true
	}
	for _, want := range seen {
		if want.Original == originalOf(&other) {
			reword(&other, want)
			return other, true
		}
	}
	return other, false
}
