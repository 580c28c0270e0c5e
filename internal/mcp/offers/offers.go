// Package offers joins what all upstreams offer beside tools with our own: the resources,
// resource templates, prompts, completions and skills at /mcp. Lists are those that are known; a request
// goes to the one upstream that has its subject, through the same checks as at /mcp/NAME, and
// never to several.
//
// A resource keeps its URI. Where two upstreams have the same, the later one in the order of
// names is listed with its name in front, and each can be used so. A prompt is NAMESPACE__NAME,
// and the skills of an upstream are in a folder of its name.
package offers

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/apps"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/skills"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// Resources are our own, in MCP's form.
type Resources interface {
	ListResources(ctx context.Context) ([]json.RawMessage, error)
	ListTemplates(ctx context.Context) ([]json.RawMessage, error)
	ReadResource(ctx context.Context, uri string, caller *tool.Caller) (json.RawMessage, error)
}

// Prompts are our own, in MCP's form. args is an object of strings or nil.
type Prompts interface {
	ListPrompts(ctx context.Context) ([]json.RawMessage, error)
	GetPrompt(ctx context.Context, name string, args json.RawMessage, caller *tool.Caller) (json.RawMessage, error)
}

// Completer suggests values for arguments of our own prompts and templates. It takes the params
// of completion/complete and returns its result.
type Completer interface {
	Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
}

// Skills are our own, in the form of the extension.
type Skills interface {
	ListSkills(ctx context.Context) ([]json.RawMessage, error)
	// ReadSkill returns the content of a file of a skill, as resources/read does.
	ReadSkill(ctx context.Context, uri string) (json.RawMessage, error)
}

// Options are what is joined.
type Options struct {
	Resources Resources
	Prompts   Prompts
	Completer Completer
	Skills    Skills
	Upstreams hub.Upstreams // nil: there are only our own
	Links     *Links
	// Pages are those of the tools that the caller sees, if it may read them; may be nil.
	Pages func(ctx context.Context) []Page
}

// Page is the page of a tool, which its upstream need not list as a resource.
type Page struct{ Namespace, URI string }

// Offers are all resources, templates, prompts and completions. Close them when done.
type Offers struct {
	Options
	subscriptions subscriptions
}

// New joins what o has.
func New(o Options) *Offers { return &Offers{Options: o} }

var _ hub.Offers = (*Offers)(nil)

// Entry is one entry of a list.
type Entry struct {
	Namespace string          // the upstream; "" is us
	ID        string          // its name or URI there
	Shown     string          // and here
	Raw       json.RawMessage // as it is shown; nil: it is not listed
}

// keys are those by which the entries of a list are told apart.
var keys = map[string]string{
	wire.MethodPromptsList: "name", wire.MethodResourcesList: "uri", wire.MethodResourceTemplates: "uriTemplate", wire.MethodSkillsList: "uri",
}

// List implements hub.Offers.
func (o *Offers) List(ctx context.Context, method string) ([]json.RawMessage, error) {
	entries, err := o.Entries(ctx, method)
	list := make([]json.RawMessage, len(entries))
	for i := range entries {
		list[i] = entries[i].Raw
	}
	return list, err
}

// Entries are those of a list: our own, and then those of the upstreams that the caller sees.
func (o *Offers) Entries(ctx context.Context, method string) ([]Entry, error) {
	list, err := o.known(ctx, method)
	return slices.DeleteFunc(list, func(e Entry) bool { return e.Raw == nil }), err
}

// known are the entries of a list, and the pages of tools that are not listed.
func (o *Offers) known(ctx context.Context, method string) ([]Entry, error) {
	own, err := o.own(ctx, method)
	if err != nil {
		return nil, err
	}
	spaces := o.namespaces(ctx)
	found := make([][]json.RawMessage, len(spaces))
	var reading sync.WaitGroup // one that has just been started may let us wait
	for i, space := range spaces {
		reading.Go(func() {
			if peer, ok := o.Upstreams.Peer(ctx, space); ok {
				found[i] = peer.Listed(ctx, method)
			}
		})
	}
	reading.Wait()
	list := entriesOf("", keys[method], own)
	var pages []Page
	if method == wire.MethodResourcesList {
		pages = o.pages(ctx)
	}
	for i, space := range spaces {
		listed := entriesOf(space, keys[method], found[i])
		list = append(append(list, listed...), unlisted(pages, space, listed)...)
	}
	name(principal.Of(ctx), method, list)
	return list, nil
}

// own is a list of what we offer ourselves.
func (o *Offers) own(ctx context.Context, method string) ([]json.RawMessage, error) {
	switch method {
	case wire.MethodPromptsList:
		return o.Prompts.ListPrompts(ctx)
	case wire.MethodSkillsList:
		return o.Skills.ListSkills(ctx)
	case wire.MethodResourceTemplates:
		return o.Resources.ListTemplates(ctx)
	}
	list, err := o.Resources.ListResources(ctx)
	if err != nil {
		return nil, err
	}
	ours, err := o.Skills.ListSkills(ctx)
	for _, entry := range ours {
		list = append(list, skills.Resource(entry))
	}
	return list, err
}

func (o *Offers) pages(ctx context.Context) []Page {
	if o.Pages == nil {
		return nil
	}
	return o.Pages(ctx)
}

// unlisted are the pages of an upstream's tools that it does not list.
func unlisted(pages []Page, space string, listed []Entry) (list []Entry) {
	for _, page := range pages {
		is := func(e Entry) bool { return e.ID == page.URI }
		if page.Namespace == space && !slices.ContainsFunc(listed, is) && !slices.ContainsFunc(list, is) {
			list = append(list, Entry{Namespace: space, ID: page.URI, Shown: page.URI})
		}
	}
	return list
}

// namespaces are those that the caller sees, sorted.
func (o *Offers) namespaces(ctx context.Context) []string {
	if o.Upstreams == nil {
		return nil
	}
	return principal.Of(ctx).Visible(o.Upstreams.Namespaces())
}

func entriesOf(space, key string, items []json.RawMessage) []Entry {
	list := make([]Entry, len(items))
	for i, item := range items {
		id, _ := rawjson.GetText(item, key)
		list[i] = Entry{Namespace: space, ID: id, Shown: id, Raw: item}
	}
	return list
}

// name gives the entries of a list the names that the caller sees.
func name(who principal.Principal, method string, list []Entry) {
	taken := map[string]bool{}
	for i := range list {
		e := &list[i]
		space := who.NameOf(e.Namespace)
		switch {
		case e.Namespace == "":
		case method == wire.MethodPromptsList:
			if e.Shown = catalog.ExposedName(space, e.ID, false); taken[e.Shown] {
				e.Shown = catalog.ExposedName(space, e.ID, true)
			}
		default:
			e.Shown = shownURI(space, e.ID, taken)
		}
		taken[e.Shown] = true
		if e.Shown == e.ID || e.Raw == nil {
			continue
		}
		if method == wire.MethodSkillsList {
			e.Raw = skills.Moved(e.Raw, e.Shown)
		}
		if _, titled := rawjson.Get(e.Raw, "title"); !titled && method == wire.MethodPromptsList {
			e.Raw = rawjson.SetText(e.Raw, "title", e.ID)
		}
		e.Raw = rawjson.SetText(e.Raw, keys[method], e.Shown)
	}
}

// shownURI is the URI of an upstream's resource here: its own, unless that is taken or of a skill.
func shownURI(space, uri string, taken map[string]bool) string {
	if !taken[uri] && !strings.HasPrefix(uri, skills.Scheme) {
		return uri
	}
	if shown := Qualified(space, uri); !taken[shown] {
		return shown
	}
	return space + "+" + uri
}

// Qualified is a URI with the name of its upstream in front.
func Qualified(space, uri string) string {
	if rest, ok := strings.CutPrefix(uri, apps.Scheme); ok { // hosts of Apps want that scheme
		return apps.Scheme + space + "+" + rest
	}
	if rest, ok := strings.CutPrefix(uri, skills.Scheme); ok { // the last folder is the name of a skill
		return skills.Scheme + space + "/" + rest
	}
	return space + "+" + uri
}

// unqualified takes such a URI apart.
func unqualified(shown string) (space, uri string, ok bool) {
	scheme, mark := "", "+"
	for known, itsMark := range map[string]string{apps.Scheme: "+", skills.Scheme: "/"} {
		if rest, has := strings.CutPrefix(shown, known); has {
			scheme, mark, shown = known, itsMark, rest
		}
	}
	space, uri, ok = strings.Cut(shown, mark)
	return space, scheme + uri, ok
}

// Request implements hub.Offers.
func (o *Offers) Request(ctx context.Context, method string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	switch method {
	case wire.MethodResourcesRead:
		uri, _ := rawjson.GetText(params, "uri")
		return o.read(ctx, uri, params, caller)
	case wire.MethodPromptsGet:
		name, _ := rawjson.GetText(params, "name")
		return o.prompt(ctx, name, params, caller)
	case wire.MethodComplete:
		return o.complete(ctx, params, caller)
	case wire.MethodSkillsGet:
		uri, _ := rawjson.GetText(params, "uri")
		return o.skill(ctx, uri, params, caller)
	case wire.MethodDirectoryRead:
		uri, _ := rawjson.GetText(params, "uri")
		return o.folder(ctx, uri)
	}
	return nil, wire.Errorf(wire.CodeMethodNotFound, "method not found: %s", method)
}

// target is an upstream, and the name that something has there; space is "" for our own.
type target struct {
	space, id string
	peer      hub.Peer
}

// at is a target at an upstream; false if the caller does not see that.
func (o *Offers) at(ctx context.Context, space, id string) (target, bool) {
	if space == "" {
		return target{id: id}, true
	}
	if !slices.Contains(o.namespaces(ctx), space) {
		return target{}, false
	}
	peer, ok := o.Upstreams.Peer(ctx, space)
	return target{space, id, peer}, ok
}

// entryAt is the target of an entry.
func (o *Offers) entryAt(ctx context.Context, e Entry) (target, error) {
	t, ok := o.at(ctx, e.Namespace, e.ID)
	if !ok {
		return t, fault.New(fault.NotFound, "%q is not there any more", e.Shown)
	}
	return t, nil
}

func (o *Offers) read(ctx context.Context, uri string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	t, err := o.resource(ctx, uri)
	switch {
	case err != nil:
		return nil, err
	case t.space == "" && strings.HasPrefix(t.id, skills.Scheme):
		return o.Skills.ReadSkill(ctx, t.id)
	case t.space == "":
		return o.Resources.ReadResource(ctx, uri, caller)
	}
	result, err := t.peer.Request(ctx, wire.MethodResourcesRead, rawjson.SetText(params, "uri", t.id), caller)
	if err == nil && strings.HasPrefix(t.id, apps.Scheme) {
		o.Links.notePage(principal.Of(ctx), t.space)
	}
	if err != nil || t.id == uri {
		return result, err
	}
	raw, _ := rawjson.Get(result, "contents")
	contents, _ := rawjson.Items(raw)
	for i := range contents { // the client knows it by the name that it asked for
		if its, _ := rawjson.GetText(contents[i], "uri"); its == t.id {
			contents[i] = rawjson.SetText(contents[i], "uri", uri)
		}
	}
	return rawjson.Set(result, "contents", rawjson.List(contents)), nil
}

func (o *Offers) prompt(ctx context.Context, name string, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	t, err := o.findPrompt(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case t.space == "":
		args, _ := rawjson.Get(params, "arguments")
		return o.Prompts.GetPrompt(ctx, name, args, caller)
	}
	result, err := t.peer.Request(ctx, wire.MethodPromptsGet, rawjson.SetText(params, "name", t.id), caller)
	if err == nil {
		o.Links.notePrompt(ctx, t.space, result)
	}
	return result, err
}

// findPrompt finds a prompt by the name that the caller sees, or as NAMESPACE__NAME or
// NAMESPACE.NAME.
func (o *Offers) findPrompt(ctx context.Context, name string) (target, error) {
	entries, err := o.Entries(ctx, wire.MethodPromptsList)
	if err != nil {
		return target{}, err
	}
	known := make([]string, len(entries))
	for i, e := range entries {
		if known[i] = e.Shown; e.Shown == name || e.Namespace != "" && principal.Of(ctx).NameOf(e.Namespace)+"."+e.ID == name {
			return o.entryAt(ctx, e)
		}
	}
	if space, id, ok := strings.Cut(name, "__"); ok { // one that its server does not list
		if t, ok := o.at(ctx, o.namespace(ctx, space), id); ok && t.space != "" {
			return t, nil
		}
	}
	return target{}, fault.New(fault.InvalidParams, "no prompt %q", name).WithHint("%s", didYouMean(name, known))
}

// namespace is the upstream that a name stands for.
func (o *Offers) namespace(ctx context.Context, name string) string {
	return principal.Of(ctx).Namespace(name, func(space string) bool { return o.Upstreams != nil && o.Upstreams.Has(space) })
}

func didYouMean(name string, known []string) string {
	if near := suggest.Names(name, known, 3); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	const most = 10
	if len(known) > most {
		return "available: " + strings.Join(known[:most], ", ") + ", …"
	}
	return "available: " + strings.Join(known, ", ")
}

// complete asks for values of an argument of a prompt or a template.
func (o *Offers) complete(ctx context.Context, params json.RawMessage, caller *tool.Caller) (json.RawMessage, error) {
	ref, _ := rawjson.Get(params, "ref")
	key, find := "name", o.findPrompt
	if _, isResource := rawjson.Get(ref, "uri"); isResource {
		key, find = "uri", o.template
	}
	id, _ := rawjson.GetText(ref, key)
	t, err := find(ctx, id)
	switch {
	case err != nil && fault.CodeOf(err) != fault.NotFound && fault.CodeOf(err) != fault.InvalidParams:
		return nil, err
	case err != nil, t.space == "": // ours complete by the argument alone
		return o.Completer.Complete(ctx, params)
	}
	return t.peer.Request(ctx, wire.MethodComplete, rawjson.Set(params, "ref", rawjson.SetText(ref, key, t.id)), caller)
}
