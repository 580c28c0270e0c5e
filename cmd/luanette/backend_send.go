package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

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
