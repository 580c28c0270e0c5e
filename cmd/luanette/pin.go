package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// pinCommand is `luanette pin`: it reviews the definitions that upstreams offer
// before clients can use them.
type pinCommand struct {
	List    pinListCommand    `cmd:"" help:"List pinned definitions and those awaiting review."`
	Show    pinShowCommand    `cmd:"" help:"Show a definition, or its changes."`
	Approve pinApproveCommand `cmd:"" help:"Approve a definition, or all definitions of an upstream that await review."`
	Refuse  pinRefuseCommand  `cmd:"" help:"Refuse a definition; it cannot be used."`
}

// Help is shown by `luanette pin --help`.
func (pinCommand) Help() string {
	return `With trust = "pin", for all upstreams or for some, a tool definition awaits review
until it is approved, and again after each change. Until then clients cannot see
or call the tool.

  luanette upstream add docs https://example.org/mcp --trust pin
  luanette pin list
  luanette pin approve docs --all`
}

type pinListCommand struct {
	clientFlags
	Upstream string `arg:"" optional:"" complete:"upstream" help:"Only those of this upstream."`
	State    string `enum:",held,changed,approved,refused" default:"" placeholder:"STATE" help:"Only those held, changed, approved or refused."`
}

// Run lists pins by upstream and name.
func (c *pinListCommand) Run(ctx context.Context, proc *process) error {
	query := url.Values{"upstream": {c.Upstream}, "state": {c.State}}
	var list adminapi.PinList
	raw, err := c.admin(ctx, proc, http.MethodGet, "/api/v1/pins?"+query.Encode(), nil, &list)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	none := "no definition is pinned; trust = \"pin\" in luanette.toml pins those of upstreams"
	return printList(proc, list.Pins, none, "PIN STATE WHAT DIGEST FLAGS", func(p adminapi.Pin) []string {
		return []string{p.ID, string(p.State), pinName(p), p.Digest[:12], strings.Join(flagCodes(p.Flags), ", ")}
	})
}

// pinName returns the name of what is pinned.
func pinName(p adminapi.Pin) string {
	name := pin.Visible(p.Name)
	switch p.Kind {
	case pin.Tool:
		return p.Upstream + "." + name
	case pin.Prompt, pin.Skill:
		return p.Upstream + " " + string(p.Kind) + " " + name
	default:
		return p.Upstream + " " + string(p.Kind)
	}
}

func flagCodes(flags []pin.Finding) (list []string) {
	for _, f := range flags {
		list = append(list, string(f.Code))
	}
	return list
}

type pinArg struct {
	clientFlags
	ID string `arg:"" help:"The pin's id, as list shows it, or the tool as upstream.tool."`
}

type pinShowCommand struct{ pinArg }

// Run shows a new definition, or the changes of a changed one.
func (c *pinShowCommand) Run(ctx context.Context, proc *process) error {
	p, raw, err := c.find(ctx, proc)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	return showPin(proc, p)
}

func (c *pinArg) find(ctx context.Context, proc *process) (p adminapi.PinDetail, raw json.RawMessage, err error) {
	raw, err = c.admin(ctx, proc, http.MethodGet, "/api/v1/pins/"+url.PathEscape(c.ID), nil, &p)
	return p, raw, err
}

func showPin(proc *process, p adminapi.PinDetail) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", p.ID, p.State, pinName(p.Pin))
	if p.Server != "" {
		fmt.Fprintf(&b, "server  %s\n", p.Server)
	}
	fmt.Fprintf(&b, "digest  %s\n", p.Digest)
	if p.Decided != nil {
		fmt.Fprintf(&b, "decided %s by %s\n", p.Decided.Format("2006-01-02 15:04"), p.By)
	}
	for _, f := range p.Flags {
		fmt.Fprintf(&b, "flag    %s in %s: %s\n", f.Code, f.Path, f.Text)
	}
	switch {
	case len(p.Diff) > 0:
		fmt.Fprintf(&b, "\n%s\n", pin.FormatChanges(p.Diff))
	default:
		fmt.Fprintf(&b, "\n%s\n", pin.Visible(string(p.Definition)))
	}
	_, err := fmt.Fprint(proc.Stdout, b.String())
	return err
}

type pinApproveCommand struct {
	pinArg
	All     bool `help:"The id is an upstream: approve all its definitions that await review, except flagged ones."`
	Flagged bool `help:"With --all: include flagged definitions."`
}

// Run shows the current definition and approves it.
func (c *pinApproveCommand) Run(ctx context.Context, proc *process) error {
	if !c.All {
		return c.decide(ctx, proc, "approve")
	}
	var done adminapi.ApproveResult
	raw, err := c.admin(ctx, proc, http.MethodPost, "/api/v1/pins/approve", adminapi.ApproveRequest{Upstream: c.ID, Flagged: c.Flagged}, &done)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	fmt.Fprintf(proc.Stdout, "approved %d\n", len(done.Approved))
	for _, p := range done.Left {
		fmt.Fprintf(proc.Stdout, "left: %s  %s  %s\n", p.ID, pinName(p), strings.Join(flagCodes(p.Flags), ", "))
	}
	if len(done.Left) > 0 {
		fmt.Fprintln(proc.Stdout, "read them with `luanette pin show` and approve them one by one, or all with --flagged")
	}
	return nil
}

type pinRefuseCommand struct{ pinArg }

// Run shows the current definition and refuses it.
func (c *pinRefuseCommand) Run(ctx context.Context, proc *process) error {
	return c.decide(ctx, proc, "refuse")
}

// decide shows the definition and decides about exactly that version.
func (c *pinArg) decide(ctx context.Context, proc *process, decision string) error {
	return c.withClient(ctx, proc, func(api client.Client) error {
		var p adminapi.PinDetail
		if _, err := adminRequest(ctx, api, http.MethodGet, "/api/v1/pins/"+url.PathEscape(c.ID), nil, &p); err != nil {
			return err
		}
		if !c.JSON {
			if err := showPin(proc, p); err != nil {
				return err
			}
		}
		raw, err := adminRequest(ctx, api, http.MethodPost, "/api/v1/pins/"+p.ID+"/decide", adminapi.DecideRequest{Decision: decision, Digest: p.Digest}, &p)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(proc.Stdout, raw)
		}
		_, err = fmt.Fprintf(proc.Stdout, "\n%s is %s\n", pinName(p.Pin), p.State)
		return err
	})
}
