// Package client is what the commands of cmd/luanette talk to: the same operations
// on a server in this process or on one that runs elsewhere.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Client calls our own tools, reads our resources and uses the admin API.
type Client interface {
	// With returns the same client with notes added to the _meta of every call.
	With(notes map[string]any) Client
	// Call runs one of our own tools.
	Call(ctx context.Context, name string, args any, caller *tool.Caller) (tool.View, error)
	// Read returns the text of a resource.
	Read(ctx context.Context, uri string) (string, error)
	// Admin sends a request to the admin API; body may be nil.
	Admin(ctx context.Context, method, path string, body any) (json.RawMessage, error)
	// Waiting returns the upstreams in this process that are being connected.
	Waiting() []Waiting
	// Close closes the connection, or the server in this process.
	Close(ctx context.Context) error
}

// fullResults is the _meta that asks for whole results, which people can scroll through.
var fullResults = json.RawMessage(`{"` + builtin.FullKey + `":true}`)

// withNotes returns meta with notes added.
func withNotes(meta json.RawMessage, notes map[string]any) json.RawMessage {
	for key, note := range notes {
		if raw, err := json.Marshal(note); err == nil {
			meta = rawjson.Set(meta, key, raw)
		}
	}
	return meta
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

// Options are those of a connection to a running server.
type Options struct {
	Version string        // of this program
	Key     secret.Text   // API key
	CAFile  string        // as in Access
	Wait    time.Duration // for the first response; zero means 5 s
}

// Connect connects to the server at address, such as "http://127.0.0.1:8081", or to a
// backend, such as "zmq+tcp://127.0.0.1:5570".
func Connect(ctx context.Context, address string, options Options) (Client, error) {
	base, socket := serverapi.OverSocket(address)
	spec, err := serverSpec(base)
	if err != nil {
		return nil, err
	}
	if !options.Key.IsZero() {
		spec.Headers = map[string]string{"Authorization": "Bearer " + options.Key.Reveal()}
	}
	bus := event.New(event.BusOptions{})
	defer bus.Close()
	manager := upstream.New(upstream.Options{ClientName: "luanette-cli", ClientVersion: options.Version, Events: bus, CAFile: options.CAFile, Proxy: http.ProxyFromEnvironment, Socket: socket})
	if err := manager.Add(spec); err != nil {
		manager.Close()
		return nil, err
	}
	if err := awaitConnection(ctx, manager, bus, spec.Name, cmp.Or(options.Wait, time.Duration(spec.Wait))); err != nil {
		status, _ := manager.Status(spec.Name)
		manager.Close()
		if refusal := refusalIn(status.LastError); refusal != "" {
			return nil, fault.New(fault.Denied, "connect to %s: %s", address, refusal)
		}
		if status.State == upstream.StateNeedsAuth {
			problem := "the server requires a key"
			if !options.Key.IsZero() {
				problem = "the server rejects the key"
			}
			return nil, fault.New(fault.NeedsAuth, "connect to %s: %s", address, problem).WithHint(serverapi.KeyHint)
		}
		return nil, fault.Wrap(fault.Unavailable, err, "connect to %s", address).WithHint("%s", cmp.Or(status.Hint, serverapi.StartHint))
	}
	peer, _ := manager.Peer(spec.Name)
	return &remote{manager, peer, fullResults, address, Access{Key: options.Key, CAFile: options.CAFile}}, nil
}

// refusalIn returns what a server said that refuses a request whatever the key, or "".
func refusalIn(problem string) string {
	_, body, _ := strings.Cut(problem, "403 Forbidden: ")
	var answer struct{ Error struct{ Message string } }
	if json.Unmarshal([]byte(body), &answer) != nil {
		return ""
	}
	return answer.Error.Message
}

// awaitConnection waits for the first attempt to connect. It does not wait for a
// retry, since a person is waiting at a terminal.
func awaitConnection(ctx context.Context, manager *upstream.Manager, bus *event.Bus, name string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last upstream.Status
	manager.Await(ctx, bus, name, func(s upstream.Status) bool {
		last = s
		return s.Attempted()
	})
	switch {
	case last.State == upstream.StateConnected:
		return nil
	case last.LastError != "":
		return errors.New(last.LastError)
	default:
		return fault.New(fault.Timeout, "no response within %s", timeout)
	}
}

// serverSpec is the server at an address as an upstream of this process.
func serverSpec(address string) (upstream.Spec, error) {
	spec := upstream.Spec{Name: "server", Settings: upstream.Settings{URL: address, Wait: duration.Duration(5 * time.Second)}, Trusted: true}
	if strings.HasPrefix(address, "zmq+") {
		return spec, nil
	}
	u, err := url.Parse(serverapi.WithScheme(address))
	if err != nil {
		return spec, fault.Wrap(fault.InvalidParams, err, "read server address")
	}
	if !strings.Contains(u.Path, "/mcp") { // it is the server's, which may have a path of its own
		u.Path = strings.TrimRight(u.Path, "/") + "/mcp"
	}
	spec.URL, spec.Transport = u.String(), upstream.HTTP
	return spec, nil
}

type remote struct {
	manager *upstream.Manager
	peer    *upstream.Peer
	meta    json.RawMessage
	address string
	access  Access
}

func (c *remote) With(notes map[string]any) Client {
	return &remote{c.manager, c.peer, withNotes(c.meta, notes), c.address, c.access}
}

func (c *remote) Call(ctx context.Context, name string, args any, caller *tool.Caller) (tool.View, error) {
	params, err := json.Marshal(map[string]any{"name": name, "arguments": args})
	if err != nil {
		return tool.View{}, fault.Wrap(fault.InvalidParams, err, "encode arguments of %s", name)
	}
	encoded, _ := rawjson.Get(params, "arguments")
	result, err := c.peer.Call(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: encoded, Meta: c.meta, Caller: caller}, params)
	if err != nil {
		return tool.View{}, explainMissing(err, name)
	}
	return result.View()
}

// explainMissing says why a server does not have one of our tools: it is not for the caller.
func explainMissing(err error, name string) error {
	var refused *wire.Error
	if !errors.As(err, &refused) {
		return err
	}
	if code, _ := rawjson.GetText(refused.Data, "code"); code != string(fault.ToolNotFound) {
		return err
	}
	return fault.New(fault.Denied, "the server has no tool %s for you", name).
		WithHint("`luanette who` shows what you may do there; an administrator can permit more")
}

func (c *remote) Read(ctx context.Context, uri string) (string, error) {
	params, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return "", err
	}
	raw, err := c.peer.Request(ctx, "resources/read", params, nil)
	if err != nil {
		return "", err
	}
	return resourceText(raw)
}

func (c *remote) Admin(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	return Request(ctx, c.address, c.access, method, path, body)
}

func (c *remote) Waiting() []Waiting { return nil }

func (c *remote) Close(context.Context) error {
	c.manager.Close()
	return nil
}
