package builtin

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// Prompt is an MCP prompt, a template filled with arguments and current data.
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

// NewPrompts serves prompts whose texts are in prompts/<name>.md of texts. It panics if one
// has none.
func NewPrompts(texts fs.FS, all []Prompt) *Prompts {
	p := &Prompts{all: all, texts: template.Must(template.ParseFS(texts, "prompts/*.md"))}
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
			return nil, fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "read arguments of prompt %s", p.Name).WithHint("all arguments of prompts are strings")
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

// MostCompletions is MCP's limit per response.
const MostCompletions = 100

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
		return nil, fault.Wrap(fault.InvalidParams, rawjson.InWords(err), "read completion request")
	}
	var candidates []string
	if f := c.of(p); f != nil {
		candidates = f(ctx)
	}
	values := matching(candidates, strings.ToLower(p.Argument.Value))
	total := len(values)
	return json.Marshal(map[string]any{"completion": map[string]any{
		"values": values[:min(total, MostCompletions)], "total": total, "hasMore": total > MostCompletions,
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
