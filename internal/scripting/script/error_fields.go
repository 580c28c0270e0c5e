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

	// toolPattern matches tools in scripts: mcp.ns.tool, mcp.ns["tool"] and
	// mcp.call("ns", "tool").
	toolPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bmcp\.(\w+)(?:\.(\w+)|\[\s*["']([^"'\]]+)["']\s*\])|\bmcp\.call\(\s*["']([^"']+)["']\s*,\s*["']([^"']+)["']`)
	})
)

// missingFields returns the names that may be the missing field, from the engine's
// message: Lua names the field, JavaScript names the property read from it.
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

// suggestField helps when a script read a field that a tool's result does not have. It
// looks at the tools that the script mentions, and only after a failure.
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

// compareFields suggests fields of a tool's results in place of the missing ones.
func (e *Error) compareFields(ref tool.Ref, fields, names []string) {
	for _, name := range names {
		if near := suggest.Names(name, fields, 3); len(near) > 0 && !slices.Contains(fields, name) {
			e.Suggestions = append(e.Suggestions, fmt.Sprintf("no field '%s' in results of %s; did you mean '%s'?", name, ref, strings.Join(near, "', '")))
			return
		}
	}
	for _, name := range names {
		if slices.Contains(fields, name) {
			e.Suggestions = append(e.Suggestions, fmt.Sprintf("'%s' is not in every result of %s: check that it is present", name, ref))
			return
		}
	}
	shown := fields[:min(len(fields), 30)]
	e.Troubleshooting = append(e.Troubleshooting, fmt.Sprintf("fields in results of %s: %s", ref, strings.Join(shown, ", ")))
}

// toolsIn returns the tools that a script mentions, in JavaScript also by their plain
// names.
func (r *Runner) toolsIn(ctx context.Context, q Request) []tool.Ref {
	const limit = 20
	refs := toolsIn(q.Source, limit)
	if q.language() != JavaScript || r.options.JavaScript == nil {
		return refs
	}
	words, fields := wordsOf(q.Source)
	for _, path := range r.options.JavaScript.plainNames(ctx, r.options.Tools, words, fields) {
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

// toolsIn returns the tools that a source mentions, without duplicates.
func toolsIn(source string, limit int) []tool.Ref {
	var refs []tool.Ref
	for _, m := range toolPattern().FindAllStringSubmatch(source, 10*limit) {
		ref := tool.Ref{Space: m[1] + m[4], Name: m[2] + m[3] + m[5]}
		if !slices.Contains(refs, ref) && len(refs) < limit {
			refs = append(refs, ref)
		}
	}
	return refs
}
