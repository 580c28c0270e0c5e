package builtin

import (
	"context"
	"embed"
	"encoding/json"
	"slices"
	"strings"
	"text/template"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
)

//go:embed prompts/*.md
var promptTexts embed.FS

// Prompt is a request to a model, made of arguments and of what there is just
// now. Its text stands in prompts/<name>.md.
type Prompt struct {
	Name        string
	Title       string
	Description string
	Arguments   []Argument
	// Fill adds what the text needs beside the arguments; nil adds nothing.
	Fill func(ctx context.Context, arguments map[string]string) (map[string]any, error)
}

// Argument is one of a prompt's.
type Argument struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Required    bool     `json:"required"`
	OneOf       []string `json:"-"` // the values it may have, the first when it is left out; nil is any
}

// Prompts serves prompts to the MCP server, in MCP's own form.
type Prompts struct {
	all   []Prompt
	texts *template.Template
}

// NewPrompts joins several families' prompts. A prompt without a text is a
// mistake of the program: it panics.
func NewPrompts(families ...[]Prompt) *Prompts {
	p := &Prompts{all: slices.Concat(families...), texts: template.Must(template.ParseFS(promptTexts, "prompts/*.md"))}
	for _, one := range p.all {
		if p.texts.Lookup(one.Name+".md") == nil {
			panic("builtin: prompt " + one.Name + " has no text")
		}
	}
	return p
}

// ListPrompts lists them.
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

// GetPrompt answers MCP's GetPromptResult.
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
	return nil, err.WithHint("there are %s", strings.Join(known, ", "))
}

// data is what the text is filled with: the arguments, checked, and what Fill
// adds.
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
