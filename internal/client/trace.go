package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/server"
)

// TraceOptions say how an upstream is used while it is traced.
type TraceOptions struct {
	Timeout time.Duration // of its start, and of each call
	Calls   []TraceCall
	For     time.Duration // how long it stays connected after the calls
}

// TraceCall is a tool to call.
type TraceCall struct {
	Tool string
	Args json.RawMessage
}

// ParseTraceCall reads TOOL or TOOL=JSON.
func ParseTraceCall(text string) (TraceCall, error) {
	name, args, found := strings.Cut(text, "=")
	if !found {
		args = "{}"
	}
	var object map[string]json.RawMessage
	if name == "" || json.Unmarshal([]byte(args), &object) != nil || object == nil {
		return TraceCall{}, fault.New(fault.InvalidParams, "%q is not a call", text).WithHint(`write TOOL or TOOL=JSON, such as read_file={"path":"a.txt"}`)
	}
	return TraceCall{Tool: name, Args: json.RawMessage(args)}, nil
}

// Traced is what a trace has shown.
type Traced struct {
	Probe   Probe
	Learned profile.Learned
	Failed  []string // what became of calls that failed
}

// Trace starts an upstream with a command in an open sandbox, uses it, ends it, and
// returns what it did.
func (p *Prober) Trace(ctx context.Context, spec upstream.Spec, o TraceOptions) (Traced, error) {
	if spec.Command == "" {
		return Traced{}, fault.New(fault.InvalidParams, "upstream %s has no command: there is no program to trace", spec.Name)
	}
	launcher := p.Config.Launcher(p.Env)
	gateway := p.Config.UseGateway(launcher, egress.Options{Secret: p.Config.SecretFinder(p.Env).Find})
	proposed := startOf(spec, launcher.Home).Propose()
	var trace profile.Trace
	defer launcher.Trace(spec.Name, launch.Trace{Write: proposed.Write, Noted: trace.Add})()

	tracer := *p
	tracer.Sandbox = launcher
	var failed []string
	probe, err := tracer.use(ctx, spec, o.Timeout, func(m *upstream.Manager) error {
		failed = o.callAll(ctx, m, spec.Name)
		return stay(ctx, o.For)
	})
	if err != nil {
		return Traced{}, err
	}
	return Traced{Probe: probe, Failed: failed, Learned: profile.Learned{
		Name: spec.Name, Given: spec.Profile, Arguments: slices.Concat(proposed.Read, proposed.Write), Home: launcher.Home, UserID: os.Getuid(),
		Uses: trace.Uses(), Hosts: reached(gateway.Connections(spec.Name)),
	}}, nil
}

// startOf is how an upstream's program is started.
func startOf(spec upstream.Spec, home string) profile.Start {
	s := profile.Start{Command: spec.Command, Args: spec.Args, Env: spec.Env, Dir: spec.Cwd, Home: home, UserID: os.Getuid()}
	if s.Dir == "" {
		s.Dir, _ = os.Getwd()
	}
	return s
}

// callAll calls the tools one after the other and returns what failed.
func (o TraceOptions) callAll(ctx context.Context, m *upstream.Manager, namespace string) (failed []string) {
	for _, call := range o.Calls {
		if err := o.call(ctx, m, tool.Call{Ref: tool.Ref{Space: namespace, Name: call.Tool}, Args: call.Args}); err != nil {
			failed = append(failed, call.Tool+": "+redact.Text(err.Error()))
		}
	}
	return failed
}

func (o TraceOptions) call(ctx context.Context, m *upstream.Manager, call tool.Call) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	result, err := m.Call(ctx, call)
	if err != nil {
		return err
	}
	view, err := result.View()
	if err == nil && view.IsError {
		err = errors.New(view.Text())
	}
	return err
}

// stay waits, unless ctx ends before.
func stay(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reached are the entries of network that allow the connections. A name that leads into a
// private network needs the address, too.
func reached(connections []egress.Connection) (entries []string) {
	for _, c := range connections {
		entries = append(entries, c.Destination())
		address, err := netip.ParseAddrPort(c.Address)
		if err == nil && c.Host != "localhost" && !netguard.Public(address.Addr()) {
			entries = append(entries, address.String())
		}
	}
	return entries
}

// ListAll connects to an upstream of a server in this process and asks for everything
// that it lists, so that a recording has it.
func ListAll(ctx context.Context, srv *server.Server, name string) error {
	srv.Upstreams().Start(ctx, name)
	status, _ := srv.Upstreams().Status(name)
	peer, ok := srv.Upstreams().Relayed(ctx, name)
	if !ok || status.State != string(upstream.StateConnected) {
		return fault.New(fault.Unavailable, "upstream %s is %s: %s", name, status.State, status.Error).WithHint("%s", status.Hint)
	}
	capabilities, _, _, err := peer.Describe(ctx)
	if err != nil {
		return err
	}
	for _, list := range []struct{ capability, method string }{
		{"resources", wire.MethodResourcesList}, {"resources", wire.MethodResourceTemplates}, {"prompts", wire.MethodPromptsList},
	} {
		if _, offered := rawjson.Get(capabilities, list.capability); !offered {
			continue
		}
		if err := listPages(ctx, peer, list.method); err != nil {
			return err
		}
	}
	return nil
}

// maxPages ends a list that does not end by itself.
const maxPages = 100

// listPages asks for all pages of a list. A server that refuses to list has that recorded,
// too.
func listPages(ctx context.Context, peer hub.Peer, method string) error {
	params := json.RawMessage(`{}`)
	for range maxPages {
		result, err := peer.Request(ctx, method, params, nil)
		if err != nil && fault.CodeOf(err) == fault.Upstream {
			return nil
		}
		if err != nil {
			return err
		}
		cursor, more := rawjson.GetText(result, "nextCursor")
		if !more || cursor == "" {
			return nil
		}
		params = rawjson.SetText(nil, "cursor", cursor)
	}
	return nil
}
