package script

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// ScriptKey is the key in a published tool's _meta that identifies its script.
const ScriptKey = "luanette/script"

// define writes the tool's definition from the script's description.
func (p *publication) define() {
	d := &p.description
	name, _ := principal.SplitNamespace(p.Name)
	info := tool.Info{
		Ref: tool.Ref{Name: p.Name}, Title: d.Title, Description: d.toolText(name),
		Input: d.Schema(), Hints: d.Hints, RunsScript: true, Tags: d.Tags,
	}
	raw := rawjson.SetText(nil, "name", name)
	if info.Title != "" {
		raw = rawjson.SetText(raw, "title", info.Title)
	}
	raw = rawjson.SetText(raw, "description", info.Description)
	raw = rawjson.Set(raw, "inputSchema", info.Input)
	raw = rawjson.Set(raw, "annotations", encode(d.Hints.Annotations()))
	raw = rawjson.Set(raw, "_meta", rawjson.Set(nil, ScriptKey, encode(map[string]any{"hash": p.Hash, "version": p.Version.Version})))
	info.Raw = raw
	p.info = info
}

// toolText returns the tool's description for models.
func (d *Description) toolText(name string) string {
	text := d.Description
	if text == "" {
		text = "Runs the script " + name + "."
	}
	if d.Returns != "" {
		text = strings.TrimRight(text, " \n") + "\nReturns: " + d.Returns
	}
	return text
}

// toolName matches valid names of published tools: every client accepts them, and our
// prefixes fit before them.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,47}$`) })

// checkOwner lets only the publisher of a name change it, and administrators of its
// organisation: others call the tool with their own rights, which another publisher's
// script would get.
func (p *Published) checkOwner(ctx context.Context, name string) error {
	now := p.list.Load().byName[name]
	if now == nil {
		return nil
	}
	who := principal.Of(ctx)
	if _, org := principal.SplitNamespace(name); who.Owns(now.Publisher) || org != "" && who.May(principal.Org, org) {
		return nil
	}
	return fault.New(fault.Denied, "publish: %s was published by another user", who.NameOf(name)).
		WithHint("choose another name; only its publisher or an administrator may change it")
}

// checkName checks that a script may have the name.
func (p *Published) checkName(name string) error {
	switch {
	case name == "":
		return fault.New(fault.InvalidParams, "publish: the script has no name").
			WithHint("give a name, or let describe() return one")
	case !toolName().MatchString(name) || strings.Contains(name, "__"):
		return fault.New(fault.InvalidParams, "publish: %q cannot be a tool's name", name).
			WithHint("use a letter, then at most 47 letters, digits, - or single _")
	case slices.Contains(tool.ScriptFunctions, name):
		return fault.New(fault.InvalidParams, "publish: in scripts, mcp.%s is a function", name).WithHint("choose another name")
	case p.options.Reserved != nil && p.options.Reserved(name):
		return fault.New(fault.Conflict, "publish: %s is the name of a built-in tool", name).WithHint("choose another name")
	}
	return nil
}

// checkOrigin checks that a script from that origin may replace the one of this name.
func (p *Published) checkOrigin(name, origin string) error {
	now := p.list.Load().byName[name]
	switch {
	case now == nil || now.origin == origin:
		return nil
	case now.origin == "":
		return fault.New(fault.Conflict, "publish: %s was published by a user", name).
			WithHint("choose another name in %s, or withdraw the other with script_unpublish", origin)
	default:
		return fault.New(fault.Conflict, "publish: %s belongs to the file %s", name, now.origin).
			WithHint("choose another name, or change that file")
	}
}
