package results

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
)

// LearnCalls learns the shape of results from calls of upstream tools that declare no
// output schema.
func (s *Store) LearnCalls() tool.Step {
	return tool.Step{Name: "shapes", After: func(_ context.Context, i *tool.Invocation) {
		if i.Err == nil && !i.Asked && i.Result.Task == "" && !i.Relayed && i.Info.Output == nil && i.Info.Space != "" {
			s.Learn(i.Info, i.Result) //nolint:contextcheck // it is stored later, when the call has ended
		}
	}}
}
