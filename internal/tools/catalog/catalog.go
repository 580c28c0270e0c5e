// Package catalog joins every source of tools into one: it knows all tools,
// finds them by name or by what they do, and carries each call through the same
// stations: a bound on nesting, span and events and statistics, the owner's hooks,
// a check of the arguments against the tool's schema, a limit and a circuit
// breaker per namespace. What of it shows at the hub, and under which name, is
// decided here too.
//
// Reading never waits for a source that has answered before: a picture of all
// tools is kept, made anew when a source's list turns out to have changed.
package catalog

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Options are a catalog's choices. The zero value is an empty catalog that
// exposes nothing and tells nobody.
type Options struct {
	// Sources are where tools come from; Add adds more. Where two offer the same
	// tool, the earlier source has it.
	Sources []tool.Source
	// Bus is told of calls and of changes; nil tells nobody.
	Bus *event.Bus
	// Log gets what somebody should look at; nil discards it.
	Log *slog.Logger
	// Tracer starts a span per call; nil starts none.
	Tracer trace.Tracer
	// Meter records how long calls take; nil records nothing.
	Meter metric.Meter
	// Depth is how deep calls may nest: a tool that calls a tool that calls … Zero
	// means DefaultDepth.
	Depth int
	// Limits are the bounds of one namespace; nil means the zero Limits for each. Who
	// changes them calls Relimit.
	// Our own tools, which have no namespace, are not limited: a call of theirs
	// that waits for another of theirs would wait for itself.
	Limits func(namespace string) Limits
	// Learner sees what tools answer that do not tell the shape of it; nil when
	// nobody wants to know.
	Learner Learner
	// NameLength bounds exposed names; zero means DefaultNameLength, and no more
	// than 64 are ever used.
	NameLength int
	// Private tells namespaces that belong to somebody: only callers whose scope
	// allows them see them. nil: there are none.
	Private func(namespace string) bool
	// Toll is asked before every call of a tool that is not our own, and told when
	// it is over; its error refuses the call. nil admits all.
	Toll func(ctx context.Context, ref tool.Ref) (over func(), err error)
	// Reserved tells tools that only administrators see. nil: there are none.
	Reserved func(tool.Ref) bool
	// Hides tells which tools are not shown to a principal though it may ask for
	// them, and be refused with the reason; nil when there are none. nil: never.
	Hides func(who principal.Principal) func(*tool.Info) bool
	// TurnedAway is told of calls of tools that exist, but not for who asks, or not
	// yet; nil tells nobody.
	TurnedAway func(ctx context.Context, call tool.Call, why error)
	// WhyHidden says why there is no tool of a name that somebody does offer, written
	// as "space.tool" or "space__tool"; nil knows of none.
	WhyHidden func(name string) error
	// Pass is what every call passes before anything else has a say: it decides,
	// and calls next or not. nil calls next.
	Pass Pass
}

// Pass stands between a caller and a tool.
type Pass func(ctx context.Context, info *tool.Info, call tool.Call, next func(context.Context, tool.Call) (tool.Result, error)) (tool.Result, error)

// Catalog is all tools as one source. It is safe for concurrent use and starts
// no goroutines.
type Catalog struct {
	log      *slog.Logger
	bus      *event.Bus
	limits   func(string) Limits
	private  func(string) bool
	reserved func(tool.Ref) bool
	hides    func(who principal.Principal) func(*tool.Info) bool
	turned   func(ctx context.Context, call tool.Call, why error)
	kept     func(name string) error
	schemas  *schemas
	lexicon  *lexicon
	meters   *meters
	toll     func(ctx context.Context, ref tool.Ref) (over func(), err error)
	serve    handler
	calls    atomic.Uint64 // numbers calls, for events
	hooks    atomic.Pointer[Hooks]

	view     atomic.Pointer[view] // the current picture; replaced under mu
	tickets  atomic.Uint64        // numbers readings of the sources
	mu       sync.Mutex           // guards what follows
	members  []*member
	exposure map[string]Exposure
	pinned   map[string]bool // names of favourites, as they were given
	names    *names
	watchers map[*func()]struct{}
}

// New makes a catalog.
func New(o Options) *Catalog {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.Tracer{}
	}
	if o.Limits == nil {
		o.Limits = func(string) Limits { return Limits{} }
	}
	c := &Catalog{
		log: o.Log, bus: o.Bus, limits: o.Limits, private: o.Private, reserved: o.Reserved, kept: o.WhyHidden, hides: o.Hides, turned: o.TurnedAway, toll: o.Toll,
		schemas:  newSchemas(o.Log),
		lexicon:  newLexicon(),
		meters:   newMeters(o.Meter),
		exposure: map[string]Exposure{},
		names:    newNames(o.NameLength),
		watchers: map[*func()]struct{}{},
	}
	c.view.Store(&view{})
	c.serve = chain(c.last, nested(o.Depth), c.observed(o.Tracer), admitted, passed(o.Pass), c.hooked, learned(o.Learner), c.checked)
	for _, s := range o.Sources {
		c.members = append(c.members, &member{source: s})
	}
	return c
}

// Add adds a source. Its tools appear with the next reading, or at once to
// whoever asks for one.
func (c *Catalog) Add(s tool.Source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, &member{source: s})
}

// Tools lists all tools: our own first, then by namespace, each by name; those of
// higher priority before the others.
func (c *Catalog) Tools(ctx context.Context) ([]tool.Info, error) {
	return c.visible(ctx, c.refresh(ctx)).tools, nil
}

// Refresh reads the sources again. To be called when a source's list may have
// changed; it costs little when it has not.
func (c *Catalog) Refresh(ctx context.Context) { c.refresh(ctx) }

// Namespaces lists the namespaces there are, also those whose tools are not
// known yet.
func (c *Catalog) Namespaces(ctx context.Context) []string {
	v := c.visible(ctx, c.refresh(ctx))
	names := make([]string, 0, len(v.sorted))
	for _, name := range v.sorted {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// In lists the tools of one namespace; ok is false when there is none of that
// name.
func (c *Catalog) In(ctx context.Context, namespace string) (tools []tool.Info, ok bool) {
	shelf, ok := c.visible(ctx, c.refresh(ctx)).namespaces[namespace]
	if !ok {
		return nil, false
	}
	return shelf.tools, true
}

// Find looks up one tool, without listing all; ok is false when there is none of
// that name.
func (c *Catalog) Find(ctx context.Context, ref tool.Ref) (info tool.Info, ok bool) {
	e := c.view.Load().find(ref)
	if e == nil {
		e = c.refresh(ctx).find(ref)
	}
	if e == nil || !c.canSee(ctx, ref) {
		return tool.Info{}, false
	}
	return e.info, true
}

// Call runs a tool. Besides what the tool's source answers, it fails with
// tool_not_found, invalid_params, limit_exceeded and unavailable of its own.
func (c *Catalog) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	e, err := c.find(ctx, call.Ref)
	if err != nil {
		return tool.Result{}, c.turnAway(ctx, call, err)
	}
	if e.info.Original == call.Ref.Name && e.info.Original != "" {
		call.Ref = e.info.Ref // one name for whoever watches
	}
	result, err := c.serve(ctx, e, call)
	if err != nil && (fault.CodeOf(err) == fault.ToolNotFound || fault.CodeOf(err) == fault.NotFound) {
		if v := c.refresh(ctx); v.namespaces[call.Ref.Space] == nil || e.info.Input != nil && v.find(call.Ref) == nil {
			return tool.Result{}, c.visible(ctx, v).missing(call.Ref) // it went since we looked
		}
	}
	return result, err
}

// find looks a tool up in the picture we have, and in a new one before it gives
// up. A namespace that has not shown any tools yet is asked all the same: its
// owner may be able to wait for them, and knows better what is wrong.
func (c *Catalog) find(ctx context.Context, ref tool.Ref) (*entry, error) {
	if e := c.view.Load().find(ref); e != nil && c.canSee(ctx, ref) {
		return e, nil
	}
	v := c.visible(ctx, c.refresh(ctx))
	if e := v.find(ref); e != nil {
		return e, nil
	}
	if err := c.WhyHidden(ctx, ref.String()); err != nil {
		return nil, err
	}
	if s := v.namespaces[ref.Space]; s != nil && len(s.tools) == 0 && s.owner != nil {
		return &entry{info: tool.Info{Ref: ref}, source: s.owner, state: s.state}, nil
	}
	return nil, v.missing(ref)
}

// turnAway tells of a call of what exists, though not for who asks.
func (c *Catalog) turnAway(ctx context.Context, call tool.Call, why error) error {
	if c.turned != nil && (fault.CodeOf(why) == fault.Denied || c.view.Load().find(call.Ref) != nil) {
		c.turned(ctx, call, why)
	}
	return why
}

// WhyHidden says why the caller finds no tool of that name although it exists.
func (c *Catalog) WhyHidden(ctx context.Context, name string) error {
	if c.kept == nil {
		return nil
	}
	name = strings.TrimPrefix(name, "mcp.")
	if ref, _ := written(name); !c.canSee(ctx, ref) {
		return nil
	}
	return c.kept(name)
}

// written reads a name as it is written: "space.tool" or "space__tool".
func written(name string) (ref tool.Ref, ok bool) {
	for _, separator := range []string{".", "__"} {
		if space, tail, found := strings.Cut(name, separator); found {
			return tool.Ref{Space: space, Name: tail}, true
		}
	}
	return tool.Ref{Name: name}, false
}

var _ tool.Source = (*Catalog)(nil)
