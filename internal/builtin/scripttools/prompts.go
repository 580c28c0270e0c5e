package scripttools

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/typedecl"
)

//go:embed prompts/*.md
var promptTexts embed.FS

// The allowed values of arguments.
var (
	scriptStyles   = []string{"simple", "detailed", "production"}
	midiOperations = []string{"generate", "transpose", "quantize", "continue", "bridge"}
)

// Prompts are the prompts about scripts.
func Prompts(r *script.Runner, s *artifact.Store, c *catalog.Catalog) *builtin.Prompts {
	p := scriptPrompts{r, s, c}
	return builtin.NewPrompts(promptTexts, []builtin.Prompt{
		{
			Name: "write-script", Title: "Write a script", Fill: p.write,
			Description: "Write a Lua script for a task, with the available tools",
			Arguments: []builtin.Argument{
				{Name: "task", Description: "what the script should do", Required: true},
				{Name: "style", Description: "simple, detailed or production", OneOf: scriptStyles},
			},
		},
		{
			Name: "debug-script", Title: "Debug a script", Fill: p.read,
			Description: "Find out why a stored script fails and fix it",
			Arguments: []builtin.Argument{
				{Name: "hash", Description: "hash of the script", Required: true},
				{Name: "error", Description: "the error message"},
			},
		},
		{
			Name: "explain-script", Title: "Explain a script", Fill: p.read,
			Description: "Explain what a stored script does",
			Arguments:   []builtin.Argument{{Name: "hash", Description: "hash of the script", Required: true}},
		},
		{
			Name: "midi-workflow", Title: "Work with MIDI", Fill: p.midi,
			Description: "Write a script that makes or changes music",
			Arguments: []builtin.Argument{
				{Name: "operation", Description: strings.Join(midiOperations, ", "), Required: true, OneOf: midiOperations},
				{Name: "params", Description: "further requirements, as text or JSON"},
			},
		},
	})
}

type scriptPrompts struct {
	runner  *script.Runner
	scripts *artifact.Store
	catalog *catalog.Catalog
}

func (p scriptPrompts) write(ctx context.Context, given map[string]string) (map[string]any, error) {
	return map[string]any{"tools": toolLines(ctx, p.catalog, given["task"]), "modules": moduleNames(p.runner)}, nil
}

// read adds the source of the script and its problems.
func (p scriptPrompts) read(ctx context.Context, given map[string]string) (map[string]any, error) {
	ref, source, err := Load(ctx, p.scripts, given["hash"])
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"hash": ref.String(), "source": strings.TrimRight(source, "\n"),
		"problem": p.problem(ctx, source, ref), "modules": moduleNames(p.runner),
	}, nil
}

// problem returns what is wrong with a script without running it.
func (p scriptPrompts) problem(ctx context.Context, source string, ref cas.Ref) string {
	if _, err := p.runner.Describe(ctx, script.Request{Source: source, Hash: ref}); err != nil {
		return err.Error()
	}
	return ""
}

func (p scriptPrompts) midi(ctx context.Context, given map[string]string) (map[string]any, error) {
	page := ""
	for _, m := range p.runner.Modules() {
		if m.Name == "midi" {
			page = strings.TrimSpace(m.Page)
		}
	}
	return map[string]any{"tools": toolLines(ctx, p.catalog, "midi music "+given["operation"]), "midi": page}, nil
}

// toolLines returns the tools that match a task best, or all if there are few.
func toolLines(ctx context.Context, c *catalog.Catalog, task string) []string {
	const few = 40
	hits, total := c.Search(ctx, catalog.Query{Limit: few})
	if total > few {
		if fitting, _ := c.Search(ctx, catalog.Query{Text: task, Limit: few}); len(fitting) > 0 {
			hits = fitting
		}
	}
	var lines []string
	for _, h := range hits {
		if h.Space != "" {
			lines = append(lines, fmt.Sprintf("%s%s  %s", h.ScriptPath(), typedecl.Signature(h.Input), builtin.Brief(h.Description, builtin.BriefLength)))
		}
	}
	return lines
}

func moduleNames(r *script.Runner) string {
	var names []string
	for _, m := range r.Modules() {
		if m.Name != "" && m.Name != "mcp" {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Completions completes hashes, tags, examples, styles and operations.
func Completions(s *artifact.Store) builtin.Completions {
	hashes := func(ctx context.Context) []string { return hashes(recentScripts(ctx, s, builtin.MostCompletions)) }
	tags := func(ctx context.Context) []string {
		found, err := s.Tags(ctx, "", builtin.MostCompletions)
		if err != nil {
			return nil // no suggestions
		}
		return found
	}
	fixed := func(values []string) builtin.Candidates { return func(context.Context) []string { return values } }
	return builtin.Completions{
		"script_hash": hashes, "hash": hashes, "parent": hashes, "tag": tags, "tags": tags,
		"style": fixed(scriptStyles), "operation": fixed(midiOperations),
		exampleTemplate + " name": func(context.Context) []string { return exampleNames() },
	}
}
