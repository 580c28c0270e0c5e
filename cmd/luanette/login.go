package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/luanette/luanette/internal/access/oauth"
	"github.com/luanette/luanette/internal/client"
)

// loginFlags are those of commands about logins.
type loginFlags struct {
	settingFlags
	tokenFlag
	Name   string `arg:"" help:"Its namespace."`
	Server string `short:"s" placeholder:"URL" help:"Do it at the server running there, such as http://127.0.0.1:8081."`
}

func (f *loginFlags) at(ctx context.Context, world *process, do func(client.Logins) error) error {
	api, err := f.open(ctx, world)
	if err != nil {
		return err
	}
	return errors.Join(do(api), api.Close())
}

func (f *loginFlags) open(ctx context.Context, world *process) (client.Logins, error) {
	if f.Server != "" {
		return client.ConnectLogins(f.Server, f.token(world))
	}
	loaded, err := f.load(world, nil)
	if err != nil {
		return nil, err
	}
	return client.OpenLogins(ctx, loaded, world.Env, slog.New(slog.NewTextHandler(world.Stderr, nil)))
}

// upstreamLoginCommand is `luanette upstream login`.
type upstreamLoginCommand struct {
	loginFlags
	Device bool `help:"Agree on another device, with a short code, instead of in a browser on this machine."`
}

// Help is shown by `luanette upstream login --help`.
func (upstreamLoginCommand) Help() string {
	return `Prints a link. Open it in a browser, log in there and agree; the browser then
comes back to this command. Where the browser is on another machine use --device,
if the server offers it, or --server with a server that the browser can reach.

Tokens are kept encrypted in the database, renewed by themselves, and sent to
this upstream only. A running server on the same database uses them at once.`
}

// Run logs in.
func (c *upstreamLoginCommand) Run(ctx context.Context, world *process) error {
	return c.at(ctx, world, func(api client.Logins) error {
		err := api.Login(ctx, c.Name, c.Device, func(begun oauth.Begun) {
			fmt.Fprintf(world.Stdout, "log in to %s at %s\n\n  %s\n\n", begun.Upstream, begun.Issuer, begun.URL)
			if begun.Code != "" {
				fmt.Fprintf(world.Stdout, "and type in the code %s\n", begun.Code)
			}
		})
		if err == nil {
			fmt.Fprintf(world.Stdout, "logged in to %s\n", c.Name)
		}
		return err
	})
}

// upstreamLogoutCommand is `luanette upstream logout`.
type upstreamLogoutCommand struct{ loginFlags }

// Run forgets the tokens.
func (c *upstreamLogoutCommand) Run(ctx context.Context, world *process) error {
	return c.at(ctx, world, func(api client.Logins) error {
		was, err := api.Logout(ctx, c.Name)
		switch {
		case err != nil:
			return err
		case was:
			fmt.Fprintf(world.Stdout, "logged out of %s\n", c.Name)
		default:
			fmt.Fprintf(world.Stdout, "was not logged in to %s\n", c.Name)
		}
		return nil
	})
}
