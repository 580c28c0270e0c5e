package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
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
				_, err = fmt.Fprintf(proc.Stdout, "%s at %s: %d tools, answered in %v\n", service, c.URL, len(catalog.Tools), took.Round(time.Microsecond))
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
		var rows [][]string
		for _, t := range catalog.Tools {
			rows = append(rows, []string{t.Name, kindOf(t), firstLine(t.Description)})
		}
		return table(proc, strings.Fields("TOOL KIND DESCRIPTION"), rows)
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
