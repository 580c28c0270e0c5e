package catalog

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// DefaultSteps are the steps of a catalog that is given none, in the order in which a
// call meets them.
func DefaultSteps() []tool.Step {
	return []tool.Step{LimitDepth(), Observe(), CheckVisible(), CheckScope(), RunHooks(sameName), CheckArguments(), LimitNamespace()}
}

// run is one call under way: the invocation that all steps see, and what the catalog's
// own steps need between Before and After.
type run struct {
	tool.Invocation
	catalog *Catalog
	asked   tool.Ref // the name that the caller used
	entry   *entry   // nil: the call is relayed
	state   *namespaceState
	relayed tool.Info       // of a relayed call
	params  json.RawMessage // likewise, as the client wrote them
	to      Forwarder       // likewise
	passed  int             // steps whose Before succeeded

	observation
	hooks  Hooks  // nil: none
	hooked string // the upstream's name of the tool, which hooks know
	permit permit
}

// runs are used again, so that a call costs no memory for its steps.
var runs = sync.Pool{New: func() any { return new(run) }}

func (c *Catalog) newRun(call tool.Call, state *namespaceState) *run {
	r := runs.Get().(*run)
	r.catalog, r.asked, r.state = c, call.Ref, state
	r.Call, r.Args, r.Began, r.State = call, call.Args, time.Now(), r
	return r
}

// free returns what came of the call, and the memory of the run.
func (r *run) free() (tool.Result, error) {
	result, err := r.Result, r.Err
	*r = run{}
	runs.Put(r)
	return result, err
}

// Call runs a tool. Besides what the tool's source answers, it fails with
// tool_not_found, invalid_params, limit_exceeded and unavailable of its own.
func (c *Catalog) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := c.ready(ctx); err != nil {
		return tool.Result{}, err
	}
	call.Ref = c.own(ctx, call.Ref)
	e, err := c.find(ctx, call.Ref)
	if err != nil {
		return tool.Result{}, c.inNames(ctx, err)
	}
	e = c.callersEntry(ctx, e)
	r := c.newRun(call, e.state)
	r.entry, r.Info = e, &e.info
	if e.info.Original == call.Ref.Name && e.info.Original != "" {
		r.Call.Ref = e.info.Ref // events and logs use one name
	}
	r.do(ctx)
	result, err := r.free()
	if err != nil && (fault.CodeOf(err) == fault.ToolNotFound || fault.CodeOf(err) == fault.NotFound) {
		if v := c.refresh(ctx); v.namespaces[e.info.Space] == nil || e.info.Input != nil && v.find(e.info.Ref) == nil {
			return tool.Result{}, c.missing(ctx, v, e.info.Ref) // it was removed since we looked
		}
	}
	return result, c.inNames(ctx, err)
}

// ready waits as the option Ready says.
func (c *Catalog) ready(ctx context.Context) error {
	if c.options.Ready == nil {
		return nil
	}
	return c.options.Ready(ctx)
}

// Check returns why a call would be refused before it reaches the tool. It makes no call
// and leaves no trace.
func (c *Catalog) Check(ctx context.Context, call tool.Call) error {
	call.Ref = c.own(ctx, call.Ref)
	e, err := c.find(ctx, call.Ref)
	if err != nil {
		return c.inNames(ctx, err)
	}
	e = c.callersEntry(ctx, e)
	r := c.newRun(call, e.state)
	r.entry, r.Info = e, &e.info
	ctx = r.check(ctx)
	if source, ok := e.source.(checker); ok && r.Err == nil {
		r.Err = source.Check(ctx, r.Call)
	}
	_, err = r.free()
	return c.inNames(ctx, err)
}

// check takes the call through the steps that only check.
func (r *run) check(ctx context.Context) context.Context {
	for i := range r.catalog.options.Steps {
		if step := &r.catalog.options.Steps[i]; step.ChecksOnly && r.Err == nil {
			ctx, r.Err = step.Before(ctx, &r.Invocation)
		}
	}
	return ctx
}

// CheckRelay is Check for a call that would be relayed.
func (c *Catalog) CheckRelay(ctx context.Context, info tool.Info, call tool.Call) error {
	n := c.namespace(ctx, call.Ref.Space)
	if n == nil {
		return fault.New(fault.NotFound, "no namespace %q", call.Ref.Space)
	}
	r := c.newRun(call, n.state)
	r.relayed, r.Relayed = info, true
	r.Info = &r.relayed
	r.check(ctx)
	_, err := r.free()
	return err
}

// checker is a source that knows beforehand which calls it would refuse.
type checker interface {
	Check(ctx context.Context, call tool.Call) error
}

// find looks a tool up, and reads the sources again before it gives up. A namespace
// that has not listed any tools yet gets the call all the same: its owner may be able
// to wait for them, and knows better what is wrong.
func (c *Catalog) find(ctx context.Context, ref tool.Ref) (*entry, error) {
	if e := c.view.Load().find(ref); e != nil {
		return e, nil
	}
	v, e := c.lookUp(ctx, ref)
	if e != nil {
		return e, nil
	}
	hidden := c.WhyHidden(ctx, ref.String())
	if n := v.namespaces[ref.Space]; n != nil && n.owner != nil && (hidden != nil || v.isUnlisted(ref.Space)) {
		return &entry{info: tool.Info{Ref: ref}, source: n.owner, state: n.state, hidden: hidden}, nil //nolint:nilerr // the step CheckVisible reports it, so that the refusal is audited
	}
	if hidden != nil {
		return nil, hidden
	}
	return nil, c.missing(ctx, v, ref)
}

// Forwarder sends a request to an upstream as the client wrote it.
type Forwarder interface {
	Call(ctx context.Context, call tool.Call, params json.RawMessage) (tool.Result, error)
}

// Relay takes a call through the same steps as Call, and then has the request
// forwarded as the client wrote it instead of calling the tool's source. info is what
// is known of the tool.
func (c *Catalog) Relay(ctx context.Context, info tool.Info, call tool.Call, params json.RawMessage, to Forwarder) (tool.Result, error) {
	if err := c.ready(ctx); err != nil {
		return tool.Result{}, err
	}
	n := c.namespace(ctx, call.Ref.Space)
	if n == nil {
		return tool.Result{}, fault.New(fault.NotFound, "no namespace %q", call.Ref.Space)
	}
	r := c.newRun(call, n.state)
	r.relayed, r.to, r.params, r.Params, r.Relayed = info, to, params, params, true
	r.Info = &r.relayed
	r.do(ctx)
	return r.free()
}

// Repeat makes a call again, as its caller made it. It is for a step that answers a call
// by having it made later.
func (c *Catalog) Repeat(ctx context.Context, i *tool.Invocation) (tool.Result, error) {
	r := i.State.(*run)
	call := i.Call
	call.Ref, call.Args = r.asked, i.Args
	if i.Relayed {
		return c.Relay(ctx, r.relayed, call, r.params, r.to)
	}
	return c.Call(ctx, call)
}

// do takes the call through the steps to its tool.
func (r *run) do(ctx context.Context) {
	defer func() { r.end(ctx, recover()) }()
	for ; r.passed < len(r.catalog.options.Steps); r.passed++ {
		before := r.catalog.options.Steps[r.passed].Before
		if before == nil {
			continue
		}
		if ctx, r.Err = before(ctx, &r.Invocation); r.Err != nil || r.Answered {
			return
		}
	}
	if r.Relayed {
		r.Result, r.Err = r.to.Call(ctx, r.Call, r.Params)
		return
	}
	r.Result, r.Err = r.entry.source.Call(ctx, r.Call)
}

// end runs the After functions. A source that panicked has made a mistake of its own,
// which must not end the program.
func (r *run) end(ctx context.Context, panicked any) {
	if panicked != nil {
		r.catalog.options.Log.ErrorContext(ctx, "tool panicked", "tool", r.Call.Ref.String(), "panic", panicked, "stack", string(debug.Stack()))
		r.Result, r.Err = tool.Result{}, fault.New(fault.Internal, "call %s: the tool panicked: %v", r.Call.Ref, panicked)
	}
	r.Took = time.Since(r.Began)
	for i := r.passed - 1; i >= 0; i-- {
		if after := r.catalog.options.Steps[i].After; after != nil {
			after(ctx, &r.Invocation)
		}
	}
}

// namespace is what is known of a namespace, or nil when there is none of that name.
func (c *Catalog) namespace(ctx context.Context, name string) *namespaceTools {
	if n := c.view.Load().namespaces[name]; n != nil {
		return n
	}
	return c.refresh(ctx).namespaces[name]
}

// Hooks see and change calls of tools that have a namespace. They do not see calls of
// our own tools, but the calls that those make.
type Hooks interface {
	// ToolCall sees a call before it is made. It may return other arguments, a
	// result in place of the tool's, or an error that refuses the call.
	ToolCall(ctx context.Context, call tool.HookedCall) (args json.RawMessage, answer *tool.Result, err error)
	// ToolResult sees how it ended and returns what the caller gets.
	ToolResult(ctx context.Context, call tool.HookedCall, result tool.Result, failed error) (tool.Result, error)
}

// SetHooks sets the hooks that run from now on; nil sets none.
func (c *Catalog) SetHooks(hooks Hooks) {
	if hooks == nil {
		c.hooks.Store(nil)
		return
	}
	c.hooks.Store(&hooks)
}

// RunHooks runs the owner's hooks before and after. Arguments that a hook changed are
// checked like the caller's own. original returns the upstream's name of a tool.
func RunHooks(original func(ctx context.Context, ref tool.Ref) (string, error)) tool.Step {
	return tool.Step{Name: "hooks", After: afterHooks, Before: func(ctx context.Context, i *tool.Invocation) (context.Context, error) {
		return beforeHooks(ctx, i, original)
	}}
}

func beforeHooks(ctx context.Context, i *tool.Invocation, original func(context.Context, tool.Ref) (string, error)) (context.Context, error) {
	r := i.State.(*run)
	hooks := r.catalog.hooks.Load()
	if hooks == nil || i.Call.Ref.Space == "" || i.Call.Kind != "" {
		return ctx, nil
	}
	name, err := original(ctx, i.Call.Ref)
	if err != nil {
		return ctx, err
	}
	args, answer, err := (*hooks).ToolCall(ctx, tool.HookedCall{Call: i.Call, Original: name})
	if err != nil {
		return ctx, err
	}
	if answer != nil {
		i.Result, i.Answered = *answer, true
		return ctx, nil
	}
	if i.Relayed && len(args) > 0 {
		i.Params = rawjson.Set(i.Params, "arguments", args)
	}
	r.hooks, r.hooked, i.Call.Args, i.Call.Task = *hooks, name, args, nil // the hooks see the result, not a task
	return ctx, nil
}

func afterHooks(ctx context.Context, i *tool.Invocation) {
	if r := i.State.(*run); r.hooks != nil && !i.Asked {
		i.Result, i.Err = r.hooks.ToolResult(ctx, tool.HookedCall{Call: i.Call, Original: r.hooked}, i.Result, i.Err)
	}
}

// sameName is for tools that have no other names.
func sameName(_ context.Context, ref tool.Ref) (string, error) { return ref.Name, nil }

// DefaultDepth is how deep calls may nest.
const DefaultDepth = 8

// metaDepth is the key of a call's _meta that holds its depth. A server that is
// ourselves, or calls us back, passes it on, so that a circle through the network ends
// as well. A caller with a false value can only make its own calls deeper than they
// are.
const metaDepth = "luanette/depth"

type depthKey struct{}

// Depth is how many calls ctx is inside of.
func Depth(ctx context.Context) int {
	depth, _ := ctx.Value(depthKey{}).(int)
	return depth
}

func withDepth(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// depthIn is the depth in a caller's _meta, or zero.
func depthIn(meta json.RawMessage) int {
	raw, ok := rawjson.Get(meta, metaDepth)
	if !ok {
		return 0
	}
	depth, err := strconv.Atoi(string(raw))
	if err != nil {
		return 0
	}
	return depth
}

// LimitDepth refuses calls that are nested too deep, which ends tools that call each
// other in a circle. Relayed requests are not changed, so their depth is not recorded.
func LimitDepth() tool.Step { return tool.Step{Name: "depth", ChecksOnly: true, Before: limitDepth} }

func limitDepth(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	if i.Relayed {
		return ctx, nil
	}
	limit := i.State.(*run).catalog.options.Depth
	above := max(Depth(ctx), depthIn(i.Call.Meta))
	if above >= limit {
		return ctx, fault.New(fault.Limit, "call %s: calls are nested more than %d deep", i.Call.Ref, limit).
			WithHint("a tool probably calls itself through others; break the circle")
	}
	if i.Call.Ref.Space != "" {
		i.Call.Meta = rawjson.Set(i.Call.Meta, metaDepth, strconv.AppendInt(nil, int64(above+1), 10))
	}
	return withDepth(ctx, above+1), nil
}

// CheckVisible refuses calls of tools that do not exist for the caller, with the error
// of a tool that does not exist at all, and of tools that are hidden from everybody,
// with the reason.
func CheckVisible() tool.Step {
	return tool.Step{Name: "visible", ChecksOnly: true, Before: checkVisible}
}

func checkVisible(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	r := i.State.(*run)
	switch c := r.catalog; {
	case !c.canSee(ctx, r.asked) && i.Call.Kind != "":
		return ctx, i.Deny("key", fault.New(fault.NotFound, "no %s", strings.Replace(r.asked.Name, ":", " ", 1)))
	case !c.canSee(ctx, r.asked) && i.Relayed:
		return ctx, i.Deny("key", fault.New(fault.ToolNotFound, "no tool %q", i.Call.Ref.Name).WithHint("tools/list shows the available tools"))
	case !c.canSee(ctx, r.asked):
		return ctx, i.Deny("key", c.missing(ctx, c.view.Load(), r.asked))
	case r.entry != nil && r.entry.hidden != nil:
		return ctx, i.Deny("trust", r.entry.hidden)
	case i.Info.App.Hidden && !i.Relayed && !isDirect(ctx, r.asked):
		return ctx, i.Deny("app", fault.New(fault.ToolNotFound, "%s is for the pages of its server only", i.Call.Ref).
			WithHint("a client that shows MCP Apps calls it for such a page"))
	default:
		return ctx, nil
	}
}

// CheckScope asks the caller's scope whether it admits the call.
func CheckScope() tool.Step { return tool.Step{Name: "scope", ChecksOnly: true, Before: checkScope} }

func checkScope(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	if approved, ok := tool.Approved(ctx); ok && shown(ctx, i.Call.Ref) == approved {
		return ctx, nil // it was counted when it asked
	}
	if scope := tool.ScopeOf(ctx); scope != nil && scope.Admit != nil {
		return ctx, scope.Admit(i.Call.Ref)
	}
	return ctx, nil
}
