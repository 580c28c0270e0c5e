// Package publish makes scripts tools: it keeps every version of what is published under a
// name, and publishes the scripts of a folder.
package publish

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
)

// SourceReader reads the sources of stored scripts.
type SourceReader interface {
	Read(ctx context.Context, ref cas.Ref, limit int64) ([]byte, error)
}

// Options are the options of Published.
type Options struct {
	Reserved func(name string) bool    // names of other tools; nil means none
	Shared   bool                      // other nodes publish too, from their own folders, and relay events
	Changed  func(ctx context.Context) // called after the list of tools has changed; may be nil
	// Use ensures that a source exists and stays; nil means that none is ever removed.
	Use    func(ctx context.Context, tx *db.Tx, ref cas.Ref) error
	Events *event.Bus
	Log    *slog.Logger
	Clock  clock.Clock // nil means the system clock
}

// Published is a source of the scripts that are published as tools, without a namespace.
// The database stores every version of every name. A script that somebody of an
// organisation publishes is called NAME@ORG here; its members call it NAME. It is safe for
// concurrent use.
type Published struct {
	runner  *script.Runner
	sources SourceReader
	db      *db.DB
	options Options

	changing sync.Mutex               // held while the list changes
	unusable map[string]int           // the versions that could not be described, by name; changing guards it
	list     atomic.Pointer[toolList] // what is published now
}

// toolList is an immutable list of the published tools.
type toolList struct {
	tools  []tool.Info // sorted by name
	byName map[string]*publication
}

// publication is one published script, ready to run.
type publication struct {
	Version
	origin      string
	source      string
	language    string
	description script.Description
	info        tool.Info
}

// Version is one version of a published script.
type Version struct {
	Name        string    `json:"name"`
	Version     int       `json:"version"` // 1, 2, 3 …
	Hash        cas.Ref   `json:"hash"`
	Publisher   string    `json:"publisher,omitempty"`
	PublishedAt time.Time `json:"published_at"`
	Current     bool      `json:"current"` // it is the tool now
}

// Changed is published when a name is given another script, or withdrawn.
type Changed struct {
	Name    string  `json:"name"`
	Hash    cas.Ref `json:"hash"` // zero if it was withdrawn
	Version int     `json:"version"`
}

// EventType is "script.published".
func (Changed) EventType() string { return "script.published" }

// EventKey is the name.
func (c Changed) EventKey() string { return c.Name }

// Invalidated is published when a name no longer refers to a script: what was derived
// from it is out of date.
type Invalidated struct {
	Name string  `json:"name"`
	Hash cas.Ref `json:"hash"`
}

// EventType is "script.invalidate".
func (Invalidated) EventType() string { return "script.invalidate" }

// EventKey is the name.
func (i Invalidated) EventKey() string { return i.Name }

// Open loads the published scripts from the database and migrates its tables. A
// script that can no longer be read or described is logged and left out; its history
// stays.
func Open(ctx context.Context, database *db.DB, runner *script.Runner, sources SourceReader, o Options) (*Published, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Use == nil {
		o.Use = func(context.Context, *db.Tx, cas.Ref) error { return nil }
	}
	if err := database.Migrate(ctx, script.MigrationSet, script.Migrations); err != nil {
		return nil, err
	}
	p := &Published{runner: runner, sources: sources, db: database, options: o, unusable: map[string]int{}}
	byName, err := p.load(ctx, nil)
	if err != nil {
		return nil, err
	}
	p.list.Store(newToolList(byName))
	return p, nil
}

func newToolList(byName map[string]*publication) *toolList {
	b := &toolList{byName: byName}
	for _, one := range byName {
		b.tools = append(b.tools, one.info)
	}
	slices.SortFunc(b.tools, func(x, y tool.Info) int { return strings.Compare(x.Name, y.Name) })
	return b
}

// Request asks for a script to be published.
type Request struct {
	Hash      cas.Ref
	Name      string // "" means the one from describe()
	Publisher string // the ID of the publisher's principal
	Origin    string // the file it comes from; "" for a stored script
}

// Publish makes a script a tool. If the name belongs to another script, this one becomes
// its next version. Publishing the same script again changes nothing.
func (p *Published) Publish(ctx context.Context, want Request) (Version, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	ready, err := p.ready(ctx, want)
	if err != nil {
		return Version{}, err
	}
	if now := p.list.Load().byName[ready.Name]; now != nil && now.Hash == want.Hash && now.origin == want.Origin {
		return now.Version, nil
	}
	if err := p.checkOwner(ctx, ready.Name); err != nil {
		return Version{}, err
	}
	if err := p.record(ctx, ready); err != nil {
		return Version{}, err
	}
	ready.define()
	old := p.replace(ctx, ready.Name, ready)
	p.options.Events.PublishAbout(ready.Name, Changed{Name: ready.Name, Hash: ready.Hash, Version: ready.Version.Version})
	p.publishInvalidated(old)
	return ready.Version, nil
}

// ready returns what would be published.
func (p *Published) ready(ctx context.Context, want Request) (*publication, error) {
	ready, err := p.prepare(ctx, Version{Name: want.Name, Hash: want.Hash, Publisher: want.Publisher, Current: true}, want.Origin)
	if err != nil {
		return nil, err
	}
	if err := p.checkName(ready.Name); err != nil {
		return nil, err
	}
	ready.Name = principal.InOrg(ready.Name, principal.Of(ctx).ActingOrg())
	return ready, p.checkOrigin(ready.Name, want.Origin)
}

// CheckRequest returns why a script cannot be published.
func (p *Published) CheckRequest(ctx context.Context, want Request) error {
	ready, err := p.ready(ctx, want)
	if err != nil {
		return err
	}
	return p.checkOwner(ctx, ready.Name)
}

// Unpublish withdraws a tool, by the caller's name of it, and reports whether there was one.
// Its history stays.
func (p *Published) Unpublish(ctx context.Context, name string) (bool, error) {
	p.changing.Lock()
	defer p.changing.Unlock()
	if principal.Of(ctx).IsForeign(name) {
		return false, nil
	}
	name = p.fullName(ctx, name)
	if err := p.checkOwner(ctx, name); err != nil {
		return false, err
	}
	had, err := p.forget(ctx, name)
	if err != nil || !had {
		return false, err
	}
	old := p.replace(ctx, name, nil)
	p.options.Events.PublishAbout(name, Changed{Name: name})
	p.publishInvalidated(old)
	return true, nil
}

// publishInvalidated publishes that a script is no longer a tool, if it was one.
func (p *Published) publishInvalidated(old *publication) {
	if old != nil {
		p.options.Events.PublishAbout(old.Name, Invalidated{Name: old.Name, Hash: old.Hash})
	}
}

// replace sets or removes the publication of a name and returns the old one; changing is
// held.
func (p *Published) replace(ctx context.Context, name string, with *publication) (old *publication) {
	byName := map[string]*publication{}
	for _, one := range p.list.Load().byName {
		byName[one.Name] = one
	}
	old = byName[name]
	delete(byName, name)
	if with != nil {
		byName[name] = with
	}
	p.list.Store(newToolList(byName))
	if p.options.Changed != nil {
		p.options.Changed(ctx)
	}
	return old
}

// prepare reads and describes a script, so that it can be a tool.
func (p *Published) prepare(ctx context.Context, v Version, origin string) (*publication, error) {
	source, err := p.sources.Read(ctx, v.Hash, script.MaxSource)
	if err != nil {
		return nil, err
	}
	name := v.Name
	if name == "" {
		name = origin
	}
	q := p.runner.WithLanguage(ctx, script.Request{Source: string(source), Name: name, Hash: v.Hash})
	d, err := p.runner.Describe(ctx, q)
	if err != nil {
		return nil, cannotPublish(v.Hash, err)
	}
	if !d.Defined {
		return nil, fault.New(fault.Script, "publish %s: the script has no describe()", v.Hash.Short()).
			WithHint("define function describe() return { name = …, description = …, params = { … } } end, and store it again")
	}
	if v.Name == "" {
		v.Name = d.Name
	}
	ready := &publication{Version: v, origin: origin, source: string(source), language: q.Language, description: d}
	ready.define()
	return ready, nil
}

func cannotPublish(hash cas.Ref, err error) error {
	return fault.Wrap(fault.Script, err, "publish %s: the script cannot be described", hash.Short()).
		WithHint("correct describe() and store the script again").WithDetails(err)
}

// Tools lists the published tools, sorted by name.
func (p *Published) Tools(context.Context) ([]tool.Info, error) { return p.list.Load().tools, nil }

// fullName returns the script that the caller's name of it stands for: that of their
// organisation if it is published there, else the server's.
func (p *Published) fullName(ctx context.Context, name string) string {
	byName := p.list.Load().byName
	return principal.Of(ctx).Namespace(name, func(full string) bool { return byName[full] != nil })
}

// Script returns the script that is published under the caller's name of it.
func (p *Published) Script(ctx context.Context, name string) (script.Request, bool) {
	one := p.list.Load().byName[p.fullName(ctx, name)]
	if one == nil || principal.Of(ctx).IsForeign(name) {
		return script.Request{}, false
	}
	return one.request(), true
}

// Page is what a published script says about its use, and the script.
type Page struct{ Text, Source, Language string }

// Page returns the page of the script that is published under the caller's name of it; false if
// it has none.
func (p *Published) Page(ctx context.Context, name string) (Page, bool) {
	one := p.list.Load().byName[p.fullName(ctx, name)]
	if one == nil || one.description.Page == "" {
		return Page{}, false
	}
	return Page{one.description.Page, one.source, one.language}, true
}

// request returns the request to run the script. In messages it has its plain name.
func (p *publication) request() script.Request {
	name, org := principal.SplitNamespace(p.Name)
	return script.Request{Source: p.source, Language: p.language, Name: name, Own: p.description.Name, Org: org, Hash: p.Hash, Creator: p.Publisher}
}

// Call runs main of a published script with the arguments and defaults.
func (p *Published) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	one := p.list.Load().byName[call.Ref.Name]
	if one == nil || call.Ref.Space != "" || principal.Of(ctx).IsForeign(call.Ref.Name) {
		return tool.Result{}, fault.New(fault.ToolNotFound, "no published script %q", call.Ref)
	}
	params, err := one.description.Check(call.Args)
	if err != nil {
		return script.ToolFailure(script.Outcome{}, err), nil
	}
	q := one.request()
	q.Params, q.Main, q.Caller = params, true, call.Caller
	outcome, err := p.runner.Run(ctx, q)
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Result{}, fault.Wrap(fault.Cancelled, context.Cause(ctx), "run %s", call.Ref)
	case err != nil:
		return script.ToolFailure(outcome, err), nil
	}
	return script.ToolResult(outcome)
}

var _ tool.Source = (*Published)(nil)

// ScriptKey is the key in a published tool's _meta that identifies its script.
const ScriptKey = "luanette/script"

// define writes the tool's definition from the script's description.
func (p *publication) define() {
	d := &p.description
	name, _ := principal.SplitNamespace(p.Name)
	info := tool.Info{
		Ref: tool.Ref{Name: p.Name}, Title: d.Title, Description: toolText(d, name),
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

// encode encodes values that cannot fail.
func encode(v any) json.RawMessage {
	raw, _ := tool.Encode(v)
	return raw
}

// toolText returns the tool's description for models.
func toolText(d *script.Description, name string) string {
	text := d.Description
	if text == "" {
		text = "Runs the script " + name + "."
	}
	if d.Returns != "" {
		text = strings.TrimRight(text, " \n") + "\nReturns: " + d.Returns
	}
	return text
}

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
	case !script.ValidName(name) || strings.Contains(name, "__"):
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
