package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/credentials/oauth"
)

// loginFlags are the flags of the login and logout commands.
type loginFlags struct {
	settingFlags
	tokenFlag
	Name   string `arg:"" complete:"upstream" help:"The upstream's namespace."`
	Server string `short:"s" placeholder:"URL" help:"Use the running server at this URL, such as http://127.0.0.1:8081."`
}

func (f *loginFlags) withLogins(ctx context.Context, proc *process, do func(client.Logins) error) error {
	api, err := f.open(ctx, proc)
	if err != nil {
		return err
	}
	return errors.Join(do(api), api.Close())
}

func (f *loginFlags) open(ctx context.Context, proc *process) (client.Logins, error) {
	if err := f.asService(ctx, proc, &f.Server); err != nil {
		return nil, err
	}
	if f.Server != "" {
		return client.ConnectLogins(f.Server, f.access(ctx, proc, &f.settingFlags, f.Server))
	}
	loaded, err := f.load(proc, nil)
	if err != nil {
		return nil, err
	}
	return client.OpenLogins(ctx, loaded, proc.Env, slog.New(slog.NewTextHandler(proc.Stderr, nil)))
}

// upstreamLoginCommand is `luanette upstream login`.
type upstreamLoginCommand struct {
	loginFlags
	Device bool `help:"Log in on another device with a short code, instead of in a browser on this machine."`
}

// Help is shown by `luanette upstream login --help`.
func (upstreamLoginCommand) Help() string {
	return `Prints a link. Open it in a browser, log in and consent; the browser is then
redirected to this command. If the browser is on another machine, use --device,
if the upstream supports it, or --server with a server that the browser can reach.

To an upstream with login = "each" you log in with your own account: sign in at the
server (luanette login URL), then use --server URL. The link is that of a page of the
server, and works in any browser in which you are signed in there. The command waits
for you; if you stop it, the login in the browser goes on.

Tokens are stored encrypted in the database, renewed automatically, and sent only
to this upstream. A running server on the same database uses them at once.`
}

// Run logs in.
func (c *upstreamLoginCommand) Run(ctx context.Context, proc *process) error {
	return c.withLogins(ctx, proc, func(api client.Logins) error {
		err := api.Login(ctx, c.Name, c.Device, func(begun oauth.Begun) {
			at := " with your own account"
			if begun.Issuer != "" {
				at = " at " + begun.Issuer
			}
			fmt.Fprintf(proc.Stdout, "log in to %s%s\n\n  %s\n\n", begun.Upstream, at, begun.URL)
			if begun.Code != "" {
				fmt.Fprintf(proc.Stdout, "and type in the code %s\n", begun.Code)
			}
		})
		if err == nil {
			fmt.Fprintf(proc.Stdout, "logged in to %s\n", c.Name)
		}
		return err
	})
}

// upstreamLogoutCommand is `luanette upstream logout`.
type upstreamLogoutCommand struct{ loginFlags }

// Run removes the stored tokens.
func (c *upstreamLogoutCommand) Run(ctx context.Context, proc *process) error {
	return c.withLogins(ctx, proc, func(api client.Logins) error {
		was, err := api.Logout(ctx, c.Name)
		switch {
		case err != nil:
			return err
		case was:
			fmt.Fprintf(proc.Stdout, "logged out of %s\n", c.Name)
		default:
			fmt.Fprintf(proc.Stdout, "was not logged in to %s\n", c.Name)
		}
		return nil
	})
}
