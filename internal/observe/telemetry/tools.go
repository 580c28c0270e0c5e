package telemetry

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// maxTools is how many tools a trace names.
const maxTools = 20

// called are the tools that were called in a trace, by their full names, in the
// order they were first called in. The one that the request itself named is left
// out unless it has another name here: the trace bears it.
func called(k *storedTrace) (names []string) {
	named := map[trace.SpanID]bool{} // spans whose tool was named
	for _, s := range k.sorted() {
		tool, space := s.about()
		if tool == "" || s.kind == trace.SpanKindServer && space == "" || s.kind == trace.SpanKindClient && named[s.parent] {
			continue
		}
		named[s.id] = true
		if space != "" {
			tool = space + "." + tool
		}
		if "tools/call "+tool != k.name && !slices.Contains(names, tool) {
			names = append(names, tool)
		}
	}
	return names[:min(len(names), maxTools)]
}

// about is the tool that a storedSpan is about, and whose it is.
func (s *storedSpan) about() (tool, space string) {
	var namespace, upstream string
	for _, a := range s.attributes {
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
