// Package catalog joins every source of tools into one. It lists and searches all
// tools, finds a tool by any of its names, takes each call through a list of steps to
// the tool's source, and decides which tools the hub exposes under which names.
//
// Reading does not wait for sources that have listed their tools before: the catalog
// holds a view of all tools, which is replaced when the list of a source has changed.
package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/observe/history"
	"github.com/luanette/luanette/internal/observe/telemetry/duration"
)

// Options configure a catalog. The zero value is an empty catalog that exposes nothing.
type Options struct {
	// Sources provide the tools; Add adds more. If two sources offer the same tool, the
	// earlier one is used.
	Sources []tool.Source
	// Bus receives events about calls and changes; may be nil.
	Bus *event.Bus
	// Log receives warnings; nil discards them.
	Log *slog.Logger
	// Tracer starts a span per call; nil starts none.
	Tracer trace.Tracer
	// Meter records how long calls take; nil records nothing.
	Meter metric.Meter
	// Ready waits, before a call or a list, until it is decided which tools there are and
	// what holds for their calls; nil: at once.
	Ready func(context.Context) error
	// Steps are what each call passes, in order; nil means DefaultSteps.
	Steps []tool.Step
	// Depth is how deep calls may nest: a tool that calls a tool that calls … Zero
	// means DefaultDepth.
	Depth int
	// Limits returns the limits of a namespace; nil means the zero Limits for each. When
	// they change, call ReloadLimits. Our own tools have no namespace and no limits: a
	// call of one that waits for another could wait for itself.
	Limits func(namespace string) Limits
	// NameLength bounds exposed names; zero means DefaultNameLength. More than 64
	// characters are never used.
	NameLength int
	// Private tells which namespaces belong to one user: only callers whose scope allows
	// them see them. nil: none.
	Private func(namespace string) bool
	// Reserved tells which tools a principal does not see unless it is an administrator.
	// nil: none.
	Reserved func(principal.Principal, tool.Ref) bool
	// InSet tells whether a tool is in the set of tools that a principal is within. nil: no
	// tool is in any.
	InSet func(principal.Principal, tool.Ref) bool
	// Special tells which namespaces have tools for special purposes: like our own, they are
	// found after others unless words match that are specific for them. nil: none.
	Special func(namespace string) bool
	// Known returns what the search may use of a namespace beyond its tools' definitions;
	// nil: nothing.
	Known func(namespace string) Known
	// Learned returns the schema of a tool's results that was learned from them, nil if none
	// was. It may be nil.
	Learned func(ref tool.Ref) json.RawMessage
	// Usage learns from what is called after a search; nil: nothing is learned.
	Usage Usage
	// History counts the calls of tools that are not our own or private; may be nil.
	History *history.Calls
	// Hides returns which tools are not listed for a principal, though a call of one is
	// refused with the reason; it may return nil for none. nil: never any.
	Hides func(who principal.Principal) func(*tool.Info) bool
	// Own returns how listed tools are for the caller alone: false for one that only others
	// have, and the caller's definition of one that is defined otherwise for them. The same
	// pointer means the same definition. It may return nil for none. nil: never any.
	Own func(ctx context.Context) func(*tool.Info) (own *tool.Info, has bool)
	// Load has the owner of a namespace list its tools if that needs to be asked for: a
	// tool was not found there, or none is known. nil: every source lists by itself.
	Load func(ctx context.Context, namespace string)
	// WhyHidden says why a tool that an upstream offers is not listed by its source, by
	// the name "space.tool" or "space__tool"; nil: no tool is hidden.
	WhyHidden func(name string) error
}

// Catalog is all tools as one source. It is safe for concurrent use and starts no
// goroutines.
type Catalog struct {
	options   Options // with all defaults filled in
	durations *duration.Histogram[callKind]
	schemas   *schemas
	calls     atomic.Uint64 // numbers calls, for events
	hooks     atomic.Pointer[Hooks]

	view     atomic.Pointer[view] // the current view; replaced under mu
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
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Tracer == nil {
		o.Tracer = noop.Tracer{}
	}
	if o.Limits == nil {
		o.Limits = func(string) Limits { return Limits{} }
	}
	if o.Known == nil {
		o.Known = func(string) Known { return Known{} }
	}
	if o.Usage == nil {
		o.Usage = noUsage{}
	}
	if o.Steps == nil {
		o.Steps = DefaultSteps()
	}
	if o.Depth <= 0 {
		o.Depth = DefaultDepth
	}
	c := &Catalog{
		options: o, durations: newDurations(o.Meter),
		schemas:  newSchemas(o.Log),
		exposure: map[string]Exposure{},
		names:    newNames(o.NameLength),
		watchers: map[*func()]struct{}{},
	}
	c.view.Store(&view{})
	for _, s := range o.Sources {
		c.members = append(c.members, &member{source: s})
	}
	return c
}

// Add adds a source. Its tools appear when the sources are read next.
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

// Refresh reads the sources again. Call it when the list of a source may have changed;
// it costs little when it has not.
func (c *Catalog) Refresh(ctx context.Context) { c.refresh(ctx) }

// Namespaces lists the namespaces, also those whose tools are not known yet.
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
	n, ok := c.visible(ctx, c.listed(ctx, c.own(ctx, tool.Ref{Space: namespace}).Space)).namespaces[namespace]
	if !ok {
		return nil, false
	}
	return n.tools, true
}

// Find looks up one tool; ok is false when there is none of that name.
func (c *Catalog) Find(ctx context.Context, ref tool.Ref) (info tool.Info, ok bool) {
	ref = c.own(ctx, ref)
	e := c.view.Load().find(ref)
	if e == nil {
		_, e = c.lookUp(ctx, ref)
	}
	if e == nil || !c.canSee(ctx, ref) || !c.isListedFor(ctx, e) {
		return tool.Info{}, false
	}
	info = c.callersEntry(ctx, e).info
	info.Ref = shown(ctx, info.Ref)
	return info, true
}

// OutputOf returns the schema of a tool's structured results, as its server declares it or as
// it was learned; nil if it is not known.
func (c *Catalog) OutputOf(ctx context.Context, ref tool.Ref) json.RawMessage {
	info, ok := c.Find(ctx, ref)
	if !ok || info.Output != nil || c.options.Learned == nil {
		return info.Output
	}
	return c.options.Learned(c.own(ctx, ref))
}

// WhyHidden says why the caller does not find a tool of that name although an upstream
// offers it; nil when nothing is hidden.
func (c *Catalog) WhyHidden(ctx context.Context, name string) error {
	if c.options.WhyHidden == nil {
		return nil
	}
	name = strings.TrimPrefix(name, "mcp.")
	ref, _ := parseName(name)
	if real := c.own(ctx, ref); real != ref {
		ref, name = real, real.String()
	}
	if !c.canSee(ctx, ref) {
		return nil
	}
	return c.inNames(ctx, c.options.WhyHidden(name))
}

// parseName reads "space.tool" or "space__tool".
func parseName(name string) (ref tool.Ref, ok bool) {
	for _, separator := range []string{".", "__"} {
		if space, tail, found := strings.Cut(name, separator); found {
			return tool.Ref{Space: space, Name: tail}, true
		}
	}
	return tool.Ref{Name: name}, false
}

var _ tool.Source = (*Catalog)(nil)

// lookUp finds a tool in the sources as they are now. If it is not there, the owner of
// its namespace is asked to list its tools.
func (c *Catalog) lookUp(ctx context.Context, ref tool.Ref) (*view, *entry) {
	v := c.refresh(ctx)
	e := v.find(ref)
	if e == nil && c.canLoad(v, ref.Space) {
		v = c.loaded(ctx, ref.Space)
		e = v.find(ref)
	}
	return v, e
}

// listed is the current view, with the tools of a namespace if they can be listed.
func (c *Catalog) listed(ctx context.Context, namespace string) *view {
	v := c.refresh(ctx)
	if c.canLoad(v, namespace) && len(v.namespaces[namespace].tools) == 0 {
		return c.loaded(ctx, namespace)
	}
	return v
}

// canLoad tells whether the owner of a namespace may know more of its tools.
func (c *Catalog) canLoad(v *view, namespace string) bool {
	n := v.namespaces[namespace]
	return c.options.Load != nil && n != nil && n.owner != nil
}

// isUnlisted tells whether a namespace has an owner that has not listed any tools.
func (v *view) isUnlisted(namespace string) bool {
	n := v.namespaces[namespace]
	return n != nil && n.owner != nil && len(n.tools) == 0
}

func (c *Catalog) loaded(ctx context.Context, namespace string) *view {
	c.options.Load(ctx, namespace)
	return c.refresh(ctx)
}
