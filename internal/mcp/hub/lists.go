package hub

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// list is one of MCP's lists: the key of its result, the key that identifies an entry, and
// the source of its entries.
type list struct {
	key     string
	entryID string
	fetch   func(context.Context) ([]json.RawMessage, error)
}

// list finds the list that a method requests; false if it is not supported.
func (o *localBackend) list(method string) (list, bool) {
	switch method {
	case wire.MethodToolsList, wire.NoteToolsChanged:
		return list{"tools", "name", o.definitions}, true
	}
	if o.hub.opts.Offers == nil {
		return list{}, false
	}
	of := func(method, key, id string) (list, bool) {
		return list{key, id, func(ctx context.Context) ([]json.RawMessage, error) { return o.hub.opts.Offers.List(ctx, method) }}, true
	}
	switch method {
	case wire.MethodPromptsList, wire.NotePromptsChanged:
		return of(wire.MethodPromptsList, "prompts", "name")
	case wire.MethodResourcesList, wire.NoteResourcesChanged:
		return of(wire.MethodResourcesList, "resources", "uri")
	case wire.MethodResourceTemplates:
		return of(wire.MethodResourceTemplates, "resourceTemplates", "uriTemplate")
	case wire.MethodSkillsList:
		return of(method, "skills", "uri")
	}
	return list{}, false
}

// page answers one page of a list.
func (o *localBackend) page(ctx context.Context, req *request) (json.RawMessage, error) {
	l, ok := o.list(req.method)
	if !ok {
		return nil, errNoMethod(req.method)
	}
	entries, err := l.fetch(ctx)
	if err != nil {
		return nil, err
	}
	raw, _ := rawjson.Get(req.params, "cursor")
	cursor, isText := rawjson.Text(raw)
	if !isText && !rawjson.IsNull(raw) {
		return nil, wire.Errorf(wire.CodeInvalidParams, "cursor must be a string")
	}
	from, err := l.position(entries, cursor)
	if err != nil {
		return nil, err
	}
	to := min(len(entries), from+o.hub.opts.Limits.Page)
	out := append([]byte(`{"`), l.key...)
	out = append(out, `":[`...)
	for i, entry := range entries[from:to] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, entry...)
	}
	out = append(out, ']')
	if to < len(entries) {
		out = rawjson.AppendText(append(out, `,"nextCursor":`...), l.cursor(entries, to))
	}
	return append(out, '}'), nil
}

// cursor points behind entry number at-1, by its position and its name, so that it is still
// valid if the list has changed in between.
func (l list) cursor(entries []json.RawMessage, at int) string {
	name, _ := rawjson.GetText(entries[at-1], l.entryID)
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(at) + " " + name))
}

// position is where a cursor points. The empty cursor points to the start.
func (l list) position(entries []json.RawMessage, cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(cursor)
	place, name, ok := strings.Cut(string(plain), " ")
	at, wrong := strconv.Atoi(place)
	if err != nil || !ok || wrong != nil {
		return 0, wire.Errorf(wire.CodeInvalidParams, "invalid cursor")
	}
	is := func(i int) bool {
		text, _ := rawjson.GetText(entries[i], l.entryID)
		return text == name
	}
	if at > 0 && at <= len(entries) && is(at-1) {
		return at, nil
	}
	for i := range entries {
		if is(i) {
			return i + 1, nil
		}
	}
	return 0, wire.Errorf(wire.CodeInvalidParams, "invalid cursor: the list has changed, begin again")
}

// fingerprint is a hash of a list.
type fingerprint [sha256.Size]byte

// display is how a client wants its lists.
type display struct {
	menu string // the list of tools that it asked for, or empty
	apps bool   // it shows the pages of tools
}

func displayOf(ctx context.Context) display { return display{tool.MenuOf(ctx), tool.ShowsApps(ctx)} }

// in is a context in which a client with this display asks for a list.
func (d display) in(ctx context.Context) context.Context {
	if d.menu != "" {
		ctx = tool.WithMenu(ctx, d.menu)
	}
	if d.apps {
		ctx = tool.WithApps(ctx)
	}
	return ctx
}

// listKey identifies a list by the notification of its changes, and by whom it is shown to.
type listKey struct {
	method string
	audienceKey
}

func keyOf(ctx context.Context, method string) listKey {
	return listKey{method, audienceKey{viewerOf(principal.Of(ctx)), displayOf(ctx)}}
}

func (o *localBackend) forgetLists(gone func(viewer string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.prints, func(key listKey, _ fingerprint) bool { return gone(key.viewer) })
}

// recordList records the first fingerprint of a list.
func (o *localBackend) recordList(ctx context.Context, method string) {
	o.mu.Lock()
	_, known := o.prints[keyOf(ctx, method)]
	o.mu.Unlock()
	if !known {
		o.listChanged(ctx, method)
	}
}

// listChanged tells whether a list is different from the one recorded. A list that cannot
// be read counts as changed.
func (o *localBackend) listChanged(ctx context.Context, method string) bool {
	l, ok := o.list(method)
	if !ok {
		return false
	}
	entries, err := l.fetch(ctx)
	if err == nil && method == wire.NoteResourcesChanged { // it is of these, too
		templates, failed := o.hub.opts.Offers.List(ctx, wire.MethodResourceTemplates)
		skills, err2 := o.hub.opts.Offers.List(ctx, wire.MethodSkillsList)
		entries, err = slices.Concat(entries, templates, skills), errors.Join(failed, err2)
	}
	if err != nil {
		return true
	}
	sum := sha256.New()
	for _, entry := range entries {
		sum.Write(entry)
		sum.Write([]byte{'\n'})
	}
	print := fingerprint(sum.Sum(nil))
	o.mu.Lock()
	defer o.mu.Unlock()
	key := keyOf(ctx, method)
	old, known := o.prints[key]
	o.prints[key] = print
	return !known || old != print
}

// toolList caches the definitions of a source's list. Sources share their slices and never
// write to them, so the same slice is the same list.
type toolList struct {
	mu      sync.Mutex
	infos   []tool.Info
	entries []json.RawMessage
}

func sameSlice(a, b []tool.Info) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// definitions are the tools in MCP's form.
func (o *localBackend) definitions(ctx context.Context) ([]json.RawMessage, error) {
	infos, err := o.hub.opts.Tools.Tools(ctx)
	if err != nil {
		return nil, err
	}
	l := o.toolList(displayOf(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	if sameSlice(l.infos, infos) {
		return l.entries, nil
	}
	entries := make([]json.RawMessage, 0, len(infos))
	for _, info := range infos {
		if _, err := wire.HeaderParams(info.Input); err != nil {
			o.hub.log.WarnContext(ctx, "tool left out: its header annotation is not allowed", "tool", info.Name, "error", err)
			continue
		}
		entry, err := definition(info)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	l.infos, l.entries = infos, entries
	return entries, nil
}

// toolList returns the cache of a display.
func (o *localBackend) toolList(d display) *toolList {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.tools[d]
	if l == nil {
		l = &toolList{}
		o.tools[d] = l
	}
	return l
}

// schemaFinder is implemented by sources that find the schema of one tool's arguments without
// listing all tools.
type schemaFinder interface {
	InputSchema(ctx context.Context, name string) (json.RawMessage, bool)
}

func (o *localBackend) inputSchema(ctx context.Context, name string) json.RawMessage {
	if finder, ok := o.hub.opts.Tools.(schemaFinder); ok {
		schema, _ := finder.InputSchema(ctx, name)
		return schema
	}
	infos, _ := o.hub.opts.Tools.Tools(ctx) // without them nothing is checked
	i := slices.IndexFunc(infos, func(info tool.Info) bool { return info.Name == name })
	if i < 0 {
		return nil
	}
	return infos[i].Input
}

// definition is a tool in MCP's form: the upstream's own with the exposed name, or one
// made of the tool's description.
func definition(info tool.Info) (json.RawMessage, error) {
	if info.Raw != nil {
		return withOptionalTask(rawjson.SetText(info.Raw, "name", info.Name)), nil
	}
	input := info.Input
	if input == nil {
		input = json.RawMessage(`{"type":"object"}`)
	}
	raw, err := json.Marshal(struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Annotations annotations     `json:"annotations"`
	}{info.Name, info.Title, info.Description, input, info.Output, annotate(info.Hints)})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "describe tool %s", info.Name)
	}
	return raw, nil
}

// annotations are a tool's hints in MCP's form.
type annotations struct {
	ReadOnly    bool  `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint,omitempty"` // not used for a read-only tool
	Idempotent  *bool `json:"idempotentHint,omitempty"`  // likewise
	OpenWorld   bool  `json:"openWorldHint"`
}

func annotate(h tool.Hints) annotations {
	a := annotations{ReadOnly: h.ReadOnly, OpenWorld: !h.ClosedWorld}
	if !h.ReadOnly {
		destructive := !h.NonDestructive
		a.Destructive, a.Idempotent = &destructive, &h.Idempotent
	}
	return a
}

// audience is clients that are shown the same lists: those of one principal with one menu.
type audience struct {
	audienceKey
	who principal.Principal
}

type audienceKey struct {
	viewer string // all of the principal that decides what it sees
	display
}

func audienceOf(ctx context.Context, d display) *audience {
	who := principal.Of(ctx)
	return &audience{audienceKey{viewerOf(who), d}, who}
}

// viewerOf identifies a principal with its rights.
func viewerOf(who principal.Principal) string {
	return fmt.Sprintf("%q %q %q %q %q %q %q %q", who.ID, who.Org, who.Person, who.Grant, who.Scopes, who.Namespaces, who.Tools, who.Set)
}

// in is a context in which the audience asks for a list.
func (a *audience) in(ctx context.Context) context.Context {
	return principal.With(a.display.in(ctx), a.who)
}

// audiences are those of the sessions and listeners; viewers also those of sessions that are
// not ready yet.
func (e *endpoint) audiences() (all map[audienceKey]*audience, viewers map[string]bool) {
	all, viewers = map[audienceKey]*audience{}, map[string]bool{}
	for _, s := range e.sessions.list() {
		viewers[s.viewer.Load().viewer] = true
		if s.ready.Load() {
			a := s.audience()
			all[a.audienceKey] = a
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		all[l.audience.audienceKey], viewers[l.audience.viewer] = l.audience, true
	}
	return all, viewers
}

// identify notes whose session it is, and with which rights, which may have changed since
// it began.
func (s *session) identify(ctx context.Context) { s.viewer.Store(audienceOf(ctx, display{})) }

// audience is the one that the session belongs to.
func (s *session) audience() *audience {
	a := *s.viewer.Load()
	a.display = s.display()
	return &a
}

// listChanges are the notifications that are debounced.
var listChanges = []string{wire.NoteToolsChanged, wire.NotePromptsChanged, wire.NoteResourcesChanged}

// changed passes a notification of the backend to the clients that want it; to says for
// whom it is, nil: for everybody. Changes of a list are debounced, and sent to those for
// whom the list is really different.
func (e *endpoint) changed(method string, params json.RawMessage, to func(principal.Principal) bool) {
	if method == wire.NoteTask {
		e.taskChanged(taskID(params))
		return
	}
	if !slices.Contains(listChanges, method) {
		e.broadcast(method, params, func(a *audience) bool { return to == nil || to(a.who) })
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.changes[method] != nil {
		return
	}
	e.changes[method] = time.AfterFunc(e.hub.opts.Limits.Debounce, func() {
		e.mu.Lock()
		delete(e.changes, method)
		e.mu.Unlock()
		e.hub.spawn(func(ctx context.Context) { e.notifyOfList(ctx, method) })
	})
}

// notifyOfList notifies those clients for whom a list is different now.
func (e *endpoint) notifyOfList(ctx context.Context, method string) {
	all, viewers := e.audiences()
	different := map[audienceKey]bool{}
	for key, a := range all {
		different[key] = e.backend.listChanged(a.in(ctx), method)
	}
	e.backend.forgetLists(func(viewer string) bool { return !viewers[viewer] })
	e.broadcast(method, nil, func(a *audience) bool { return different[a.audienceKey] }) //nolint:contextcheck // in the background
}

// broadcast sends a notification to the sessions and listeners whom it is for.
func (e *endpoint) broadcast(method string, params json.RawMessage, isFor func(*audience) bool) {
	uri := ""
	if method == wire.NoteResourceUpdated {
		uri = uriOf(params)
	}
	note := wire.Notification(method, wire.StripProtocol(params))
	message := note.Append(nil)
	for _, s := range e.sessions.list() {
		if s.wants(method, uri, params) && isFor(s.audience()) {
			s.main.offer(message)
			if method == wire.NoteResourceUpdated {
				e.forwardUpdate(s, uri, note)
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		if l.wants(method, uri) && isFor(l.audience) {
			l.notify(note)
		}
	}
}

// wants tells whether a session wants a notification.
func (s *session) wants(method, uri string, params json.RawMessage) bool {
	if !s.ready.Load() {
		return false
	}
	switch method {
	case wire.NoteResourceUpdated:
		return s.isSubscribed(uri)
	case wire.NoteMessage:
		name, _ := rawjson.GetText(params, "level")
		at, _ := parseLevel(name)
		return at >= level(s.level.Load())
	}
	return true
}
