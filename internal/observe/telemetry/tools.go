package telemetry

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// maxTools limits how many tools are listed for a trace.
const maxTools = 20

// calledTools returns the full names of the tools that were called in a trace, in the
// order of their first call. The tool that the request itself names is omitted unless
// its full name differs, because it is the name of the trace.
func calledTools(k *storedTrace) (names []string) {
	named := map[trace.SpanID]bool{} // spans whose tool is already listed
	for _, s := range k.sorted() {
		tool, space := s.toolName()
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

// toolName returns the tool of a span, and its namespace.
func (s *storedSpan) toolName() (tool, space string) {
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
