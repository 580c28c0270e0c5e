package pin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// pin finds the pin of every tool, and notes what is offered now where that is
// new. judging is held.
func (g *Guard) pin(ctx context.Context, tools []*judged) {
	var changed []*Pin
	space, target := "", ""
	for i, j := range tools {
		if i == 0 || space != j.info.Space { // those of one namespace stand together
			space, target = j.info.Space, g.options.Target(j.info.Space)
		}
		p, fresh := g.offer(key{space, Tool, j.info.Name}, target, j.content, j.flags)
		j.pin = p
		if fresh {
			changed = append(changed, p)
		}
	}
	g.keep(ctx, changed)
}

// offer is the pin of a definition as the server at target offers it now; fresh
// tells that it is not kept yet.
func (g *Guard) offer(k key, target string, c *content, flags []Finding) (p *Pin, fresh bool) {
	now := g.options.Clock.Now().UTC().Truncate(time.Microsecond)
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.pins[k]
	if old != nil && old.Digest == c.digest && old.Target == target {
		return old, false
	}
	next := Pin{ID: k.id(), Upstream: k.upstream, Kind: k.kind, Name: k.name, Seen: now}
	if old != nil {
		next = *old
	}
	next.Target, next.Digest, next.Definition, next.Flags, next.Changed = target, c.digest, c.definition, flags, now
	g.pins[k] = &next
	return &next, true
}

// keep writes pins and tells of those that are not approved. One that cannot be
// written is held all the same.
func (g *Guard) keep(ctx context.Context, pins []*Pin) {
	if len(pins) == 0 {
		return
	}
	if err := g.save(context.WithoutCancel(ctx), pins); err != nil {
		g.options.Log.ErrorContext(ctx, "pins not kept", "error", err)
	}
	for _, p := range pins {
		about := ToolAwaitingReview{Pin: p.ID, Upstream: p.Upstream, Kind: p.Kind, Name: p.Name, Digest: p.Digest, Flags: p.Flags}
		switch p.State() {
		case AwaitingReview:
			g.options.Events.Publish(about)
		case Changed:
			g.options.Events.Publish(ToolChanged{about, p.Diff()})
			g.options.Log.WarnContext(ctx, "an approved definition has changed and is held", "upstream", p.Upstream, "kind", p.Kind, "name", p.Name, "pin", p.ID)
		}
	}
}

// flag tells of what is odd about a tool that nobody has to approve, once.
func (g *Guard) flag(j *judged) {
	if len(j.flags) == 0 || !g.first(j.info.Ref.String()+"\x00"+j.digest) {
		return
	}
	if j.shadow.refused {
		g.options.Events.Publish(ToolShadowed{Upstream: j.info.Space, Name: j.info.Name, Shadows: j.shadow.of})
		g.options.Log.Warn("a tool is refused whose name passes for another", "upstream", j.info.Space, "name", Visible(j.info.Name), "shadows", j.shadow.of)
		return
	}
	g.options.Events.Publish(ToolFlagged{Upstream: j.info.Space, Name: j.info.Name, Flags: j.flags})
}

// first tells whether something is said for the first time.
func (g *Guard) first(what string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.told[what] {
		return false
	}
	const most = 100_000
	if len(g.told) > most {
		clear(g.told)
	}
	g.told[what] = true
	return true
}

// CheckDefinition judges something of an upstream that is no tool: a prompt as it is
// listed, or its instructions. The error says that it is held.
func (g *Guard) CheckDefinition(ctx context.Context, namespace string, kind Kind, raw json.RawMessage) error {
	if g.ModeOf(namespace) != Pinned {
		return nil
	}
	name := ""
	if kind != Instructions {
		name, _ = rawjson.GetText(raw, "name")
	}
	c := contentOf(raw)
	var m *mentions
	if r := g.last.Load(); r != nil {
		m = &mentions{namespace, r.called, ownNames(g.options.Own())}
	}
	g.judging.Lock()
	defer g.judging.Unlock()
	p, fresh := g.offer(key{namespace, kind, name}, g.options.Target(namespace), c, c.findings(m))
	if fresh {
		g.keep(ctx, []*Pin{p})
	}
	if p.State() != Approved {
		return held(p)
	}
	return nil
}

// CheckKnown says whether something that is no tool may be used, by what was seen of
// it; seen is false when it was never examined.
func (g *Guard) CheckKnown(namespace string, kind Kind, name string) (seen bool, err error) {
	if g.ModeOf(namespace) != Pinned {
		return true, nil
	}
	g.mu.Lock()
	p := g.pins[key{namespace, kind, name}]
	g.mu.Unlock()
	switch {
	case p == nil:
		return false, nil
	case p.State() != Approved:
		return true, held(p)
	default:
		return true, nil
	}
}
