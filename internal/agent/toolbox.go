package agent

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/llm"
	"github.com/luanette/luanette/internal/tool"
)

// toolbox is the tools of one turn: what the model is offered, and what its names
// stand for.
type toolbox struct {
	source  tool.Source
	offered []llm.Tool
	refs    map[string]tool.Ref
}

func (a *Agent) openToolbox(ctx context.Context, r *Request) (*toolbox, error) {
	box := &toolbox{source: a.options.Tools, refs: map[string]tool.Ref{}}
	if box.source == nil {
		return box, nil
	}
	all, err := box.source.Tools(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if info := &all[i]; r.allows(info.Ref) {
			name := modelName(info.Ref, box.refs)
			box.refs[name] = info.Ref
			box.offered = append(box.offered, llm.Tool{Name: name, Description: info.Description, Input: info.Input})
		}
	}
	return box, nil
}

// allows tells whether the request may use a tool.
func (r *Request) allows(ref tool.Ref) bool {
	if r.Servers == nil || ref.Space == "" {
		return true
	}
	return slices.ContainsFunc(r.Servers, func(s Server) bool {
		return s.Space == ref.Space && (s.Tools == nil || slices.Contains(s.Tools, ref.Name))
	})
}
