package searchtools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/results"
	"github.com/luanette/luanette/internal/tools/toolset"
	"github.com/luanette/luanette/internal/tools/typedecl"
)

type definitionsIn struct {
	Names  []string `json:"names" jsonschema:"as search_tools gives them" min:"1" max:"100"`
	Format string   `json:"format,omitempty" jsonschema:"default json" enum:"json,typescript,lua"`
}

// Definitions is the result of get_tool_definitions. Every requested name is in one of the two lists.
type Definitions struct {
	Tools        []Definition `json:"tools" jsonschema:"empty when declarations were asked for"`
	Declarations string       `json:"declarations,omitempty" jsonschema:"the tools in TypeScript or Lua"`
	Unknown      []Unknown    `json:"unknown" jsonschema:"names without a tool"`
}

// Definition is the complete definition of a tool.
type Definition struct {
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description"`
	Call        string         `json:"call" jsonschema:"in JavaScript, as execute_code takes it"`
	LuaPath     string         `json:"lua_path" jsonschema:"the function in Lua scripts"`
	Input       toolset.Object `json:"input_schema"`
	Output      toolset.Object `json:"output_schema,omitempty"`
	Learned     toolset.Object `json:"learned_output_schema,omitempty" jsonschema:"type of its results so far; it has no output schema"`
	LearnedFrom int            `json:"learned_from,omitempty" jsonschema:"number of those results"`
	Annotations toolset.Object `json:"annotations,omitempty"`
	CallWith    string         `json:"call_with,omitempty" jsonschema:"call_tool_read if it only reads; otherwise call_tool calls it"`
	Stale       bool           `json:"stale,omitempty" jsonschema:"its server is currently disconnected"`
}

// Unknown is a name without a tool.
type Unknown struct {
	Name       string   `json:"name"`
	DidYouMean []string `json:"did_you_mean"`
}

// mostDefinitionText is the number of bytes after which definitions are left out of the
// text.
const mostDefinitionText = 128 << 10

// write writes the definition as text.
func (t *Definition) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s\n%s\nin JavaScript: %s\nin Lua: %s\ninput: %s\n", t.Name, t.Description, t.Call, t.LuaPath+"{…}", t.Input)
	if len(t.Output) > 0 {
		fmt.Fprintf(b, "output: %s\n", t.Output)
	}
	if t.LearnedFrom > 0 {
		fmt.Fprintf(b, "output, learned from %s: %s\n", plural.Count(t.LearnedFrom, "result"), t.Learned)
	}
	if len(t.Annotations) > 0 {
		fmt.Fprintf(b, "annotations: %s\n", t.Annotations)
	}
	if t.CallWith != "" {
		fmt.Fprintf(b, "call it with %s\n", t.CallWith)
	}
	if t.Stale {
		b.WriteString("its server is currently disconnected\n")
	}
	b.WriteByte('\n')
}

// Text returns the definitions in full.
func (d Definitions) Text() string {
	var b strings.Builder
	b.WriteString(d.Declarations)
	for i, t := range d.Tools {
		if b.Len() > mostDefinitionText {
			fmt.Fprintf(&b, "… and %d more: ask for fewer at a time.\n", len(d.Tools)-i)
			break
		}
		t.write(&b)
	}
	for _, u := range d.Unknown {
		fmt.Fprintf(&b, "no tool %q", u.Name)
		if len(u.DidYouMean) > 0 {
			fmt.Fprintf(&b, "; did you mean %s?", strings.Join(u.DidYouMean, " or "))
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

func (d discovery) definitions(ctx context.Context, _ tool.Call, in definitionsIn) (Definitions, error) {
	all := Definitions{Tools: []Definition{}, Unknown: []Unknown{}}
	var declared []typedecl.Tool
	seen := map[string]bool{}
	for _, name := range in.Names {
		if seen[name] {
			continue
		}
		seen[name] = true
		info, err := d.catalog.Resolve(ctx, name)
		if err != nil {
			all.Unknown = append(all.Unknown, Unknown{name, suggestions(err)})
			continue
		}
		if !d.catalog.Shows(ctx, info.Ref) {
			all.Unknown = append(all.Unknown, Unknown{name, []string{}})
			continue
		}
		if in.Format == "" || in.Format == "json" {
			def := d.definitionOf(&info)
			def.CallWith = d.callWith(ctx, &info)
			all.Tools = append(all.Tools, def)
		} else {
			declared = append(declared, d.declared(&info))
		}
	}
	if len(declared) > 0 {
		all.Declarations = declarations[in.Format](declared)
	}
	return all, nil
}

// declarations are the languages in which tools can be declared.
var declarations = map[string]func([]typedecl.Tool) string{"typescript": typedecl.TypeScript, "lua": typedecl.Lua}

// declared returns a tool to declare, with the learned type of its results if it has
// no output schema.
func (d discovery) declared(info *tool.Info) typedecl.Tool {
	t := typedecl.Of(info)
	if learned, ok := d.learned(info); ok {
		t.Output, t.Learned = learned.Schema, learned.Results
	}
	return t
}

func (d discovery) learned(info *tool.Info) (results.Learned, bool) {
	if d.options.Shapes == nil || info.Output != nil {
		return results.Learned{}, false
	}
	return d.options.Shapes.Learned(info.Ref)
}

// suggestions returns the names that a tool_not_found error suggests.
func suggestions(err error) []string {
	var details struct {
		DidYouMean []string `json:"did_you_mean"`
	}
	if json.Unmarshal(fault.From(err).Details, &details) != nil || details.DidYouMean == nil {
		return []string{}
	}
	return details.DidYouMean
}

// DefinitionOf returns the definition of a tool as its server gives it.
func DefinitionOf(info *tool.Info) Definition { return discovery{}.definitionOf(info) }

func (d discovery) definitionOf(info *tool.Info) Definition {
	path := info.ScriptPath()
	def := Definition{
		Name: info.Ref.String(), Title: info.Title, Description: info.Description, Call: "await " + path + "({…})", LuaPath: path,
		Input: toolset.Object(info.Input), Output: toolset.Object(info.Output), Stale: info.Stale,
	}
	if raw, ok := rawjson.Get(info.Raw, "annotations"); ok && rawjson.IsObject(raw) {
		def.Annotations = toolset.Object(raw)
	}
	if learned, ok := d.learned(info); ok {
		def.Learned, def.LearnedFrom = toolset.Object(learned.Schema), learned.Results
	}
	return def
}
