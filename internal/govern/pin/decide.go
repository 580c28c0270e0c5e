package pin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
)

// List is every pin of an upstream, or of all when that is empty, in the given
// states or in any.
func (g *Guard) List(upstream string, states ...State) []*Pin {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := []*Pin{}
	for _, p := range g.pins {
		if (upstream == "" || p.Upstream == upstream) && (len(states) == 0 || slices.Contains(states, p.State())) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *Pin) int {
		return cmp.Or(strings.Compare(a.Upstream, b.Upstream), strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	return list
}

// Get is the pin of an id, or of a tool named "upstream.tool".
func (g *Guard) Get(id string) (*Pin, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for _, p := range g.pins {
		name := p.Upstream + "." + p.Name
		if p.ID == id || p.Kind == Tool && name == id {
			return p, nil
		}
		names = append(names, p.ID, name)
	}
	f := fault.New(fault.NotFound, "no pin %q", id)
	if near := suggest.Names(id, names, 1); len(near) > 0 {
		return nil, f.WithHint("did you mean %s? `luanette pin list` shows them all", near[0])
	}
	return nil, f.WithHint("`luanette pin list` shows them all")
}

// Decision is the approval or refusal of a definition by a person.
type Decision struct {
	Approve bool
	Digest  string // of the definition that was reviewed
	By      string
}

// Decide approves or refuses a definition. If the upstream offers another one by now,
// the error is a fault.Conflict.
func (g *Guard) Decide(ctx context.Context, id string, d Decision) (*Pin, error) {
	p, err := g.decide(ctx, id, d)
	if err == nil {
		g.decided(ctx, p)
	}
	return p, err
}

func (g *Guard) decided(ctx context.Context, pins ...*Pin) {
	if g.options.Decided != nil && len(pins) > 0 {
		g.options.Decided(ctx, pins...)
	}
}

func (g *Guard) decide(ctx context.Context, id string, d Decision) (*Pin, error) {
	old, err := g.Get(id)
	if err != nil {
		return nil, err
	}
	if d.Digest != old.Digest {
		return nil, fault.New(fault.Conflict, "pin %s: %s now offers another definition than the one that was reviewed", old.ID, old.Upstream).
			WithHint("`luanette pin show %s` shows it as it is now", old.ID)
	}
	next := *old
	next.Decided, next.By = g.options.Clock.Now().UTC().Truncate(time.Microsecond), d.By
	if d.Approve {
		next.ApprovedDigest, next.ApprovedTarget, next.ApprovedAs, next.RefusedDigest = old.Digest, old.Target, old.Definition, ""
	} else {
		next.RefusedDigest = old.Digest
		if next.ApprovedDigest == old.Digest {
			next.ApprovedDigest, next.ApprovedTarget, next.ApprovedAs = "", "", nil
		}
	}
	done, err := g.saveDecision(ctx, &next)
	if err == nil && !done {
		err = fault.New(fault.Conflict, "pin %s has changed meanwhile", old.ID).WithHint("look at it again: luanette pin show %s", old.ID)
	}
	if err != nil {
		return nil, fault.Wrap(fault.CodeOf(err), err, "decide about %s", old.ID)
	}
	g.mu.Lock()
	if now := g.pins[old.key()]; now != nil && now.Digest == next.Digest && now.Target == next.Target {
		g.pins[old.key()] = &next
	}
	g.mu.Unlock()
	g.version.Add(1)
	g.options.Events.PublishAbout(next.Upstream, PinDecided{Pin: next.ID, Upstream: next.Upstream, Kind: next.Kind, Name: next.Name, State: next.State(), By: next.By})
	return &next, nil
}

// ApproveAll approves the definitions of an upstream that await review; flagged ones
// only if withFlags is set, and left are the others.
func (g *Guard) ApproveAll(ctx context.Context, upstream, by string, withFlags bool) (approved, left []*Pin, err error) {
	waiting := g.List(upstream, AwaitingReview, Changed)
	if len(waiting) == 0 && len(g.List(upstream)) == 0 {
		return nil, nil, fault.New(fault.NotFound, "nothing of %q is pinned", upstream).
			WithHint("set trust = \"pin\" for it in luanette.toml, and connect it once")
	}
	defer func() { g.decided(ctx, approved...) }()
	for _, p := range waiting {
		if len(p.Flags) > 0 && !withFlags {
			left = append(left, p)
			continue
		}
		decided, err := g.decide(ctx, p.ID, Decision{Approve: true, Digest: p.Digest, By: by})
		if err != nil {
			return approved, left, err
		}
		approved = append(approved, decided)
	}
	return approved, left, nil
}
