package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/govern/share"
)

// shareCommand is `luanette share`.
type shareCommand struct {
	Add    shareAddCommand    `cmd:"" default:"withargs" help:"Share something of yours, or change what a recipient may do with it."`
	List   shareListCommand   `cmd:"" help:"List what you share, or what others share with you."`
	Remove shareRemoveCommand `cmd:"" help:"End a share."`
	People sharePeopleCommand `cmd:"" help:"List the people and roles of your organisation."`
}

// Help is shown by `luanette share --help`.
func (shareCommand) Help() string {
	return `What you make is yours alone until you share it (docs/sharing.md):

  luanette share job 0b1c2d3e-… --with person:p4x7 --may see
  luanette share session s-abc --with org --may use
  luanette share conversation plans --with role:sales --may use`
}

type shareAddCommand struct {
	runningFlags
	Kind string `arg:"" enum:"job,schedule,session,artifact,conversation" help:"What it is: job, schedule, session, artifact (stored scripts are artifacts) or conversation."`
	ID   string `arg:"" help:"Its id; its beginning is enough."`
	With string `required:"" placeholder:"WHOM" help:"Who gets it: person:ID, role:NAME, or org for everybody of the organisation."`
	May  string `default:"see" enum:"see,use,edit" help:"What they may do: see, use (sessions and conversations: in a copy of their own) or edit."`
}

// Run shares.
func (c *shareAddCommand) Run(ctx context.Context, proc *process) error {
	id, err := c.fullID(ctx, proc)
	if err != nil {
		return err
	}
	var made share.Share
	body := map[string]string{"kind": c.Kind, "id": id, "to": c.With, "may": c.May}
	if err := c.send(ctx, proc, http.MethodPost, "/api/v1/shares", body, &made); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, made)
	}
	_, err = fmt.Fprintf(proc.Stdout, "%s: %s may %s the %s %s\n", made.ID, made.ToName, made.May, made.Kind, made.Thing)
	return err
}

// fullID returns the id of a thing that a person gave by its beginning, as lists show it.
func (c *shareAddCommand) fullID(ctx context.Context, proc *process) (id string, err error) {
	find := map[string]func(context.Context, *process, client.Client, string) (string, error){"job": jobID, "schedule": scheduleID}[c.Kind]
	if find == nil {
		return c.ID, nil // the server finds these by what lists show, conversations only by the whole id
	}
	flags := runningFlags{settingFlags: c.settingFlags, serverFlag: c.serverFlag, tokenFlag: c.tokenFlag}
	err = flags.withClient(ctx, proc, func(api client.Client) error {
		id, err = find(ctx, proc, api, c.ID)
		return err
	})
	return id, err
}

type shareListCommand struct {
	runningFlags
	With string `placeholder:"me" enum:",me" default:"" help:"me: what others share with you."`
}

// Run lists shares.
func (c *shareListCommand) Run(ctx context.Context, proc *process) error {
	var list struct{ Shares []share.Share }
	if err := c.request(ctx, proc, http.MethodGet, "/api/v1/shares?with="+url.QueryEscape(c.With), &list); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, list.Shares)
	}
	none := "nothing is shared; `luanette share job ID --with org` shares a job of yours"
	return printList(proc, list.Shares, none, "ID KIND THING TITLE OWNER WITH MAY SINCE", func(s share.Share) []string {
		return []string{s.ID, string(s.Kind), s.Thing, cmp.Or(s.Title, "-"), s.Owner, s.ToName, string(s.May), s.Created.Format(time.DateOnly)}
	})
}

type shareRemoveCommand struct {
	runningFlags
	ID string `arg:"" help:"The share's id, as list shows it."`
}

// Run ends a share.
func (c *shareRemoveCommand) Run(ctx context.Context, proc *process) error {
	var gone share.Share
	if err := c.request(ctx, proc, http.MethodDelete, "/api/v1/shares/"+url.PathEscape(c.ID), &gone); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, gone)
	}
	_, err := fmt.Fprintf(proc.Stdout, "the %s %s is not shared with %s any more\n", gone.Kind, gone.Thing, gone.ToName)
	return err
}

type sharePeopleCommand struct{ runningFlags }

// Run lists with whom one can share.
func (c *sharePeopleCommand) Run(ctx context.Context, proc *process) error {
	var list struct {
		People []people.Colleague `json:"people"`
		Roles  []string           `json:"roles"`
	}
	if err := c.request(ctx, proc, http.MethodGet, "/api/v1/people/colleagues", &list); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, list)
	}
	var rows [][]string
	for _, p := range list.People {
		rows = append(rows, []string{p.ID, p.Name, cmp.Or(p.Email, "-")})
	}
	for _, role := range list.Roles {
		rows = append(rows, []string{"role:" + role, "everybody with the role " + role, "-"})
	}
	return table(proc, []string{"WITH", "NAME", "EMAIL"}, rows)
}
