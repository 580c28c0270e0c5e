package script

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
)

var (
	nilField       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`nil value \(field '([^']+)'\)`) })
	undefinedField = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`cannot read propert(?:y|ies) '([^']+)' of undefined|Cannot read properties of undefined \(reading '([^']+)'\)`)
	})

	// toolWritten is how scripts write tools: mcp.ns.tool, mcp.ns["tool"] and
	// mcp.call("ns", "tool").
	toolWritten = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bmcp\.(\w+)(?:\.(\w+)|\[\s*["']([^"'\]]+)["']\s*\])|\bmcp\.call\(\s*["']([^"']+)["']\s*,\s*["']([^"']+)["']`)
	})
)

// missingFields are the fields that may be the one that was not there, by what the
// engine says: Lua names it, JavaScript names the one that was looked for in it.
func missingFields(message, line string) []string {
	if m := nilField().FindStringSubmatch(message); m != nil {
		return m[1:]
	}
	m := undefinedField().FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	before := regexp.MustCompile(`\.(\w+)\s*(?:\.|\[\s*["']?)` + regexp.QuoteMeta(m[1]+m[2]) + `\b`)
	var names []string
	for _, found := range before.FindAllStringSubmatch(line, 5) {
		names = append(names, found[1])
	}
	return names
}

// suggestField helps when a script read a field that a tool's answer has not: it
// looks at the tools that the script speaks of. Nothing of it is done before a
// script fails.
func (e *Error) suggestField(ctx context.Context, r *Runner, q Request) {
	if r.options.Fields == nil {
		return
	}
	names := missingFields(e.Message, lineAt(q.Source, e.Line))
	if len(names) == 0 {
		return
	}
	for _, ref := range r.toolsIn(ctx, q) {
		if fields := r.options.Fields(context.WithoutCancel(ctx), ref); len(fields) > 0 {
			e.compareFields(ref, fields, names)
		}
	}
}

// compareFields tells how the fields a script may have missed differ from those a
// tool's answers have.
func (e *Error) compareFields(ref tool.Ref, fields, names []string) {
	for _, name := range names {
		if near := suggest.Names(name, fields, 3); len(near) > 0 && !slices.Contains(fields, name) {
			e.Suggestions = append(e.Suggestions, fmt.Sprintf("no field '%s' in what %s answers; did you mean '%s'?", name, ref, strings.Join(near, "', '")))
			return
		}
	}
	for _, name := range names {
		if slices.Contains(fields, name) {
			e.Suggestions = append(e.Suggestions, fmt.Sprintf("'%s' is not in every answer of %s: look whether it is there", name, ref))
			return
		}
	}
	shown := fields[:min(len(fields), 30)]
	e.Troubleshooting = append(e.Troubleshooting, fmt.Sprintf("%s answers with: %s", ref, strings.Join(shown, ", ")))
}

// toolsIn are the tools a script speaks of, in JavaScript also by their plain names.
func (r *Runner) toolsIn(ctx context.Context, q Request) []tool.Ref {
	const limit = 20
	refs := toolsIn(q.Source, limit)
	if q.language() != JavaScript || r.options.JavaScript == nil {
		return refs
	}
	for _, path := range r.options.JavaScript.plainNames(ctx, r.options.Tools, wordsOf(q.Source)) {
		space, name, ok := strings.Cut(path, ".")
		if !ok {
			space, name = "", path
		}
		if ref := (tool.Ref{Space: space, Name: name}); !slices.Contains(refs, ref) && len(refs) < limit {
			refs = append(refs, ref)
		}
	}
	return refs
}

// toolsIn are the tools a script speaks of, each once.
func toolsIn(source string, limit int) []tool.Ref {
	var refs []tool.Ref
	for _, m := range toolWritten().FindAllStringSubmatch(source, 10*limit) {
		ref := tool.Ref{Space: m[1] + m[4], Name: m[2] + m[3] + m[5]}
		if !slices.Contains(refs, ref) && len(refs) < limit {
			refs = append(refs, ref)
		}
	}
	return refs
}
