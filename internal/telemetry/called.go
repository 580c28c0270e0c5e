package telemetry

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// toolsListed is how many tools a trace names.
const toolsListed = 20

// called are the tools that were called in a trace, by their full names, in the
// order they were first called in. The one that the request itself named is left
// out unless it has another name here: the trace bears it.
func called(t *Trace) (names []string) {
	spans := slices.Clone(t.Spans)
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	named := map[trace.SpanID]bool{} // spans whose tool was named
	for i := range spans {
		s := &spans[i]
		tool, space := s.about()
		if tool == "" || s.Kind == "server" && space == "" || s.Kind == "client" && named[s.parent] {
			continue
		}
		named[s.id] = true
		if space != "" {
			tool = space + "." + tool
		}
		if "tools/call "+tool != t.Name && !slices.Contains(names, tool) {
			names = append(names, tool)
		}
	}
	return names[:min(len(names), toolsListed)]
}

// about is the tool that a span is about, and whose it is.
func (s *Span) about() (tool, space string) {
	var namespace, upstream string
	for _, a := range s.raw {
		switch a.Key {
		case "gen_ai.tool.name":
			tool = a.Value.AsString()
		case "mcp.namespace":
			namespace = a.Value.AsString()
		case "luanette.upstream":
			upstream = a.Value.AsString()
		}
	}
	return tool, cmp.Or(namespace, upstream)
}
