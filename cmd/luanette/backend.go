package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// backendCommand is `luanette backend`: it sends single requests to a backend.
type backendCommand struct {
	Ping   backendPingCommand   `cmd:"" help:"Check that a backend is reachable, and measure its response time."`
	Tools  backendToolsCommand  `cmd:"" help:"List a backend's tools."`
	Send   backendSendCommand   `cmd:"" help:"Send a backend a request and print the reply."`
	Listen backendListenCommand `cmd:"" help:"Print the broadcasts of a backend."`
	Keygen backendKeygenCommand `cmd:"" help:"Make a pair of keys for connections to and from other machines."`
}

// Help is shown by `luanette backend --help`.
func (backendCommand) Help() string {
	return `A backend speaks HOOT02 over ZeroMQ (docs/backends.md). These commands connect to
it directly, without a server. To use its tools, add it as an upstream:

  luanette upstream add music zmq+tcp://127.0.0.1:5580

Commands that take --server also take a backend that has the tools they need:
luanette job list --server zmq+tcp://127.0.0.1:5570`
}

// backendFlags are the flags of every backend command.
type backendFlags struct {
	URL     string        `arg:"" help:"The backend's address, such as zmq+tcp://127.0.0.1:5580."`
	JSON    bool          `help:"Print JSON."`
	Timeout time.Duration `short:"t" default:"60s" help:"Timeout of the whole command."`
	Wait    bool          `short:"w" help:"Wait for a backend that is not reachable yet."`
	Curve   string        `placeholder:"KEY" help:"Public key of a backend that uses CURVE. The variable LUANETTE_CURVE_SECRET may hold the secret key of this end."`
}

// withBackend connects to the backend, runs a function and disconnects.
func (f *backendFlags) withBackend(ctx context.Context, proc *process, do func(context.Context, *hootclient.Client) error) error {
	endpoint := strings.TrimPrefix(f.URL, "zmq+")
	if !strings.Contains(endpoint, "://") {
		endpoint = "tcp://" + endpoint
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.Timeout, fault.New(fault.Timeout, "no response within %v", f.Timeout).
		WithHint("check that a backend listens at %s; docs/backends.md", f.URL))
	defer cancel()
	var opts hootclient.Options
	var err error
	if f.Curve != "" {
		if opts.Curve, err = zmtp.ClientCurve(f.Curve, proc.Env["LUANETTE_CURVE_SECRET"]); err != nil {
			return err
		}
	}
	c, err := hootclient.Dial(ctx, endpoint, opts)
	for try := 1; err != nil && f.Wait && ctx.Err() == nil; try++ {
		select {
		case <-time.After(backoff.Policy{}.Delay(try)):
		case <-ctx.Done():
		}
		c, err = hootclient.Dial(ctx, endpoint, opts)
	}
	if err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "connect to %s", f.URL).WithHint("%s", hintOr(err, "check that the backend is running"))
	}
	defer c.Close()
	return do(ctx, c)
}

func hintOr(err error, otherwise string) string {
	if hint := fault.HintOf(err); hint != "" {
		return hint
	}
	return otherwise
}

// backendPingCommand is `luanette backend ping`.
type backendPingCommand struct {
	backendFlags
	Count int `short:"n" default:"1" help:"How many heartbeats to send."`
}

// Run connects to the backend and sends it heartbeats.
func (c *backendPingCommand) Run(ctx context.Context, proc *process) error {
	return c.withBackend(ctx, proc, func(ctx context.Context, client *hootclient.Client) error {
		catalog, service, err := client.Ready(ctx)
		if err != nil {
			return err
		}
		for range max(c.Count, 1) {
			began := time.Now()
			if err := client.Heartbeat(ctx); err != nil {
				return err
			}
			took := time.Since(began)
			if c.JSON {
				err = writeLine(proc.Stdout, map[string]any{
					"service": service, "protocol": client.Protocol(), "tools": len(catalog.Tools), "broadcasts": catalog.Broadcasts, "took_us": took.Microseconds(),
				})
			} else {
				_, err = fmt.Fprintf(proc.Stdout, "%s at %s: %s, answered in %v\n", service, c.URL, plural.Count(len(catalog.Tools), "tool"), took.Round(time.Microsecond))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// writeLine prints a value as one line of JSON.
func writeLine(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// backendToolsCommand is `luanette backend tools`.
type backendToolsCommand struct{ backendFlags }

// Run lists the tools as a table, or prints the whole catalog as JSON.
func (c *backendToolsCommand) Run(ctx context.Context, proc *process) error {
	return c.withBackend(ctx, proc, func(ctx context.Context, client *hootclient.Client) error {
		catalog, _, err := client.Ready(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printValue(proc, catalog)
		}
		return printList(proc, catalog.Tools, "", "TOOL KIND DESCRIPTION", func(t hootproto.Tool) []string {
			return []string{t.Name, kindOf(t), firstLine(t.Description)}
		})
	})
}

// kindOf returns what the annotations of a tool say about its effects.
func kindOf(t hootproto.Tool) string {
	switch {
	case t.ReadOnly:
		return "reads"
	case t.Destructive:
		return "destroys"
	case t.Idempotent:
		return "sets"
	}
	return "writes"
}

// backendListenCommand is `luanette backend listen`.
type backendListenCommand struct {
	backendFlags
	Count int `short:"n" help:"How many broadcasts to print; 0 means all until the timeout."`
}

// Run prints broadcasts, one JSON object per line.
func (c *backendListenCommand) Run(ctx context.Context, proc *process) error {
	return c.withBackend(ctx, proc, func(ctx context.Context, client *hootclient.Client) error {
		catalog, service, err := client.Ready(ctx)
		if err != nil {
			return err
		}
		if catalog.Broadcasts == "" {
			return fault.New(fault.NotFound, "%s sends no broadcasts", service).WithHint("its catalog names no broadcasts")
		}
		received := make(chan hootproto.RawBroadcast, 1024)
		err = client.Subscribe(ctx, catalog.Broadcasts, func(o hootproto.RawBroadcast) {
			select {
			case received <- o:
			default: // the reader of the output is too slow
			}
		})
		if err != nil {
			return err
		}
		return c.print(ctx, proc, client, received)
	})
}

func (c *backendListenCommand) print(ctx context.Context, proc *process, client *hootclient.Client, received <-chan hootproto.RawBroadcast) error {
	for n := 1; ; n++ {
		select {
		case o := <-received:
			if err := writeLine(proc.Stdout, o.Raw); err != nil {
				return err
			}
			if n == c.Count {
				return nil
			}
		case <-client.Done():
			return client.Err()
		case <-ctx.Done():
			return nil
		}
	}
}

// backendSendCommand is `luanette backend send`.
type backendSendCommand struct {
	backendFlags
	What string   `arg:"" name:"tool | body" help:"A tool's name, or the body of a Request as JSON; - reads the body from standard input."`
	Args []string `arg:"" optional:"" name:"key=value" help:"The tool's arguments: key=value, or key:=JSON."`
}

// Help is shown by `luanette backend send --help`.
func (backendSendCommand) Help() string {
	return `  luanette backend send zmq+tcp://127.0.0.1:5580 greet name=Ann
  luanette backend send zmq+tcp://127.0.0.1:5580 '{"type":"tool_call","name":"greet","arguments":{"name":"Ann"}}'

The text of the reply goes to standard output; --json prints the whole reply. If
the reply is an error, the exit code is 1.`
}

// Run sends the request.
func (c *backendSendCommand) Run(ctx context.Context, proc *process) error {
	return c.withBackend(ctx, proc, func(ctx context.Context, client *hootclient.Client) error {
		catalog, _, err := client.Ready(ctx)
		if err != nil {
			return err
		}
		body, err := c.body(proc, catalog)
		if err != nil {
			return err
		}
		id := hootproto.NewID()
		stop := showProgress(ctx, proc, client, catalog.Broadcasts, id)
		reply, err := client.Request(ctx, id, body)
		stop()
		if err != nil {
			return unknownOutcome(err)
		}
		return c.show(proc, reply)
	})
}

// unknownOutcome says so about a request whose connection was lost.
func unknownOutcome(err error) error {
	if errors.Is(err, hootclient.ErrLost) && !errors.Is(err, hootclient.ErrNotSent) {
		return fault.Wrap(fault.Unavailable, err, "the outcome of the request is unknown").
			WithHint("find out whether it took effect before you repeat it")
	}
	return err
}

// body returns the body of the request.
func (c *backendSendCommand) body(proc *process, catalog hootproto.Catalog) (json.RawMessage, error) {
	text := c.What
	if text == "-" {
		read, err := io.ReadAll(proc.Stdin)
		if err != nil {
			return nil, err
		}
		text = strings.TrimSpace(string(read))
	}
	if strings.HasPrefix(text, "{") {
		if !json.Valid([]byte(text)) {
			return nil, fault.New(fault.InvalidParams, "the body is not JSON")
		}
		return json.RawMessage(text), nil
	}
	arguments := map[string]json.RawMessage{}
	for _, pair := range c.Args {
		key, value, err := commandline.Pair(pair, func(key string) string { return typeOf(catalog, text, key) })
		if err != nil {
			return nil, err
		}
		arguments[key] = value
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	return json.Marshal(hootproto.Call{Name: text, Arguments: raw})
}

// typeOf returns the type of an argument in a tool's schema, or "".
func typeOf(catalog hootproto.Catalog, name, key string) string {
	for _, t := range catalog.Tools {
		var schema struct {
			Properties map[string]struct{ Type any }
		}
		if t.Name != name || json.Unmarshal(t.InputSchema, &schema) != nil {
			continue
		}
		kind, _ := schema.Properties[key].Type.(string)
		return kind
	}
	return ""
}

// show prints a reply, or returns the error that it carries.
func (c *backendSendCommand) show(proc *process, reply json.RawMessage) error {
	var outcome hootproto.Outcome
	if err := json.Unmarshal(reply, &outcome); err != nil {
		return fault.Wrap(fault.Upstream, err, "read reply")
	}
	failed := outcome.Err != nil
	switch {
	case c.JSON:
		if err := printJSON(proc.Stdout, reply); err != nil || !failed {
			return err
		}
		return exitStatus(exitFailure)
	case failed:
		return fault.New(fault.Code(outcome.Err.Code), "%s: %s", outcome.Err.Code, outcome.Err.Message).WithHint("%s", outcome.Err.Hint)
	case outcome.Output.Text != "":
		_, err := fmt.Fprintln(proc.Stdout, outcome.Output.Text)
		return err
	case outcome.Output.Data == nil:
		return nil
	}
	return printJSON(proc.Stdout, outcome.Output.Data)
}

// showProgress draws a progress bar if standard error is a terminal.
func showProgress(ctx context.Context, proc *process, client *hootclient.Client, broadcasts string, id hootproto.ID) (stop func()) {
	if broadcasts == "" || terminalWidth(proc.Stderr) == 0 {
		return func() {}
	}
	shown := newLive(proc)
	err := client.Subscribe(ctx, broadcasts, func(o hootproto.RawBroadcast) {
		if o.Type != "progress" {
			return
		}
		if known, err := o.Decode(); err == nil {
			if p, ok := known.(hootproto.Progress); ok && p.JobID == id.String() {
				shown.progress(tool.Progress{Progress: p.Percent, Total: 1, Message: p.Message})
			}
		}
	})
	if err != nil {
		return func() {} // the reply comes without a bar
	}
	return shown.end
}

// backendKeygenCommand is `luanette backend keygen`.
type backendKeygenCommand struct {
	File string `arg:"" optional:"" help:"File for the secret key, readable only by its owner; without one it is printed."`
	JSON bool   `help:"Print JSON."`
}

// Help is shown by `luanette backend keygen --help`.
func (backendKeygenCommand) Help() string {
	return `Makes keys for CURVE, the security of ZeroMQ itself, so that a backend and its front
end can run on different machines (docs/backends.md). Each end has a pair: the secret
key stays there, the public key is given to the other end.

  luanette backend keygen curve.key

prints the public key. On the side of the tools (luanette serve with bridge.listen,
luanette hoot):

  [bridge]
  curve_secret = "${file:curve.key}"
  curve_clients = ["PUBLIC KEY OF THE FRONT END"]

On the side of the front end:

  [upstreams.music]
  url = "zmq+tcp://10.0.0.7:5580"
  curve = { server = "PUBLIC KEY OF THE BACKEND", secret = "${file:curve.key}" }`
}

// Run makes the keys.
func (c *backendKeygenCommand) Run(_ context.Context, proc *process) error {
	secret := newBackendKey()
	keys := map[string]string{"public": secret.Public().Text()}
	if c.File == "" {
		keys["secret"] = secret.Text()
	} else if err := writeNewFile(c.File, secret.Text()+"\n"); err != nil {
		return err
	}
	if c.JSON {
		return writeLine(proc.Stdout, keys)
	}
	if c.File == "" {
		_, err := fmt.Fprintf(proc.Stdout, "public key: %s\nsecret key: %s\n", keys["public"], keys["secret"])
		return err
	}
	_, err := fmt.Fprintln(proc.Stdout, keys["public"])
	return err
}

// newBackendKey returns a secret key whose public key can follow --curve: one that begins
// with a dash would be read as another option.
func newBackendKey() zmtp.Key {
	for {
		secret := zmtp.NewSecretKey()
		if !strings.HasPrefix(secret.Public().Text(), "-") {
			return secret
		}
	}
}

// writeNewFile writes a file that only its owner may read. It replaces none.
func writeNewFile(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.Wrap(fault.Conflict, err, "write secret key").WithHint("choose another file; an existing one is not replaced")
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
