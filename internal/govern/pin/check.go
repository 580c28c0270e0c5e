package pin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
)

// pin finds the pin of every tool, and records definitions that are new. checking is
// held.
func (g *Guard) pin(ctx context.Context, tools []*checkedTool) {
	var changed []*Pin
	space, target := "", ""
	for i, j := range tools {
		if i == 0 || space != j.info.Space { // tools of one namespace are adjacent
			space, target = j.info.Space, g.options.Target(j.info.Space)
		}
		p, fresh := g.record(key{space, Tool, j.info.Name}, target, j.content, j.flags)
		j.pin = p
		if fresh {
			changed = append(changed, p)
		}
	}
	g.saveAndPublish(ctx, changed)
}

// record is the pin of a definition as the server at target offers it now; fresh means
// that it is not stored yet.
func (g *Guard) record(k key, target string, c *content, flags []Finding) (p *Pin, fresh bool) {
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

// saveAndPublish stores pins and publishes those that are not approved. A pin that
// cannot be stored is not approved either.
func (g *Guard) saveAndPublish(ctx context.Context, pins []*Pin) {
	if len(pins) == 0 {
		return
	}
	if err := g.save(context.WithoutCancel(ctx), pins); err != nil {
		g.options.Log.ErrorContext(ctx, "cannot store pins", "error", err)
	}
	for _, p := range pins {
		about := ToolAwaitingReview{Pin: p.ID, Upstream: p.Upstream, Kind: p.Kind, Name: p.Name, Digest: p.Digest, Flags: p.Flags}
		switch p.State() {
		case AwaitingReview:
			g.options.Events.PublishAbout(p.Upstream, about)
		case Changed:
			g.options.Events.PublishAbout(p.Upstream, ToolChanged{about, p.Diff()})
			g.options.Log.WarnContext(ctx, "an approved definition has changed and awaits review", "upstream", p.Upstream, "kind", p.Kind, "name", p.Name, "pin", p.ID)
		}
	}
}

// reportFlags publishes, once, what is suspicious about a tool that needs no approval.
func (g *Guard) reportFlags(j *checkedTool) {
	if len(j.flags) == 0 || !g.firstTime(j.info.Ref.String()+"\x00"+j.digest) {
		return
	}
	if j.shadow.refused {
		g.options.Events.PublishAbout(j.info.Space, ToolShadowed{Upstream: j.info.Space, Name: j.info.Name, Shadows: j.shadow.of})
		g.options.Log.Warn("a tool whose name imitates another is refused", "upstream", j.info.Space, "name", Visible(j.info.Name), "shadows", j.shadow.of)
		return
	}
	g.options.Events.PublishAbout(j.info.Space, ToolFlagged{Upstream: j.info.Space, Name: j.info.Name, Flags: j.flags})
}

// firstTime reports whether it is called with this text for the first time.
func (g *Guard) firstTime(what string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reported[what] {
		return false
	}
	const most = 100_000
	if len(g.reported) > most {
		clear(g.reported)
	}
	g.reported[what] = true
	return true
}

// CheckDefinition checks a tool or a prompt as it is listed, or the instructions of an
// upstream. The error says that it awaits review.
func (g *Guard) CheckDefinition(ctx context.Context, namespace string, kind Kind, raw json.RawMessage) error {
	if g.ModeOf(namespace) != Pinned {
		return nil
	}
	name := ""
	if kind != Instructions {
		name, _ = rawjson.GetText(raw, "name")
	}
	if kind == Tool && g.options.Personal(namespace) {
		if seen, err := g.checkPersonal(namespace, raw, name); seen {
			return err
		}
	}
	c := contentOf(raw)
	var m *mentions
	if r := g.last.Load(); r != nil {
		m = &mentions{namespace, r.naming, ownNames(g.options.Own())}
	}
	g.checking.Lock()
	defer g.checking.Unlock()
	p, fresh := g.record(key{namespace, kind, name}, g.options.Target(namespace), c, c.allFindings(m))
	if fresh {
		g.saveAndPublish(ctx, []*Pin{p})
	}
	if p.State() != Approved {
		return notApproved(p)
	}
	return nil
}

// CheckKnown says whether a definition may be used that was checked before; seen is
// false when it was not.
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
		return true, notApproved(p)
	default:
		return true, nil
	}
}
