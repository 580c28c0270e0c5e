package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
)

// signIns are the servers at which the user is signed in.
func signIns(proc *process) client.SignIns {
	trusted := config.TrustStore(proc.Env).Path
	if trusted == "" {
		return client.SignIns{}
	}
	return client.SignIns{Path: filepath.Join(filepath.Dir(trusted), "logins.json")}
}

// signInFlags are the flags of login and logout.
type signInFlags struct {
	settingFlags
	URL    string `arg:"" help:"The server's public address, such as https://hub.example."`
	CAFile string `name:"ca-file" type:"path" placeholder:"FILE" help:"PEM file with the certificate authority of the server (default: ca_file of the configuration)."`
}

func (f *signInFlags) access(proc *process) client.Access {
	return client.Access{CAFile: authorityFile(proc, &f.settingFlags, f.CAFile, f.URL)}
}

// signInCommand is `luanette login`.
type signInCommand struct {
	signInFlags
	Org string `placeholder:"ORG" help:"The organisation to act in, for people in several."`
}

// Help is shown by `luanette login --help`.
func (signInCommand) Help() string {
	return `Prints a link and a code. Open the link in any browser, sign in at your provider,
and allow it if the page shows the same code.

Commands with --server URL then act for you, unless a key is given. The tokens are
stored in a file that only you can read, are sent only to that address, and are
renewed automatically. luanette logout URL ends the login.`
}

// Run signs in.
func (c *signInCommand) Run(ctx context.Context, proc *process) error {
	err := signIns(proc).SignIn(ctx, c.URL, c.Org, c.access(proc), func(d client.Device) {
		fmt.Fprintf(proc.Stdout, "open this link, and check that it shows the code %s\n\n  %s\n\n", d.Code, d.URL)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(proc.Stdout, "signed in at %s\n", c.URL)
	return err
}

// signOutCommand is `luanette logout`.
type signOutCommand struct{ signInFlags }

// Run signs out.
func (c *signOutCommand) Run(ctx context.Context, proc *process) error {
	was, err := signIns(proc).SignOut(ctx, c.URL, c.access(proc))
	if err != nil {
		return err
	}
	text := "signed out of %s\n"
	if !was {
		text = "was not signed in at %s\n"
	}
	_, err = fmt.Fprintf(proc.Stdout, text, c.URL)
	return err
}
