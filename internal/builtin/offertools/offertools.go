// Package offertools are the tools that find and use resources and prompts: for agents whose
// clients have no access to them, and for scripts.
package offertools

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/offers"
	"github.com/luanette/luanette/internal/mcp/skills"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/toolset"
)

//go:embed *.md
var texts embed.FS

// Tools makes the tools.
func Tools(all *offers.Offers) []toolset.Tool {
	t := offerTools{all}
	reads := tool.Hints{ReadOnly: true}
	return []toolset.Tool{
		toolset.Define(texts, "resource_search", tool.Hints{ReadOnly: true, ClosedWorld: true}, t.search),
		toolset.Define(texts, "resource_read", reads, t.read),
		toolset.Define(texts, "prompt_get", reads, t.prompt),
	}
}

type offerTools struct{ all *offers.Offers }

// The kinds of what is found, by the lists that have them. Skills come first: their SKILL.md may
// be a resource, too.
var kinds = []struct{ kind, method string }{
	{"skill", wire.MethodSkillsList}, {"resource", wire.MethodResourcesList}, {"template", wire.MethodResourceTemplates}, {"prompt", wire.MethodPromptsList},
}

type searchIn struct {
	Query     string `json:"query,omitempty" jsonschema:"words of names, URIs and descriptions; all if empty" max:"1000"`
	Kind      string `json:"kind,omitempty" jsonschema:"only these" enum:"resource,template,prompt,skill"`
	Namespace string `json:"namespace,omitempty" jsonschema:"only of this server" max:"200"`
	Limit     int    `json:"limit,omitempty" jsonschema:"how many at most (20)" min:"1" max:"500"`
}

// defaultFound is how many entries are returned if the caller does not say.
const defaultFound = 20

// Found is the result of resource_search.
type Found struct {
	Found []Entry `json:"found"`
	Total int     `json:"total" jsonschema:"how many there are, also beyond the limit"`
}

// Entry is a resource, a template, a prompt or a skill.
type Entry struct {
	Kind        string       `json:"kind"`
	Namespace   string       `json:"namespace,omitempty" jsonschema:"its server; none: Luanette itself"`
	Name        string       `json:"name" jsonschema:"URI, template of URIs, or name of the prompt; a skill has the URI of its SKILL.md"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Arguments   toolset.JSON `json:"arguments,omitempty" schema:"-"`
}

func (t offerTools) search(ctx context.Context, _ tool.Call, in searchIn) (Found, error) {
	words := strings.Fields(strings.ToLower(in.Query))
	var hits []hit
	seen := map[string]bool{}
	for _, k := range kinds {
		if in.Kind != "" && in.Kind != k.kind {
			continue
		}
		entries, err := t.all.Entries(ctx, k.method)
		if err != nil {
			return Found{}, err
		}
		for _, e := range entries {
			found := describe(ctx, k.kind, e)
			if score := found.score(words); (score > 0 || len(words) == 0) && in.isOf(found) && !seen[found.Name] {
				hits = append(hits, hit{found, score})
			}
			seen[found.Name] = true
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	f := Found{Found: []Entry{}, Total: len(hits)}
	for _, h := range hits[:min(len(hits), cmp.Or(in.Limit, defaultFound))] {
		f.Found = append(f.Found, h.Entry)
	}
	return f, nil
}

// isOf tells whether an entry is of the server that is asked for.
func (in *searchIn) isOf(e Entry) bool { return in.Namespace == "" || in.Namespace == e.Namespace }

type hit struct {
	Entry
	score int
}

func describe(ctx context.Context, kind string, e offers.Entry) Entry {
	found := Entry{Kind: kind, Namespace: principal.Of(ctx).NameOf(e.Namespace), Name: e.Shown}
	if kind == "skill" {
		e.Raw = skills.Resource(e.Raw)
	}
	found.Title, _ = rawjson.GetText(e.Raw, "title")
	if found.Title == "" && kind != "prompt" {
		found.Title, _ = rawjson.GetText(e.Raw, "name")
	}
	found.Description, _ = rawjson.GetText(e.Raw, "description")
	found.Arguments, _ = rawjson.Get(e.Raw, "arguments")
	return found
}

// score counts the words that an entry has, those of its name twice.
func (e *Entry) score(words []string) (score int) {
	name, rest := strings.ToLower(e.Name+" "+e.Title), strings.ToLower(e.Description+" "+e.Kind)
	for _, word := range words {
		switch word = strings.TrimSuffix(word, "s"); {
		case strings.Contains(name, word):
			score += 2
		case strings.Contains(rest, word):
			score++
		}
	}
	return score
}

type readIn struct {
	URI    string `json:"uri" jsonschema:"of the resource" min:"1" max:"4000"`
	Server string `json:"server,omitempty" jsonschema:"whose it is, where several have the same URI" max:"200"`
}

// Contents is the result of resource_read.
type Contents struct {
	Contents toolset.JSON `json:"contents" schema:"-"`
}

// Text is the text of the contents; binary ones are named only.
func (c Contents) Text() string { return textsIn(c.Contents, "text") }

func (t offerTools) read(ctx context.Context, call tool.Call, in readIn) (Contents, error) {
	uri := in.URI
	if in.Server != "" {
		uri = offers.Qualified(in.Server, uri)
	}
	result, err := t.all.Request(ctx, wire.MethodResourcesRead, rawjson.SetText(nil, "uri", uri), call.Caller)
	contents, _ := rawjson.Get(result, "contents")
	return Contents{contents}, err
}

type promptIn struct {
	Name      string            `json:"name" jsonschema:"as resource_search returns it" min:"1" max:"500"`
	Arguments map[string]string `json:"arguments,omitempty" jsonschema:"of the prompt"`
}

// Messages is the result of prompt_get.
type Messages struct {
	Description string       `json:"description,omitempty"`
	Messages    toolset.JSON `json:"messages" schema:"-"`
}

// Text is the text of the messages.
func (m Messages) Text() string { return textsIn(m.Messages, "content", "text") }

func (t offerTools) prompt(ctx context.Context, call tool.Call, in promptIn) (Messages, error) {
	params := rawjson.SetText(nil, "name", in.Name)
	if len(in.Arguments) > 0 {
		raw, err := json.Marshal(in.Arguments)
		if err != nil {
			return Messages{}, err
		}
		params = rawjson.Set(params, "arguments", raw)
	}
	result, err := t.all.Request(ctx, wire.MethodPromptsGet, params, call.Caller)
	var m Messages
	m.Description, _ = rawjson.GetText(result, "description")
	m.Messages, _ = rawjson.Get(result, "messages")
	return m, err
}

// textsIn joins the texts at a path of each item; items without text are there as they are.
func textsIn(list json.RawMessage, path ...string) string {
	items, _ := rawjson.Items(list)
	found := make([]string, len(items))
	for i, item := range items {
		at := item
		for _, key := range path {
			at, _ = rawjson.Get(at, key)
		}
		text, ok := rawjson.Text(at)
		if !ok {
			text = string(rawjson.Delete(item, "blob"))
		}
		found[i] = text
	}
	return strings.Join(found, "\n\n")
}
