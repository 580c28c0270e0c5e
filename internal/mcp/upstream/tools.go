package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/apps"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// listTools lists the server's tools. A server without tools has an empty list. If
// the server refuses to list them, the known tools stay.
func (c *connection) listTools(ctx context.Context, s *session) (*listing, error) {
	list, err := s.listTools(ctx, c.name, c.opts.startTimeout(*c.spec.Load()))
	var refused *wire.Error
	if !errors.As(err, &refused) {
		return list, err
	}
	if !s.hasCapability("tools") && refused.Code == wire.CodeMethodNotFound {
		return &listing{}, nil
	}
	return c.known.refused(refused), nil
}

// refreshAfterNotification fetches the tools. If the server refuses to list them
// now, the known tools stay.
func (c *connection) refreshAfterNotification(ctx context.Context, s *session) error {
	err := c.refresh(ctx, s)
	var refused *wire.Error
	switch {
	case errors.As(err, &refused):
		c.refreshTools(s, c.known.refused(refused))
	case err != nil:
		return c.checkHealth(ctx, s)
	}
	return nil
}

// refresh fetches the tools of a session, and uses them if it is still current.
func (c *connection) refresh(ctx context.Context, s *session) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	list, err := s.listTools(ctx, c.name, c.opts.startTimeout(*c.spec.Load()))
	if err != nil {
		return err
	}
	c.refreshTools(s, list)
	return nil
}

// refreshTools uses a further list of a session, if that is still the current one.
func (c *connection) refreshTools(s *session, list *listing) {
	if before := c.known.refreshed(s, list); before != nil {
		c.announceTools(before, list)
	}
}

// announceTools publishes what is new in a list, and stores it in the cache.
func (c *connection) announceTools(old, list *listing) {
	if c.owner != "" {
		c.saveCache() // before anybody is told that the owner's tools are others
	} else {
		defer c.saveCache()
	}
	c.publishTools(old.tools, list.tools)
	if problems := list.problems(); len(problems) > 0 && !slices.Equal(problems, old.problems()) {
		count := len(list.incomplete) + list.droppedCount
		c.publish(Dropped{Upstream: c.name, Reasons: problems, Count: count})
		c.log.Warn("tools are missing", "count", count, "first", problems[0])
	}
}

// publishTools publishes how the tools have changed, if they have.
func (c *connection) publishTools(before, after []tool.Info) (differ bool) {
	added, removed, changed := diff(before, after)
	if differ = len(added)+len(removed)+len(changed) > 0; differ {
		c.publish(ToolsRefreshed{Upstream: c.name, ToolCount: len(after), Added: added, Removed: removed, Changed: changed})
	}
	return differ
}

// Limits of a tool list. What exceeds them is dropped and reported.
const (
	maxTools     = 10_000
	maxPages     = 1_000
	maxListBytes = 64 << 20
	maxToolDepth = 100
	maxToolName  = 256
)

// listing is the usable tools of a server. It is not changed once it is complete.
type listing struct {
	tools        []tool.Info                   // sorted by name
	headers      map[string][]wire.HeaderParam // by tool: arguments that are sent as headers too
	dropped      []string                      // reasons why definitions were dropped; the first few
	droppedCount int                           // how many were dropped
	incomplete   []string                      // why tools are missing: the list was cut, or refused
	tasks        map[string]taskSupport        // of the tools whose calls can be tasks; nil: none
}

const maxReasons = 20

func (l *listing) drop(format string, args ...any) {
	l.droppedCount++
	if len(l.dropped) < maxReasons {
		l.dropped = append(l.dropped, fmt.Sprintf(format, args...))
	}
}

// problems are all reasons why something is missing.
func (l *listing) problems() []string { return slices.Concat(l.incomplete, l.dropped) }

// trouble is the same in a few lines, for people.
func (l *listing) trouble() []string {
	list := slices.Clone(l.incomplete)
	shown := min(len(l.dropped), shownReasons)
	for _, reason := range l.dropped[:shown] {
		list = append(list, "left out: "+reason)
	}
	if more := l.droppedCount - shown; more > 0 {
		list = append(list, fmt.Sprintf("left out: %d more definitions", more))
	}
	return list
}

const shownReasons = 3

// stop records why the rest of the list is missing, once.
func (l *listing) stop(reason string) {
	if len(l.incomplete) == 0 {
		l.incomplete = []string{"the list of tools was cut: " + reason}
	}
}

// listTools fetches all pages of the server's tools.
func (s *session) listTools(ctx context.Context, name string, timeout time.Duration) (*listing, error) {
	l := &listing{headers: map[string][]wire.HeaderParam{}}
	seen := map[string]bool{}
	cursors := map[string]bool{}
	var cursor json.RawMessage
	size := 0
	for page := 0; ; page++ {
		params := json.RawMessage(`{}`)
		if cursor != nil {
			params = rawjson.Set(params, "cursor", cursor)
		}
		result, err := s.request(ctx, &outcall{method: wire.MethodToolsList, params: params, timeout: timeout})
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		size += len(result)
		raw, _ := rawjson.Get(result, "tools")
		definitions, ok := rawjson.Items(raw)
		if !ok {
			l.drop("page %d has no list of tools", page+1)
		}
		for _, definition := range definitions {
			l.add(name, definition, seen, s.era)
		}
		if s.traits.LeftOut != nil { // what it could not translate
			for _, reason := range s.traits.LeftOut() {
				l.drop("%s", reason)
			}
		}
		next, more := rawjson.Get(result, "nextCursor")
		if !more || string(next) == "null" {
			break
		}
		if stop := pageLimit(l, page, size, cursors[string(next)]); stop != "" {
			l.stop(stop)
			break
		}
		cursors[string(next)] = true
		cursor = next
	}
	l.sort()
	l.findTaskSupport(s.capabilities)
	return l, nil
}

func (l *listing) sort() {
	slices.SortFunc(l.tools, func(a, b tool.Info) int { return strings.Compare(a.Name, b.Name) })
}

// find looks a tool up.
func (l *listing) find(name string) (info tool.Info, found bool) {
	i, found := slices.BinarySearchFunc(l.tools, name, func(info tool.Info, name string) int {
		return strings.Compare(info.Name, name)
	})
	if !found {
		return info, false
	}
	return l.tools[i], true
}

// pageLimit is the reason to fetch no further page, or empty.
func pageLimit(l *listing, page, size int, again bool) string {
	switch {
	case again:
		return "the list repeats itself: a cursor was sent twice"
	case page+1 >= maxPages:
		return fmt.Sprintf("more than %d pages", maxPages)
	case size > maxListBytes:
		return fmt.Sprintf("more than %d bytes of definitions", maxListBytes)
	case len(l.tools) >= maxTools:
		return fmt.Sprintf("more than %d tools", maxTools)
	}
	return ""
}

// add adds a definition, or records why it is not usable.
func (l *listing) add(space string, definition json.RawMessage, seen map[string]bool, era wire.Era) {
	info, err := parseTool(space, definition)
	switch {
	case err != nil:
		l.drop("tool %s: %v", label(definition), err)
		return
	case seen[info.Name]:
		l.drop("tool %q: defined twice", info.Name)
		return
	case len(l.tools) >= maxTools:
		l.stop(fmt.Sprintf("more than %d tools", maxTools))
		return
	}
	params, err := wire.HeaderParams(info.Input)
	if era == wire.Modern && err != nil {
		l.drop("tool %q: %v", info.Name, err)
		return
	}
	if era == wire.Modern && len(params) > 0 {
		l.headers[info.Name] = params
	}
	seen[info.Name] = true
	l.tools = append(l.tools, info)
}

func label(definition json.RawMessage) string {
	if name, ok := rawjson.GetText(definition, "name"); ok {
		return fmt.Sprintf("%q", excerpt([]byte(name)))
	}
	return excerpt(definition)
}

// parseTool reads a definition. It copies it, because the definition outlives the
// message.
func parseTool(space string, definition json.RawMessage) (tool.Info, error) {
	if !rawjson.IsObject(definition) {
		return tool.Info{}, errors.New("definition is not an object")
	}
	if depth := rawjson.Depth(definition); depth > maxToolDepth {
		return tool.Info{}, fmt.Errorf("definition nests %d deep", depth)
	}
	raw := json.RawMessage(slices.Clone(definition))
	info := tool.Info{Ref: tool.Ref{Space: space}, Raw: raw}
	var ok bool
	if info.Name, ok = rawjson.GetText(raw, "name"); !ok || !validToolName(info.Name) {
		return tool.Info{}, errors.New("no usable name")
	}
	info.Title, _ = rawjson.GetText(raw, "title")
	info.Description, _ = rawjson.GetText(raw, "description")
	if info.Input, ok = rawjson.Get(raw, "inputSchema"); !ok {
		return tool.Info{}, errors.New("no input schema")
	}
	if !rawjson.IsObject(info.Input) {
		return tool.Info{}, errors.New("input schema is not an object")
	}
	switch kind, found := rawjson.Get(info.Input, "type"); {
	case !found:
		info.Input = rawjson.SetText(info.Input, "type", "object")
	case string(kind) != `"object"`:
		return tool.Info{}, fmt.Errorf("input schema is of type %s", excerpt(kind))
	}
	if output, ok := rawjson.Get(raw, "outputSchema"); ok && rawjson.IsObject(output) {
		info.Output = output
	}
	info.Hints, info.Title = parseHints(raw, info.Title)
	info.App = apps.Of(raw)
	return info, nil
}

func parseHints(raw json.RawMessage, title string) (tool.Hints, string) {
	notes, _ := rawjson.Get(raw, "annotations")
	if title == "" {
		title, _ = rawjson.GetText(notes, "title")
	}
	destructive, _ := rawjson.Get(notes, "destructiveHint")
	open, _ := rawjson.Get(notes, "openWorldHint")
	return tool.Hints{
		ReadOnly:       rawjson.GetBool(notes, "readOnlyHint"),
		Idempotent:     rawjson.GetBool(notes, "idempotentHint"),
		NonDestructive: string(destructive) == "false",
		ClosedWorld:    string(open) == "false",
	}, title
}

func validToolName(name string) bool {
	return name != "" && len(name) <= maxToolName && clean(name) == name
}

// diff returns the names of the tools that changed between two lists.
func diff(old, fresh []tool.Info) (added, removed, changed []string) {
	before := map[string]tool.Info{}
	for _, info := range old {
		before[info.Name] = info
	}
	for _, info := range fresh {
		was, ok := before[info.Name]
		switch {
		case !ok:
			added = append(added, info.Name)
		case !sameJSON(was.Raw, info.Raw):
			changed = append(changed, info.Name)
		}
		delete(before, info.Name)
	}
	for _, info := range old {
		if _, missing := before[info.Name]; missing {
			removed = append(removed, info.Name)
		}
	}
	return added, removed, changed
}

// sameJSON reports whether two texts differ only in blanks.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// record is what is stored of a server between runs. It contains nothing of the
// spec that could be a secret; Server identifies the server that it is about.
type record struct {
	Server       string            `json:"server"`
	Detected     detection         `json:"verdict"`
	Revision     string            `json:"revision,omitempty"`
	ServerInfo   json.RawMessage   `json:"server_info,omitempty"`
	Capabilities json.RawMessage   `json:"capabilities,omitempty"`
	Instructions json.RawMessage   `json:"instructions,omitempty"`
	Tools        []json.RawMessage `json:"tools"` // as they are stored; see listing
	Start        programStart      `json:"start,omitzero"`
	offering
}

// loadCache uses the stored record of the server, unless the previous generation
// has passed on a newer one. A server that sleeps with a record need not be started yet.
func (c *connection) loadCache() {
	spec := c.spec.Load()
	stored, found := c.opts.loadRecord(*spec)
	tools := stored.tools(c.name)
	found = found && c.known.load(stored, tools)
	has := c.known.stored().Server != ""
	c.phase.loaded(found, c.opts.OnDemand || has && (spec.Start == Lazy || spec.lazy() && !c.listsOnly() || c.startsAsleep(*spec)))
	if found {
		c.publishTools(nil, tools.tools)
	}
}

// saveCache stores what is known of the server.
func (c *connection) saveCache() {
	r, tools := c.known.save()
	switch {
	case c.isRetired():
	case c.owner != "":
		c.lister.known.learnOffering(c.owner, r.offering)
		c.lister.learn(c.owner, tools, r)
	default:
		c.saveRecord(r)
	}
}

// learn keeps the tools of an owner, and stores and publishes what they change for everybody.
func (c *connection) learn(owner string, list *listing, r record) {
	before, after, differ := c.known.learn(owner, list, r)
	if !sameSlice(before, after) {
		stored, _ := c.known.save()
		c.saveRecord(stored)
	}
	if !c.publishTools(before, after) && differ {
		c.publish(ToolsRefreshed{Upstream: c.name, ToolCount: len(after)})
	}
}

func (c *connection) saveRecord(r record) {
	if err := c.opts.saveRecord(c.name, r); err != nil {
		c.log.Warn("not cached", "error", err)
	}
}

// identity identifies the server of a spec, without its credentials.
func identity(s Spec) string {
	raw, err := json.Marshal([]any{s.URL + s.Mock + s.API.Source, s.Command, s.Args, s.Cwd, s.transport(), cmp.Or(s.Protocol, Auto)})
	if err != nil {
		return "" // strings always encode
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// loadRecord reads the record of a spec's server; ok is false if there is none.
func (o *Options) loadRecord(spec Spec) (r record, ok bool) {
	if o.CacheDir == "" {
		return r, false
	}
	data, err := os.ReadFile(o.recordPath(spec.Name))
	if err != nil {
		return r, false
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Server != identity(spec) {
		return record{}, false
	}
	r.Detected.Endpoint = endpointByDigest(spec, r.Detected.Endpoint)
	return r, true
}

// endpointByDigest finds the endpoint whose URL is stored as a digest.
func endpointByDigest(spec Spec, stored endpoint) endpoint {
	for _, e := range endpoints(spec) {
		if e.Transport == stored.Transport && digest(e.URL) == stored.URL {
			return e
		}
	}
	return endpoint{}
}

// digest stands for a URL, which may contain secrets.
func digest(address string) string {
	if address == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:])
}

// saveRecord writes the record to a new file, which then replaces the old one.
func (o *Options) saveRecord(name string, r record) error {
	if o.CacheDir == "" {
		return nil
	}
	r.Detected.Endpoint.URL = digest(r.Detected.Endpoint.URL)
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // definitions stay as the server wrote them
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("cache upstream %s: %w", name, err)
	}
	if err := os.MkdirAll(o.CacheDir, 0o700); err != nil {
		return fmt.Errorf("cache upstream %s: %w", name, err)
	}
	file, err := os.CreateTemp(o.CacheDir, name+".*.tmp")
	if err != nil {
		return fmt.Errorf("cache upstream %s: %w", name, err)
	}
	_, err = file.Write(data.Bytes())
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), o.recordPath(name))
	}
	if err != nil {
		_ = os.Remove(file.Name()) // err is the one to report
		return fmt.Errorf("cache upstream %s: %w", name, err)
	}
	return nil
}

func (o *Options) recordPath(name string) string {
	return filepath.Join(o.CacheDir, "upstream-"+name+".json")
}

// tools reads the stored definitions with the same checks as a server's list.
func (r record) tools(name string) *listing {
	l := &listing{headers: map[string][]wire.HeaderParam{}}
	seen := map[string]bool{}
	for _, definition := range r.Tools {
		l.add(name, definition, seen, r.Detected.Era)
	}
	l.sort()
	l.findTaskSupport(r.Capabilities)
	return l
}

func definitions(tools []tool.Info) []json.RawMessage {
	raw := make([]json.RawMessage, len(tools))
	for i, info := range tools {
		raw[i] = info.Raw
	}
	return raw
}
