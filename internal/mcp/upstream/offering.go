package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// offering is what a server lists beside its tools, in MCP's form. It is not changed once it is
// complete.
type offering struct {
	Prompts   []json.RawMessage `json:"prompts,omitempty"`
	Resources []json.RawMessage `json:"resources,omitempty"`
	Templates []json.RawMessage `json:"templates,omitempty"`
	Skills    []json.RawMessage `json:"skills,omitempty"`
}

// offeringList is one list of an offering: how it is asked for, if the server declares the
// capability and the extension, and what is found in it.
type offeringList struct {
	method, key, id, capability, extension string
	in                                     func(*offering) *[]json.RawMessage
}

var offeringLists = []offeringList{
	{wire.MethodPromptsList, "prompts", "name", "prompts", "", func(o *offering) *[]json.RawMessage { return &o.Prompts }},
	{wire.MethodResourcesList, "resources", "uri", "resources", "", func(o *offering) *[]json.RawMessage { return &o.Resources }},
	{wire.MethodResourceTemplates, "resourceTemplates", "uriTemplate", "resources", "", func(o *offering) *[]json.RawMessage { return &o.Templates }},
	{wire.MethodSkillsList, "skills", "uri", "resources", wire.ExtensionSkills, func(o *offering) *[]json.RawMessage { return &o.Skills }},
}

// listOf is the list that a method asks for; false if it is not one of an offering.
func listOf(method string) (offeringList, bool) {
	i := slices.IndexFunc(offeringLists, func(l offeringList) bool { return l.method == method })
	if i < 0 {
		return offeringList{}, false
	}
	return offeringLists[i], true
}

func (o *offering) same(other *offering) bool {
	return !slices.ContainsFunc(offeringLists, func(l offeringList) bool {
		return !slices.EqualFunc(*l.in(o), *l.in(other), func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	})
}

// Limits of the lists of an offering. What exceeds them is left out.
const (
	maxOffered      = 10_000
	maxOfferedBytes = 16 << 20
)

// collected is what the pages of one list have brought so far.
type collected struct {
	id    string // the key of what tells entries apart
	found []json.RawMessage
	seen  map[string]bool // by id
	size  int             // bytes of all entries, also of those that were left out
}

// add takes the entries of a page. Those that cannot be told apart, and what exceeds a limit, are left out.
func (c *collected) add(page []json.RawMessage) {
	for _, entry := range page {
		c.size += len(entry)
		if len(c.found) >= maxOffered || c.isTooBig() || rawjson.Depth(entry) > maxToolDepth {
			continue
		}
		id, _ := rawjson.GetText(entry, c.id)
		if id == "" || c.seen[id] {
			continue
		}
		c.seen[id] = true
		c.found = append(c.found, slices.Clone(entry))
	}
}

func (c *collected) isTooBig() bool { return c.size > maxOfferedBytes }

// list fetches all pages of one list.
func (s *session) list(ctx context.Context, l offeringList, timeout time.Duration) ([]json.RawMessage, error) {
	entries, cursors := collected{id: l.id, seen: map[string]bool{}}, map[string]bool{}
	params := json.RawMessage(`{}`)
	for range maxPages {
		result, err := s.request(ctx, &outcall{method: l.method, params: params, timeout: timeout})
		if err != nil {
			return entries.found, fmt.Errorf("%s: %w", l.method, err)
		}
		raw, _ := rawjson.Get(result, l.key)
		page, _ := rawjson.Items(raw)
		entries.add(page)
		next, more := rawjson.Get(result, "nextCursor")
		if !more || string(next) == "null" || cursors[string(next)] || entries.isTooBig() {
			break
		}
		cursors[string(next)] = true
		params = rawjson.Set(nil, "cursor", next)
	}
	return entries.found, nil
}

// followOffering fetches what a session offers beside tools, and again when the server says that
// it has changed, until ctx ends. Calls do not wait for it.
func (c *connection) followOffering(ctx context.Context, s *session) {
	for {
		c.fetchOffering(ctx, s)
		s.settled.Store(true)
		select {
		case <-ctx.Done():
			return
		case <-c.offeringChanged:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(c.opts.Debounce):
			drain(c.offeringChanged)
		}
	}
}

// fetchOffering fetches all lists. One that the server refuses now stays as it was.
func (c *connection) fetchOffering(ctx context.Context, s *session) {
	now := c.known.offered()
	for _, l := range offeringLists {
		list := l.in(&now)
		if !s.hasCapability(l.capability) || l.extension != "" && !s.hasCapability("extensions", l.extension) {
			*list = nil
			continue
		}
		found, err := s.list(ctx, l, c.opts.startTimeout(*c.spec.Load()))
		var refused *wire.Error
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &refused) && refused.Code == wire.CodeMethodNotFound:
			*list = nil
		case err != nil:
			c.log.DebugContext(ctx, "not listed", "method", l.method, "error", err)
		default:
			*list = found
		}
	}
	if !c.known.offer(&now) {
		return
	}
	c.saveCache()
	c.publishOffering(&now)
}

// publishOffering publishes that the lists have changed.
func (c *connection) publishOffering(now *offering) {
	c.publish(ListsRefreshed{Upstream: c.name, Prompts: len(now.Prompts), Resources: len(now.Resources), Templates: len(now.Templates)})
}

// offered is what the server last listed beside tools.
func (k *known) offered() offering {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.offering
}

// offer takes what a session lists beside tools, and tells whether it is different.
func (k *known) offer(now *offering) (differs bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	differs = !k.offering.same(now)
	k.offering = *now
	if k.hasOffering != nil {
		close(k.hasOffering)
		k.hasOffering = nil
	}
	return differs
}

// offeringFor is what an owner was last offered, or else everybody.
func (k *known) offeringFor(owner string) offering {
	k.mu.Lock()
	defer k.mu.Unlock()
	if own := k.people.offerings[owner]; own != nil {
		return *own
	}
	return k.offering
}

// learnOffering keeps what an owner is offered.
func (k *known) learnOffering(owner string, now offering) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.people.offerings == nil || len(k.people.offerings) >= maxLists {
		k.people.offerings = map[string]*offering{}
	}
	k.people.offerings[owner] = &now
}

func (p *perPerson) forgetOfferings(gone func(owner string) bool) {
	maps.DeleteFunc(p.offerings, func(owner string, _ *offering) bool { return gone(owner) })
}

// offeringWait is how long a list waits for a server that has just been connected, or is being
// connected for the first time.
const offeringWait = 2 * time.Second

// awaitOffering waits for the first lists of a server that is about to send them.
func (c *connection) awaitOffering(ctx context.Context) {
	c.known.mu.Lock()
	first := c.known.hasOffering
	c.known.mu.Unlock()
	now := c.phase.now()
	starting := now.state == StateConnecting || now.state == StateStarting
	if first == nil || c.listsOnly() || now.state != StateConnected && (!starting || now.attempt > 0) {
		return
	}
	wait := time.NewTimer(offeringWait)
	defer wait.Stop()
	select {
	case <-first:
	case <-wait.C:
	case <-ctx.Done():
	}
}

// Listed is one list of what the server offers beside tools, as it is known: no server is
// connected for it, and one that is down has its last list.
func (p *Peer) Listed(ctx context.Context, method string) []json.RawMessage {
	c, err := p.manager.connection(p.name)
	l, ok := listOf(method)
	if err != nil || !ok {
		return nil
	}
	owner := ""
	if c.personal {
		owner = principal.Of(p.as(ctx)).LoginOwner()
	}
	c.awaitOffering(ctx)
	now := c.known.offeringFor(owner)
	return c.spec.Load().offers(l, *l.in(&now))
}

// filterOffering removes from a page what the spec leaves out.
func (c *connection) filterOffering(method string, page json.RawMessage) json.RawMessage {
	l, _ := listOf(method)
	spec := c.spec.Load()
	if page == nil || spec.offer(l.capability) == nil && l.method != wire.MethodSkillsList {
		return page
	}
	raw, _ := rawjson.Get(page, l.key)
	items, _ := rawjson.Items(raw)
	return rawjson.Set(page, l.key, rawjson.List(spec.offers(l, items)))
}

// offers is a list without what the spec leaves out, and without skills that cannot be checked.
func (s *Spec) offers(l offeringList, items []json.RawMessage) []json.RawMessage {
	admitted := s.offer(l.capability)
	if admitted == nil && l.method != wire.MethodSkillsList {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(item json.RawMessage) bool {
		id, _ := rawjson.GetText(item, l.id)
		return !admitted.Has(id) || l.method == wire.MethodSkillsList && s.checkSkill(item) != nil
	})
}

func (s *Spec) offer(capability string) Offer {
	if capability == "prompts" {
		return s.Prompts
	}
	return s.Resources
}

// checkOffered refuses what the spec leaves out, as if the server did not have it.
func (s *Spec) checkOffered(method string, params json.RawMessage) error {
	kind, name := "resource", ""
	switch method {
	case wire.MethodPromptsGet:
		kind = "prompt"
		name, _ = rawjson.GetText(params, "name")
	case wire.MethodResourcesRead, wire.MethodSubscribe, wire.MethodSkillsGet, wire.MethodDirectoryRead:
		name, _ = rawjson.GetText(params, "uri")
	case wire.MethodComplete:
		ref, _ := rawjson.Get(params, "ref")
		if name, _ = rawjson.GetText(ref, "uri"); name == "" {
			kind = "prompt"
			name, _ = rawjson.GetText(ref, "name")
		}
	default:
		return nil
	}
	if s.offer(kind + "s").Has(name) {
		return nil
	}
	return fault.New(fault.NotFound, "no %s %q", kind, name).WithHint("the setting %ss of upstream %s leaves it out", kind, s.Name)
}

// Offer says which prompts or resources of an upstream exist: nil is all of them, otherwise the
// patterns of their names or URIs. It is written as "all", "none" or a list of patterns.
type Offer []string

// Has reports whether a prompt or a resource is among them.
func (o Offer) Has(name string) bool {
	return o == nil || slices.ContainsFunc(o, func(pattern string) bool { return principal.Matches(pattern, name) })
}

// UnmarshalText reads "all" and "none"; a list is read item by item.
func (o *Offer) UnmarshalText(text []byte) error {
	switch string(text) {
	case "all", "":
		*o = nil
	case "none":
		*o = Offer{""} // nothing has an empty name
	default:
		return fmt.Errorf("%q is neither all nor none; write a list of patterns in brackets", text)
	}
	return nil
}

// MarshalTOML writes what MarshalJSON does, with a space between patterns.
func (o Offer) MarshalTOML() ([]byte, error) {
	text, err := o.MarshalJSON()
	return bytes.ReplaceAll(text, []byte(`","`), []byte(`", "`)), err
}

// MarshalJSON writes "all", "none" or a list of patterns.
func (o Offer) MarshalJSON() ([]byte, error) {
	switch {
	case len(o) == 0:
		return []byte(`"all"`), nil
	case len(o) == 1 && o[0] == "":
		return []byte(`"none"`), nil
	}
	return json.Marshal([]string(o))
}

// UnmarshalJSON reads "all", "none" or a list of patterns.
func (o *Offer) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) > 1 && text[0] == '"' && o.UnmarshalText(text[1:len(text)-1]) == nil {
		return nil
	}
	var patterns []string
	if json.Unmarshal(text, &patterns) != nil {
		return fault.New(fault.InvalidParams, "%s is not valid", text).WithHint(`use "all", "none" or a list of patterns such as "docs://*"`)
	}
	if *o = patterns; len(patterns) == 0 {
		*o = Offer{""}
	}
	return nil
}
