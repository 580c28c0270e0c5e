package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/credentials/personal"
)

// secretCommand is `luanette secret`: the values that the caller has stored at a server.
type secretCommand struct {
	Set    secretSetCommand    `cmd:"" help:"Store a value of yours; it is read from the standard input."`
	List   secretListCommand   `cmd:"" help:"List the names of your values."`
	Remove secretRemoveCommand `cmd:"" help:"Remove a value of yours."`
}

// Help is shown by `luanette secret --help`.
func (secretCommand) Help() string {
	return `Values of your own, such as your API key for an upstream, which uses it as ${personal:NAME}
(docs/upstreams.md). They belong to whoever asks: the person who is signed in
(luanette login), or a key that is nobody's. They are stored encrypted, used only for
your own calls, and never shown again.`
}

// secretFlags are the flags of commands about one value.
type secretFlags struct {
	runningFlags
	Name string `arg:"" help:"The name of the value, such as GITHUB_TOKEN."`
}

func (f *secretFlags) path() string { return "/api/v1/me/secrets/" + url.PathEscape(f.Name) }

type secretSetCommand struct{ secretFlags }

// Help is shown by `luanette secret set --help`.
func (secretSetCommand) Help() string {
	return `Reads the value from the standard input, one line, or asks for it at a terminal without
showing it. It is no argument, so that neither the shell nor the list of processes has it.
The next call of an upstream that needs it uses it.`
}

// maxSecret is more than the server accepts.
const maxSecret = 64 << 10

// Run stores the value.
func (c *secretSetCommand) Run(ctx context.Context, proc *process) error {
	value, err := readSecret(proc, c.Name)
	if err != nil {
		return err
	}
	if value == "" {
		return fault.New(fault.InvalidParams, "the value of %s is empty", c.Name).WithHint("pass it to the standard input: luanette secret set %s < FILE", c.Name)
	}
	return c.change(ctx, proc, http.MethodPut, c.path(), map[string]string{"value": value}, "stored "+c.Name)
}

// readSecret asks for a value at a terminal, or else reads it from the standard input.
func readSecret(proc *process, name string) (string, error) {
	if ask := newPrompter(proc); ask != nil {
		return ask.secret(name + ": ")
	}
	text, err := io.ReadAll(io.LimitReader(proc.Stdin, maxSecret))
	return strings.TrimSpace(string(text)), err
}

type secretListCommand struct{ runningFlags }

// Run lists the names.
func (c *secretListCommand) Run(ctx context.Context, proc *process) error {
	var list struct{ Secrets []personal.Value }
	if err := c.request(ctx, proc, http.MethodGet, "/api/v1/me/secrets", &list); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, list.Secrets)
	}
	return printList(proc, list.Secrets, "you have no values here", "NAME UPDATED", func(v personal.Value) []string {
		return []string{v.Name, v.Updated.Format(time.RFC3339)}
	})
}

type secretRemoveCommand struct{ secretFlags }

// Run removes the value.
func (c *secretRemoveCommand) Run(ctx context.Context, proc *process) error {
	return c.change(ctx, proc, http.MethodDelete, c.path(), nil, "removed "+c.Name)
}
