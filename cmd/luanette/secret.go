package main

import (
	"context"
	"fmt"
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
	serverAPIFlags
	Name string `arg:"" help:"The name of the value, such as GITHUB_TOKEN."`
}

func (f *secretFlags) path() string { return "/api/v1/me/secrets/" + url.PathEscape(f.Name) }

// answer prints what was done, or the server's answer.
func (f *secretFlags) answer(proc *process, said any, done string) error {
	if f.JSON {
		return printValue(proc, said)
	}
	_, err := fmt.Fprintf(proc.Stdout, "%s %s\n", done, f.Name)
	return err
}

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
	var said any
	if err := c.send(ctx, proc, http.MethodPut, c.path(), map[string]string{"value": value}, &said); err != nil {
		return err
	}
	return c.answer(proc, said, "stored")
}

// readSecret asks for a value at a terminal, or else reads it from the standard input.
func readSecret(proc *process, name string) (string, error) {
	if ask := newPrompter(proc); ask != nil {
		return ask.secret(name + ": ")
	}
	text, err := io.ReadAll(io.LimitReader(proc.Stdin, maxSecret))
	return strings.TrimSpace(string(text)), err
}

type secretListCommand struct{ serverAPIFlags }

// Run lists the names.
func (c *secretListCommand) Run(ctx context.Context, proc *process) error {
	var list struct{ Secrets []personal.Value }
	if err := c.request(ctx, proc, http.MethodGet, "/api/v1/me/secrets", &list); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, list.Secrets)
	}
	if len(list.Secrets) == 0 {
		_, err := fmt.Fprintln(proc.Stdout, "you have no values here")
		return err
	}
	var rows [][]string
	for _, v := range list.Secrets {
		rows = append(rows, []string{v.Name, v.Updated.Format(time.RFC3339)})
	}
	return table(proc, []string{"NAME", "UPDATED"}, rows)
}

type secretRemoveCommand struct{ secretFlags }

// Run removes the value.
func (c *secretRemoveCommand) Run(ctx context.Context, proc *process) error {
	var said any
	if err := c.request(ctx, proc, http.MethodDelete, c.path(), &said); err != nil {
		return err
	}
	return c.answer(proc, said, "removed")
}
