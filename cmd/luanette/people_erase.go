package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
)

// myself stands for the person who is signed in.
const myself = "me"

// dataPath is the path of what is stored about a person.
func (f *personFlags) dataPath() string {
	if f.ID == myself {
		return "/api/v1/me"
	}
	return "/api/v1/people/" + url.PathEscape(f.ID)
}

type peopleExportCommand struct{ personFlags }

// Help is shown by `luanette people export --help`.
func (peopleExportCommand) Help() string {
	return `Prints everything that the server stores about a person as JSON lines, without tokens and
other secrets. ID is a person's id, or me for yourself, which needs no scope.`
}

// Run prints the export.
func (c *peopleExportCommand) Run(ctx context.Context, proc *process) error {
	address, err := c.address(proc, &c.settingFlags)
	if err != nil {
		return err
	}
	raw, err := client.Request(ctx, address, c.access(ctx, proc, &c.settingFlags, address), http.MethodGet, c.dataPath()+"/export", nil)
	if err != nil {
		return err
	}
	_, err = proc.Stdout.Write(raw)
	return err
}

type peopleEraseCommand struct {
	personFlags
	Yes bool `short:"y" help:"Do not ask before."`
}

// Help is shown by `luanette people erase --help`.
func (peopleEraseCommand) Help() string {
	return `Erases a person and everything of theirs: jobs, schedules, sessions, conversations, values,
results, logins, keys, and what they allowed clients. It cannot be undone. The audit log
keeps what was done, under a pseudonym. ID is a person's id, or me for yourself.`
}

// Run erases a person.
func (c *peopleEraseCommand) Run(ctx context.Context, proc *process) error {
	if !c.Yes {
		person := newPrompter(proc)
		if person == nil {
			return fault.New(fault.InvalidParams, "nothing was erased").WithHint("add --yes if %s and everything of theirs shall be erased", c.ID)
		}
		if agreed, err := person.yes("Erase " + c.ID + " and everything of theirs, for ever?"); err != nil || !agreed {
			return err
		}
	}
	var answer struct{ ID, Pseudonym string }
	if err := c.request(ctx, proc, http.MethodDelete, c.dataPath(), &answer); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, map[string]string{"id": answer.ID, "pseudonym": answer.Pseudonym})
	}
	_, err := fmt.Fprintf(proc.Stdout, "%s is erased; the audit log says %s\n", answer.ID, answer.Pseudonym)
	return err
}
