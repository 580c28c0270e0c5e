package toolset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
)

// Set is a source of tools. It is never changed.
type Set struct {
	space string
	tools map[string]Tool
	list  []tool.Info
}

// NewSet makes a set of several families of tools in a namespace; our own have none.
// Two tools of one name are a programming error: it panics.
func NewSet(space string, families ...[]Tool) *Set {
	s := &Set{space: space, tools: map[string]Tool{}}
	for _, t := range slices.Concat(families...) {
		if _, twice := s.tools[t.info.Name]; twice {
			panic(fmt.Sprintf("toolset: two tools are named %s", t.info.Name))
		}
		t.info.Space = space
		s.tools[t.info.Name] = t
		s.list = append(s.list, t.info)
	}
	slices.SortFunc(s.list, func(a, b tool.Info) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// Tools lists the set, by name.
func (s *Set) Tools(context.Context) ([]tool.Info, error) { return s.list, nil }

// Has tells whether the set has a tool of that name.
func (s *Set) Has(name string) bool {
	_, ok := s.tools[name]
	return ok
}

// Call runs a tool of the set. A tool that fails returns a result that says so; an
// error means that there is no such tool or that the arguments do not match.
func (s *Set) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	t, ok := s.tools[call.Ref.Name]
	if !ok || call.Ref.Space != s.space {
		return tool.Result{}, s.missing(call.Ref)
	}
	return t.run(ctx, call)
}

// RepairArgs corrects what models commonly get wrong in the arguments of a tool.
func (s *Set) RepairArgs(ref tool.Ref, args json.RawMessage) (json.RawMessage, bool) {
	t, ok := s.tools[ref.Name]
	if !ok || ref.Space != s.space {
		return nil, false
	}
	return repair(t.info.Input, args)
}

func (s *Set) missing(ref tool.Ref) error {
	known := make([]string, len(s.list))
	for i, info := range s.list {
		known[i] = info.Name
	}
	err := fault.New(fault.ToolNotFound, "no tool %q", ref)
	if close := suggest.Names(ref.Name, known, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return err.WithHint("available: %s", strings.Join(known, ", "))
}

var _ tool.Source = (*Set)(nil)
