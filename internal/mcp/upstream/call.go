package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// call runs one of the server's tools.
func (k *keeper) call(ctx context.Context, call tool.Call) (tool.Result, error) {
	name := call.Ref.Name
	args := call.Args
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	params := append(make([]byte, 0, len(name)+len(args)+32), `{"name":`...)
	params = append(rawjson.AppendText(params, name), `,"arguments":`...)
	params = append(append(params, args...), '}')
	result, err := k.callTool(ctx, name, args, request{
		method: wire.MethodToolsCall, params: params, meta: call.Meta, caller: call.Caller,
	})
	return tool.Result{Raw: result}, err
}

// callTool makes a tools/call, counts it, and holds it to what the spec permits.
func (k *keeper) callTool(ctx context.Context, name string, args json.RawMessage, r request) (json.RawMessage, error) {
	known, err := k.permit(name)
	if err != nil {
		return nil, err
	}
	r.caption = known.caption
	for _, p := range known.params {
		if value, ok := p.Value(args); ok {
			r.headers = append(r.headers, Header{p.Header, value})
		}
	}
	if r.caller == nil {
		r.caller = &tool.Caller{} // nobody to talk to, but progress still counts
	}
	k.began(name)
	result, err := k.request(ctx, &r, name, known.hints.Repeatable())
	k.ended(err != nil || r.failed)
	return result, err
}

// permission is what calls of a tool need to know of it.
type permission struct {
	hints   tool.Hints
	params  []wire.HeaderParam
	caption *caption // nil for one that is not listed
}

// permit tells what is known of a tool, or that it does not exist for us.
func (k *keeper) permit(name string) (permission, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info := k.find(name)
	if !k.spec.permits(name) || k.spec.ReadOnly && !info.Hints.ReadOnly {
		return permission{}, fault.New(fault.Denied, "tool %s.%s is not allowed by the configuration", k.spec.Name, name).
			WithHint("see allowed_tools, disabled_tools and read_only of upstream %s", k.spec.Name)
	}
	p := permission{hints: info.Hints, params: k.list.headers[name], caption: k.list.captions[name]}
	if p.caption == nil && info.Name != "" {
		if k.list.captions == nil {
			k.list.captions = map[string]*caption{}
		}
		p.caption = k.caption(wire.MethodToolsCall, info.Name)
		k.list.captions[info.Name] = p.caption
	}
	return p, nil
}

// find looks a tool up; one that is not listed claims nothing. k.mu is held.
func (k *keeper) find(name string) tool.Info {
	at, found := slices.BinarySearchFunc(k.list.tools, name, func(info tool.Info, name string) int {
		return strings.Compare(info.Name, name)
	})
	if !found {
		return tool.Info{}
	}
	return k.list.tools[at]
}

// began and ended keep the statistics of calls.
func (k *keeper) began(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.Calls++
	k.stats.InFlight++
	k.stats.LastTool, k.stats.LastCall = name, time.Now()
}

func (k *keeper) ended(failed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.InFlight--
	if failed {
		k.stats.Errors++
	}
}

// request reaches the server, however long its spec lets a caller wait, and asks.
// A request that cannot have been seen is made again as long as that wait lasts;
// one that may have been seen only when repeatable. what names it in errors.
func (k *keeper) request(ctx context.Context, r *request, what string, repeatable bool) (result json.RawMessage, err error) {
	r.timeout, r.maxTime = k.times()
	r.about = what
	ctx, span := k.trace(ctx, r)
	defer func() { r.conclude(span, err) }()
	var since time.Time
	for try := 1; ; try++ {
		s, err := k.reach(ctx, &since)
		if err != nil {
			return nil, err
		}
		result, err = s.perform(ctx, r)
		k.use()
		if err == nil {
			r.failed = r.method == wire.MethodToolsCall && rawjson.GetBool(result, "isError")
			return result, nil
		}
		verdict := k.judge(ctx, s, err)
		if since.IsZero() {
			since = time.Now()
		}
		late := try > 1 && time.Since(since) > k.currentSpec().wait()
		if late || !verdict.allows(repeatable) {
			return nil, k.explain(ctx, err, what)
		}
		if verdict == unsure && try > 1 { // perhaps the request itself is what it dies of
			_ = clock.Real().Sleep(ctx, backoff.Policy{First: 25 * time.Millisecond, Max: 500 * time.Millisecond}.Delay(try-1))
		}
	}
}

// times are how long a request may take without a sign of progress, and at all.
func (k *keeper) times() (silent, most time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.spec.timeout(), k.spec.maxTime()
}

// use keeps a lazy server awake.
func (k *keeper) use() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used = time.Now()
}

// reach gives the session that serves, waking the server and waiting for it as
// long as its spec says from since on, which is set with the first wait; a
// program that is starting is given the time to.
func (k *keeper) reach(ctx context.Context, since *time.Time) (*session, error) {
	var timer *time.Timer
	late := false
	for {
		k.mu.Lock()
		k.used = time.Now()
		if s := k.session; s != nil {
			k.mu.Unlock()
			return s, nil
		}
		state, told, spec, starting := k.state, k.told, k.spec, k.starting()
		k.mu.Unlock()
		if state == StateNeedsAuth || late && !starting {
			return nil, k.away(*since)
		}
		if timer == nil {
			if since.IsZero() {
				*since = time.Now()
			}
			timer = time.NewTimer(spec.wait() - time.Since(*since))
			defer timer.Stop()
			signal(k.wake)
		} else if state == StateAsleep {
			signal(k.wake)
		}
		select {
		case <-told:
		case <-timer.C:
			late = true
		case <-k.life.ctx.Done():
			return nil, fault.Wrap(fault.Unavailable, errRemoved, "reach %s", spec.Name)
		case <-ctx.Done():
			return nil, k.explain(ctx, context.Cause(ctx), "")
		}
	}
}

// starting tells that a program which came up the last time is on its way again,
// which is worth waiting for: it may need longer than callers wait for a server
// that is away. k.mu is held.
func (k *keeper) starting() bool {
	return k.sound && (k.spec.Command != "" || k.spec.lazy())
}

// again says whether a request may be made once more.
type again uint8

const (
	never  again = iota // it has an answer, or nobody waits for one
	unsure              // the server may have acted on it
	safely              // the server cannot have seen it
)

// allows tells whether a request that may be repeated, or may not, is made again.
func (a again) allows(repeatable bool) bool { return a == safely || a == unsure && repeatable }

// judge decides that for a request that ended in err, and starts healing what
// err says is broken.
func (k *keeper) judge(ctx context.Context, s *session, err error) again {
	var answered *wire.Error
	var status *statusError
	switch {
	case errors.As(err, &answered), errors.Is(err, wire.ErrTooLarge):
		return never
	case errors.Is(err, errImpatient), errors.Is(err, errOverdue):
		signal(k.doubt)
		return never
	case ctx.Err() != nil:
		return never
	case lacksScope(err):
		return never
	case errors.As(err, &status) && status.auth():
		k.fail(s, err)
		return never
	case errors.As(err, &status) && status.Code < 500:
		return never
	case errors.Is(err, ErrNotSent):
		k.fail(s, err)
		return safely
	}
	signal(k.doubt)
	return unsure
}
