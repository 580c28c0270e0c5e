package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// Desk is where the command line asks for things: our own tools and resources,
// of a house built for the occasion or of one that is running elsewhere.
type Desk interface {
	// With is the same desk, where notes go along with every call as its _meta.
	With(notes map[string]any) Desk
	// Call runs one of our own tools.
	Call(ctx context.Context, name string, args any, caller *tool.Caller) (tool.View, error)
	// Read returns the text of a resource.
	Read(ctx context.Context, uri string) (string, error)
	// Admin asks the door for administrators; body may be nil.
	Admin(ctx context.Context, method, path string, body any) (json.RawMessage, error)
	// Close gives back what the desk took.
	Close(ctx context.Context) error
}

// Desk serves the command line from this house once each upstream was reached or
// found to be away, or patience is over.
func (srv *Server) Desk(ctx context.Context, patience time.Duration) Desk {
	srv.upstreams.allTried(ctx, patience)
	srv.catalog.Refresh(ctx)
	return &localDesk{srv, srv.resources(), wholeResults}
}

// wholeResults asks for results as they are, which people can scroll through.
var wholeResults = json.RawMessage(`{"` + builtin.FullKey + `":true}`)

// noted is _meta with notes added.
func noted(meta json.RawMessage, notes map[string]any) json.RawMessage {
	for key, note := range notes {
		if raw, err := json.Marshal(note); err == nil {
			meta = rawjson.Set(meta, key, raw)
		}
	}
	return meta
}

type localDesk struct {
	*Server
	resources *builtin.Resources
	meta      json.RawMessage
}

func (d *localDesk) With(notes map[string]any) Desk {
	return &localDesk{d.Server, d.resources, noted(d.meta, notes)}
}

func (d *localDesk) Call(ctx context.Context, name string, args any, caller *tool.Caller) (tool.View, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return tool.View{}, fault.Wrap(fault.InvalidParams, err, "encode arguments of %s", name)
	}
	result, err := d.catalog.Call(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: raw, Meta: d.meta, Caller: caller})
	if err != nil {
		return tool.View{}, err
	}
	return result.View()
}

func (d *localDesk) Read(ctx context.Context, uri string) (string, error) {
	raw, err := d.resources.ReadResource(ctx, uri, nil)
	if err != nil {
		return "", err
	}
	return resourceText(raw)
}

// Connect is a desk at the server that runs at address, such as
// "http://127.0.0.1:8081", or at a backend, such as "zmq+tcp://127.0.0.1:5570".
func Connect(ctx context.Context, address string, options Options) (Desk, error) {
	spec, err := serverSpec(address)
	if err != nil {
		return nil, err
	}
	if !options.Key.IsZero() {
		spec.Headers = map[string]string{"Authorization": "Bearer " + options.Key.Reveal()}
	}
	bus := event.New(event.BusOptions{})
	defer bus.Close()
	manager := upstream.New(upstream.Options{ClientName: "luanette-cli", ClientVersion: options.Version, Events: bus})
	if err := manager.Add(spec); err != nil {
		manager.Close()
		return nil, err
	}
	if err := reached(ctx, manager, bus, spec.Name, cmp.Or(options.Wait, spec.Wait)); err != nil {
		status, _ := manager.Status(spec.Name)
		manager.Close()
		if status.State == upstream.StateNeedsAuth {
			what := "the server wants a key"
			if !options.Key.IsZero() {
				what = "the server refuses the key"
			}
			return nil, fault.New(fault.NeedsAuth, "connect to %s: %s", address, what).
				WithHint("give one with --key, or in LUANETTE_KEY; `luanette key create` makes one")
		}
		return nil, fault.Wrap(fault.Unavailable, err, "connect to %s", address).
			WithHint("start it with `luanette serve`, or name the one that runs: --server URL")
	}
	peer, _ := manager.Peer(spec.Name)
	return &remoteDesk{manager, peer, wholeResults, address, options.Key}, nil
}

// reached waits for the first attempt. One that failed will not do better while
// somebody waits at a terminal, so its error is the answer.
func reached(ctx context.Context, manager *upstream.Manager, bus *event.Bus, name string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last upstream.Status
	until(ctx, manager, bus, name, func(s upstream.Status) bool {
		last = s
		return s.State != upstream.StateConnecting
	})
	switch {
	case last.State == upstream.StateConnected:
		return nil
	case last.LastError != "":
		return errors.New(last.LastError)
	default:
		return fault.New(fault.Timeout, "no answer within %s", patience)
	}
}

// serverSpec is the server at an address as an upstream of ours.
func serverSpec(address string) (upstream.Spec, error) {
	spec := upstream.Spec{Name: "server", URL: address, Wait: 5 * time.Second, Trusted: true}
	if strings.HasPrefix(address, "zmq+") {
		return spec, nil
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return spec, fault.Wrap(fault.InvalidParams, err, "read server address")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/mcp"
	}
	spec.URL, spec.Transport = u.String(), upstream.HTTP
	return spec, nil
}

type remoteDesk struct {
	manager *upstream.Manager
	peer    *upstream.Peer
	meta    json.RawMessage
	address string
	key     secret.Text
}

func (d *remoteDesk) With(notes map[string]any) Desk {
	return &remoteDesk{d.manager, d.peer, noted(d.meta, notes), d.address, d.key}
}

func (d *remoteDesk) Call(ctx context.Context, name string, args any, caller *tool.Caller) (tool.View, error) {
	params, err := json.Marshal(map[string]any{"name": name, "arguments": args})
	if err != nil {
		return tool.View{}, fault.Wrap(fault.InvalidParams, err, "encode arguments of %s", name)
	}
	encoded, _ := rawjson.Get(params, "arguments")
	raw, err := d.peer.Call(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: encoded, Meta: d.meta, Caller: caller}, params)
	if err != nil {
		return tool.View{}, err
	}
	return tool.Result{Raw: raw}.View()
}

func (d *remoteDesk) Read(ctx context.Context, uri string) (string, error) {
	params, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return "", err
	}
	raw, err := d.peer.Request(ctx, "resources/read", params, nil)
	if err != nil {
		return "", err
	}
	return resourceText(raw)
}

func (d *remoteDesk) Close(context.Context) error {
	d.manager.Close()
	return nil
}

// resourceText is the text of a ReadResourceResult.
func resourceText(raw json.RawMessage) (string, error) {
	var result struct {
		Contents []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read resource")
	}
	if len(result.Contents) == 0 {
		return "", errors.New("the resource is empty")
	}
	return result.Contents[0].Text, nil
}
