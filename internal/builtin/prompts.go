package builtin

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/catalog"
)

//go:embed prompts/*.md
var promptTexts embed.FS

// Prompt is an MCP prompt, a template filled with arguments and current data. Its
// text is in prompts/<name>.md.
type Prompt struct {
	Name        string
	Title       string
	Description string
	Arguments   []Argument
	// Fill returns the data that the text needs beside the arguments; may be nil.
	Fill func(ctx context.Context, arguments map[string]string) (map[string]any, error)
}

// Argument is an argument of a prompt.
type Argument struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Required    bool     `json:"required"`
	OneOf       []string `json:"-"` // allowed values, the first is the default; nil allows any
}

// Prompts serves prompts to the MCP server, in MCP's format.
type Prompts struct {
	all   []Prompt
	texts *template.Template
}

// NewPrompts joins the prompts of several families. It panics if a prompt has no text.
func NewPrompts(families ...[]Prompt) *Prompts {
	p := &Prompts{all: slices.Concat(families...), texts: template.Must(template.ParseFS(promptTexts, "prompts/*.md"))}
	for _, one := range p.all {
		if p.texts.Lookup(one.Name+".md") == nil {
			panic("builtin: prompt " + one.Name + " has no text")
		}
	}
	return p
}

// ListPrompts lists the prompts.
func (p *Prompts) ListPrompts(context.Context) ([]json.RawMessage, error) {
	listed := []json.RawMessage{}
	for _, one := range p.all {
		raw, err := json.Marshal(map[string]any{
			"name": one.Name, "title": one.Title, "description": one.Description, "arguments": one.Arguments,
		})
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "list prompts")
		}
		listed = append(listed, raw)
	}
	return listed, nil
}

// GetPrompt returns MCP's GetPromptResult.
func (p *Prompts) GetPrompt(ctx context.Context, name string, args json.RawMessage, _ *tool.Caller) (json.RawMessage, error) {
	one, err := p.find(name)
	if err != nil {
		return nil, err
	}
	data, err := one.data(ctx, args)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := p.texts.ExecuteTemplate(&text, name+".md", data); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "write prompt %s", name)
	}
	return json.Marshal(map[string]any{
		"description": one.Description,
		"messages": []any{map[string]any{
			"role": "user", "content": map[string]string{"type": "text", "text": strings.TrimSpace(text.String())},
		}},
	})
}

func (p *Prompts) find(name string) (*Prompt, error) {
	known := make([]string, len(p.all))
	for i := range p.all {
		if known[i] = p.all[i].Name; known[i] == name {
			return &p.all[i], nil
		}
	}
	err := fault.New(fault.InvalidParams, "no prompt %q", name)
	if close := suggest.Names(name, known, 3); len(close) > 0 {
		return nil, err.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return nil, err.WithHint("available: %s", strings.Join(known, ", "))
}

// data returns the validated arguments and what Fill adds.
func (p *Prompt) data(ctx context.Context, args json.RawMessage) (map[string]any, error) {
	given := map[string]string{}
	if len(args) > 0 {
		if err := json.Unmarshal(args, &given); err != nil {
			return nil, fault.Wrap(fault.InvalidParams, err, "read arguments of prompt %s", p.Name).WithHint("all arguments of prompts are strings")
		}
	}
	data := map[string]any{}
	for _, a := range p.Arguments {
		value := given[a.Name]
		switch {
		case value == "" && a.Required:
			return nil, fault.New(fault.InvalidParams, "prompt %s needs the argument %s", p.Name, a.Name).WithHint("%s: %s", a.Name, a.Description)
		case value == "" && a.OneOf != nil:
			value = a.OneOf[0]
		case value != "" && a.OneOf != nil && !slices.Contains(a.OneOf, value):
			return nil, fault.New(fault.InvalidParams, "prompt %s: %s cannot be %q", p.Name, a.Name, value).
				WithHint("it is one of %s", strings.Join(a.OneOf, ", "))
		}
		given[a.Name], data[a.Name] = value, value
	}
	if p.Fill == nil {
		return data, nil
	}
	more, err := p.Fill(ctx, given)
	for key, value := range more {
		data[key] = value
	}
	return data, err
}

// The allowed values of arguments.
var (
	scriptStyles   = []string{"simple", "detailed", "production"}
	midiOperations = []string{"generate", "transpose", "quantize", "continue", "bridge"}
)

// ScriptPrompts makes the prompts about scripts.
func ScriptPrompts(r *script.Runner, s *artifact.Store, c *catalog.Catalog) []Prompt {
	p := scriptPrompts{r, s, c}
	return []Prompt{
		{
			Name: "write-script", Title: "Write a script", Fill: p.write,
			Description: "Write a Lua script for a task, with the available tools",
			Arguments: []Argument{
				{Name: "task", Description: "what the script should do", Required: true},
				{Name: "style", Description: "simple, detailed or production", OneOf: scriptStyles},
			},
		},
		{
			Name: "debug-script", Title: "Debug a script", Fill: p.read,
			Description: "Find out why a stored script fails and fix it",
			Arguments: []Argument{
				{Name: "hash", Description: "hash of the script", Required: true},
				{Name: "error", Description: "the error message"},
			},
		},
		{
			Name: "explain-script", Title: "Explain a script", Fill: p.read,
			Description: "Explain what a stored script does",
			Arguments:   []Argument{{Name: "hash", Description: "hash of the script", Required: true}},
		},
		{
			Name: "midi-workflow", Title: "Work with MIDI", Fill: p.midi,
			Description: "Write a script that makes or changes music",
			Arguments: []Argument{
				{Name: "operation", Description: strings.Join(midiOperations, ", "), Required: true, OneOf: midiOperations},
				{Name: "params", Description: "further requirements, as text or JSON"},
			},
		},
	}
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
	ref, source, err := loadScript(ctx, p.scripts, given["hash"])
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
			lines = append(lines, fmt.Sprintf("%s%s  %s", h.ScriptPath(), catalog.Signature(h.Input), brief(h.Description)))
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

// ScriptCompletions completes hashes, tags, examples, styles and operations.
func ScriptCompletions(s *artifact.Store) Completions {
	hashes := func(ctx context.Context) []string { return hashes(recentScripts(ctx, s, mostCompletions)) }
	tags := func(ctx context.Context) []string {
		found, err := s.Tags(ctx, "", mostCompletions)
		if err != nil {
			return nil // no suggestions
		}
		return found
	}
	fixed := func(values []string) Candidates { return func(context.Context) []string { return values } }
	return Completions{
		"script_hash": hashes, "hash": hashes, "parent": hashes, "tag": tags, "tags": tags,
		"style": fixed(scriptStyles), "operation": fixed(midiOperations),
		exampleTemplate + " name": func(context.Context) []string { return exampleNames() },
	}
}

// mostCompletions is MCP's limit per response.
const mostCompletions = 100

// Candidates returns the possible values of an argument.
type Candidates func(ctx context.Context) []string

// Completions suggests values for arguments of prompts and resource templates,
// by the name of the argument. Where one name means different things, the key is
// the prompt's name or the template's address, a space, and the argument's name.
type Completions map[string]Candidates

// Join merges several; for the same key the later one is used.
func Join(all ...Completions) Completions {
	joined := Completions{}
	for _, c := range all {
		maps.Copy(joined, c)
	}
	return joined
}

// NamespaceCompletions completes the names of servers and tools.
func NamespaceCompletions(c *catalog.Catalog) Completions {
	tools := func(ctx context.Context) []string {
		var names []string
		for _, namespace := range append([]string{""}, c.Namespaces(ctx)...) {
			found, _ := c.In(ctx, namespace)
			for i := range found {
				names = append(names, found[i].Ref.String())
			}
		}
		return names
	}
	return Completions{"namespace": c.Namespaces, "name": c.Namespaces, "tool": tools, "names": tools}
}

// completionParams are the params of completion/complete that are used.
type completionParams struct {
	Ref struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	} `json:"ref"`
	Argument struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"argument"`
}

// Complete takes the params of completion/complete and returns its result: the
// candidates that begin with the typed text, ignoring case, and then those that
// contain it.
func (c Completions) Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p completionParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fault.Wrap(fault.InvalidParams, err, "read completion request")
	}
	var candidates []string
	if f := c.of(p); f != nil {
		candidates = f(ctx)
	}
	values := matching(candidates, strings.ToLower(p.Argument.Value))
	total := len(values)
	return json.Marshal(map[string]any{"completion": map[string]any{
		"values": values[:min(total, mostCompletions)], "total": total, "hasMore": total > mostCompletions,
	}})
}

// of finds the candidates of an argument, the most specific key first.
func (c Completions) of(p completionParams) Candidates {
	if f := c[p.Ref.Name+p.Ref.URI+" "+p.Argument.Name]; f != nil {
		return f
	}
	return c[p.Argument.Name]
}

func matching(candidates []string, typed string) []string {
	begin, contain := []string{}, []string{}
	for _, c := range candidates {
		folded := strings.ToLower(c)
		if strings.HasPrefix(folded, typed) {
			begin = append(begin, c)
		} else if strings.Contains(folded, typed) {
			contain = append(contain, c)
		}
	}
	return append(begin, contain...)
}
