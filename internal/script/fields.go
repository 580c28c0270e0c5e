package script

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/nearest"
	"github.com/luanette/luanette/internal/tool"
)

var (
	nilField       = regexp.MustCompile(`nil value \(field '([^']+)'\)`)
	undefinedField = regexp.MustCompile(`cannot read propert(?:y|ies) '([^']+)' of undefined|Cannot read properties of undefined \(reading '([^']+)'\)`)

	// toolWritten is how scripts write tools: mcp.ns.tool, mcp.ns["tool"] and
	// mcp.call("ns", "tool").
	toolWritten = regexp.MustCompile(`\bmcp\.(\w+)(?:\.(\w+)|\[\s*["']([^"'\]]+)["']\s*\])|\bmcp\.call\(\s*["']([^"']+)["']\s*,\s*["']([^"']+)["']`)
)

// missingField is the field that was not there, by what the engine says: Lua
// names it, JavaScript names the one that was looked for in it.
func missingField(message, line string) string {
	if m := nilField.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	m := undefinedField.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	before := regexp.MustCompile(`\.(\w+)\s*(?:\.|\[\s*["']?)` + regexp.QuoteMeta(m[1]+m[2]) + `\b`)
	if found := before.FindStringSubmatch(line); found != nil {
		return found[1]
	}
	return ""
}

// suggestField helps when a script read a field that a tool's answer has not: it
// looks at the tools that the script speaks of. Nothing of it is done before a
// script fails.
func (e *Error) suggestField(ctx context.Context, r *Runner, q Request) {
	name := missingField(e.Message, e.SourceLine)
	if name == "" || r.options.Fields == nil {
		return
	}
	for _, ref := range toolsIn(q.Source, 20) {
		fields := r.options.Fields(context.WithoutCancel(ctx), ref)
		switch near := nearest.Names(name, fields, 3); {
		case len(fields) == 0:
		case slices.Contains(fields, name):
			e.Suggestions = append(e.Suggestions, fmt.Sprintf("'%s' is not in every answer of %s: look whether it is there", name, ref))
		case len(near) > 0:
			e.Suggestions = append(e.Suggestions, fmt.Sprintf("no field '%s' in what %s answers; did you mean '%s'?", name, ref, strings.Join(near, "', '")))
		default:
			shown := fields[:min(len(fields), 30)]
			e.Troubleshooting = append(e.Troubleshooting, fmt.Sprintf("%s answers with: %s", ref, strings.Join(shown, ", ")))
		}
	}
}

// toolsIn are the tools a script speaks of, each once.
func toolsIn(source string, limit int) []tool.Ref {
	var refs []tool.Ref
	for _, m := range toolWritten.FindAllStringSubmatch(source, 10*limit) {
		ref := tool.Ref{Space: m[1] + m[4], Name: m[2] + m[3] + m[5]}
		if !slices.Contains(refs, ref) && len(refs) < limit {
			refs = append(refs, ref)
		}
	}
	return refs
}
