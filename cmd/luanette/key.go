package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/principal"
)

// keyCommand is `luanette key`: what opens the doors of a server.
type keyCommand struct {
	Create keyCreateCommand `cmd:"" help:"Make a key and print its token, once."`
	List   keyListCommand   `cmd:"" help:"List the keys, without their tokens."`
	Revoke keyRevokeCommand `cmd:"" help:"End a key, at once."`
}

// Help is shown by `luanette key --help`.
func (keyCommand) Help() string {
	var scopes strings.Builder
	for _, s := range principal.Scopes {
		fmt.Fprintf(&scopes, "  %-6s %s\n", s, s.Description())
	}
	return `While there is no key, a server answers everybody on its own machine and refuses
to listen anywhere else. With the first key every door asks for one.

Scopes:
` + scopes.String() + `
The keys are those of the data folder or database; with --server those of a
running server, for which it takes a key with the scope admin.`
}

type keyFlags struct {
	settingFlags
	Server string `short:"s" placeholder:"URL" help:"The keys of the server running there, such as http://127.0.0.1:8081."`
	tokenFlag
	JSON bool `help:"Print JSON for programs."`
}

// open finds the keys: of a running server, or of the configuration.
func (f *keyFlags) open(ctx context.Context, world *process) (client.Keys, error) {
	if f.Server != "" {
		return client.ConnectKeys(f.Server, f.token(world))
	}
	loaded, err := f.load(world, nil)
	if err != nil {
		return nil, err
	}
	return client.OpenKeys(ctx, loaded, world.Env)
}

// at opens the keys, does something with them, and lets go of them.
func (f *keyFlags) at(ctx context.Context, world *process, do func(client.Keys) error) error {
	keys, err := f.open(ctx, world)
	if err != nil {
		return err
	}
	return errors.Join(do(keys), keys.Close())
}

type keyCreateCommand struct {
	keyFlags
	Name       string   `arg:"" help:"What it is called, such as laptop or ci@build. What it makes belongs to that name."`
	Scope      []string `help:"What it opens; chat, mcp and read unless told." placeholder:"SCOPE"`
	Expires    string   `help:"When it ends: 90d, 12h, 2027-01-31. Never unless told." placeholder:"WHEN"`
	Namespace  []string `help:"The only namespaces it sees; * stands for any letters." placeholder:"NAME"`
	Tool       []string `help:"The only tools it sees, as namespace.tool, or the name of one of ours." placeholder:"NAME"`
	Rate       int      `help:"Requests a minute it may make." placeholder:"N"`
	Concurrent int      `help:"Tool calls that may run for it at a time." placeholder:"N"`
	Budget     int      `help:"Tool calls a day it may make." placeholder:"N"`
	Org        string   `help:"The only organisation it is for." placeholder:"NAME"`
	User       string   `help:"The only person it is for." placeholder:"NAME"`
}

// Run makes the key. The token is all that goes to standard output, so that it can
// be put where it belongs without being seen.
func (c *keyCreateCommand) Run(ctx context.Context, world *process) error {
	want := httpauth.NewKey{Name: c.Name, Expires: c.Expires, Rights: apikey.Rights{
		Org: c.Org, User: c.User, Namespaces: c.Namespace, Tools: c.Tool,
		Limits: principal.Limits{Rate: c.Rate, Concurrent: c.Concurrent, Budget: c.Budget},
	}}
	for _, s := range c.Scope {
		want.Scopes = append(want.Scopes, principal.Scope(s))
	}
	return c.at(ctx, world, func(keys client.Keys) error {
		made, err := keys.Create(ctx, want)
		if err != nil {
			return err
		}
		if c.JSON {
			return printValue(world, made)
		}
		fmt.Fprintf(world.Stderr, "key %s opens %s%s. Its token is shown only now:\n", made.Name, words(made.Scopes), until(made.Expires))
		_, err = fmt.Fprintln(world.Stdout, made.Token)
		return err
	})
}

func until(t *time.Time) string {
	if t == nil {
		return ""
	}
	return " until " + t.Format(time.RFC3339)
}

func words[T ~string](list []T) string {
	var all []string
	for _, w := range list {
		all = append(all, string(w))
	}
	return strings.Join(all, ",")
}

type keyListCommand struct {
	keyFlags
	All bool `help:"Also those that are expired or revoked."`
}

// Run lists the keys.
func (c *keyListCommand) Run(ctx context.Context, world *process) error {
	return c.at(ctx, world, func(keys client.Keys) error {
		list, err := keys.List(ctx)
		if err != nil {
			return err
		}
		if !c.All {
			list = slices.DeleteFunc(list, func(k httpauth.KeyView) bool { return k.State != "active" })
		}
		if c.JSON {
			return printValue(world, list)
		}
		if len(list) == 0 {
			_, err := fmt.Fprintln(world.Stdout, "no keys; `luanette key create NAME` makes one")
			return err
		}
		var rows [][]string
		for _, k := range list {
			rows = append(rows, []string{k.Name, k.State, words(k.Scopes), narrowed(k), day(k.Expires, "never"), day(k.Used, "never")})
		}
		return table(world, []string{"NAME", "STATE", "SCOPES", "ONLY", "EXPIRES", "USED"}, rows)
	})
}

// narrowed says what a key is narrowed to.
func narrowed(k httpauth.KeyView) string {
	var parts []string
	add := func(what, value string) {
		if value != "" && value != "0" {
			parts = append(parts, what+"="+value)
		}
	}
	add("org", k.Org)
	add("user", k.User)
	add("namespaces", words(k.Namespaces))
	add("tools", words(k.Tools))
	add("rate", strconv.Itoa(k.Rate))
	add("concurrent", strconv.Itoa(k.Concurrent))
	add("budget", strconv.Itoa(k.Budget))
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, " ")
}

func day(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return t.Format(time.DateOnly)
}

type keyRevokeCommand struct {
	keyFlags
	Name string `arg:"" help:"The key's name, as list shows it."`
}

// Run ends the key.
func (c *keyRevokeCommand) Run(ctx context.Context, world *process) error {
	return c.at(ctx, world, func(keys client.Keys) error {
		gone, err := keys.Revoke(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return printValue(world, gone)
		}
		_, err = fmt.Fprintf(world.Stdout, "key %s opens nothing any more\n", gone.Name)
		return err
	})
}

func printValue(world *process, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return printJSON(world.Stdout, raw)
}
