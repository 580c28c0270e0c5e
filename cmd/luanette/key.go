package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/principal"
)

// keyCommand is `luanette key`: it manages the API keys of a server.
type keyCommand struct {
	Create keyCreateCommand `cmd:"" help:"Create a key and print its token, once."`
	List   keyListCommand   `cmd:"" help:"List the keys, without their tokens."`
	Revoke keyRevokeCommand `cmd:"" help:"Revoke a key immediately."`
}

// Help is shown by `luanette key --help`.
func (keyCommand) Help() string {
	var scopes strings.Builder
	for _, s := range principal.Scopes {
		fmt.Fprintf(&scopes, "  %-7s %s\n", s, s.Description())
	}
	return `While no key exists, a server accepts every request from its own machine and
refuses to listen on other addresses. Once a key exists, every request needs one.

Scopes:
` + scopes.String() + `
The commands use the keys in the data folder or database. With --server they use
those of a running server, which requires a key with the scope admin. With --mine they
use those of the person who is signed in there: such a key has at most their rights.`
}

type keyFlags struct {
	settingFlags
	Server string `short:"s" placeholder:"URL" help:"Use the keys of the running server at this URL, such as http://127.0.0.1:8081."`
	tokenFlag
	Mine bool `help:"Use the keys of your own at the server, as the person who is signed in (luanette login)."`
	JSON bool `help:"Print JSON."`
}

// open opens the keys of a running server, or of the configuration's database.
func (f *keyFlags) open(ctx context.Context, proc *process) (client.Keys, error) {
	if f.Mine {
		if f.Server == "" {
			return nil, fault.New(fault.InvalidParams, "keys of your own are at a server").WithHint("add --server URL, after luanette login URL")
		}
		return client.ConnectOwnKeys(f.Server, f.access(ctx, proc, &f.settingFlags, f.Server))
	}
	if err := f.asService(ctx, proc, &f.Server); err != nil {
		return nil, err
	}
	if f.Server != "" {
		return client.ConnectKeys(f.Server, f.access(ctx, proc, &f.settingFlags, f.Server))
	}
	loaded, err := f.load(proc, nil)
	if err != nil {
		return nil, err
	}
	return client.OpenKeys(ctx, loaded, proc.Env)
}

// withKeys opens the keys, passes them to a function and closes them.
func (f *keyFlags) withKeys(ctx context.Context, proc *process, do func(client.Keys) error) error {
	keys, err := f.open(ctx, proc)
	if err != nil {
		return err
	}
	return errors.Join(do(keys), keys.Close())
}

type keyCreateCommand struct {
	keyFlags
	Name       string   `arg:"" help:"The key's name, such as laptop or ci@build. It owns the jobs, scripts and sessions that the key creates; those of a key of a person belong to the person."`
	Scope      []string `help:"Scopes of the key; chat, mcp and read if omitted." placeholder:"SCOPE"`
	Expires    string   `help:"When it expires: 90d, 12h, 2027-01-31. Never if omitted." placeholder:"WHEN"`
	Namespace  []string `help:"The only namespaces it sees; * matches any text." placeholder:"NAME"`
	Tool       []string `help:"The only tools it sees, as namespace.tool, or the name of one of ours." placeholder:"NAME"`
	Set        string   `help:"The only set of tools it sees, at every address (luanette set)." placeholder:"NAME"`
	Rate       int      `help:"Maximum requests per minute, to each node." placeholder:"N"`
	Concurrent int      `help:"Maximum tool calls at a time, on each node." placeholder:"N"`
	Budget     int      `help:"Maximum tool calls per day, on all nodes together." placeholder:"N"`
	Org        string   `help:"The only organisation it may be used for." placeholder:"NAME"`
	User       string   `help:"The only user it may be used for." placeholder:"NAME"`
}

// Run creates the key. Only the token goes to standard output, so that it can be
// redirected to a file without being shown.
func (c *keyCreateCommand) Run(ctx context.Context, proc *process) error {
	want := httpauth.NewKey{Name: c.Name, Expires: c.Expires, Rights: apikey.Rights{
		Org: c.Org, User: c.User, Namespaces: c.Namespace, Tools: c.Tool, Set: c.Set,
		Limits: principal.Limits{Rate: c.Rate, Concurrent: c.Concurrent, Budget: c.Budget},
	}}
	for _, s := range c.Scope {
		want.Scopes = append(want.Scopes, principal.Scope(s))
	}
	return c.withKeys(ctx, proc, func(keys client.Keys) error {
		made, err := keys.Create(ctx, want)
		if err != nil {
			return err
		}
		if c.JSON {
			return printValue(proc, made)
		}
		fmt.Fprintf(proc.Stderr, "key %s has the scopes %s%s. Its token is shown only once:\n", made.Name, joinStrings(made.Scopes), untilText(made.Expires))
		_, err = fmt.Fprintln(proc.Stdout, made.Token)
		return err
	})
}

func untilText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return " until " + t.Format(time.RFC3339)
}

func joinStrings[T ~string](list []T) string {
	var all []string
	for _, w := range list {
		all = append(all, string(w))
	}
	return strings.Join(all, ",")
}

type keyListCommand struct {
	keyFlags
	All bool `help:"Include expired and revoked keys."`
}

// Run lists the keys.
func (c *keyListCommand) Run(ctx context.Context, proc *process) error {
	return c.withKeys(ctx, proc, func(keys client.Keys) error {
		list, err := keys.List(ctx)
		if err != nil {
			return err
		}
		if !c.All {
			list = slices.DeleteFunc(list, func(k httpauth.KeyView) bool { return k.State != "active" })
		}
		if c.JSON {
			return printValue(proc, list)
		}
		none := "no keys; `luanette key create NAME` creates one"
		return printList(proc, list, none, "NAME STATE SCOPES ONLY EXPIRES USED", func(k httpauth.KeyView) []string {
			name := k.ID
			if c.Mine {
				name = k.Name
			}
			return []string{name, k.State, joinStrings(k.Scopes), restrictions(k), day(k.Expires, "never"), day(k.Used, "never")}
		})
	})
}

// restrictions returns the restrictions of a key.
func restrictions(k httpauth.KeyView) string {
	var parts []string
	add := func(what, value string) {
		if value != "" && value != "0" {
			parts = append(parts, what+"="+value)
		}
	}
	add("org", k.Org)
	add("user", k.User)
	add("namespaces", joinStrings(k.Namespaces))
	add("tools", joinStrings(k.Tools))
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
	Name string `arg:"" help:"The key's name, as list shows it; PERSON/NAME for a key of a person."`
}

// Run revokes the key.
func (c *keyRevokeCommand) Run(ctx context.Context, proc *process) error {
	return c.withKeys(ctx, proc, func(keys client.Keys) error {
		revoked, err := keys.Revoke(ctx, c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return printValue(proc, revoked)
		}
		_, err = fmt.Fprintf(proc.Stdout, "key %s is revoked\n", revoked.ID)
		return err
	})
}
