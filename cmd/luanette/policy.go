package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/luanette/luanette/internal/ui/adminapi"
)

// policyCommand is `luanette policy`.
type policyCommand struct {
	Check policyCheckCommand `cmd:"" aliases:"explain" help:"Explain whether a key may call a tool, and which rule decides it."`
}

type policyCheckCommand struct {
	clientFlags
	Tool string `arg:"" help:"The tool, as namespace.tool, or a function of scripts such as http.request."`
	For  string `placeholder:"KEY" help:"The name of the key; the local owner if omitted."`
	Org  string `help:"The key's organisation: its rules apply too, and the tool is the one that its members call so."`
}

// Run explains the decision.
func (c *policyCheckCommand) Run(ctx context.Context, proc *process) error {
	query := url.Values{"tool": {c.Tool}, "key": {c.For}, "org": {c.Org}}
	var e adminapi.PolicyCheck
	raw, err := c.admin(ctx, proc, http.MethodGet, "/api/v1/policy/check?"+query.Encode(), nil, &e)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s for %s\n", e.Verdict, e.Tool, e.Key)
	switch {
	case e.Rule == "":
		fmt.Fprintln(&b, "  no rule matches it")
	default:
		fmt.Fprintf(&b, "  by %s\n", e.Rule)
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, "  %s\n", e.Reason)
	}
	if !e.Known {
		fmt.Fprintln(&b, "  no such tool exists now")
	} else if e.ReadOnlyHint {
		fmt.Fprintln(&b, "  it is declared read-only")
	}
	if len(e.Labels) > 0 {
		fmt.Fprintf(&b, "  its results are labelled %s\n", strings.Join(e.Labels, ", "))
	}
	if len(e.Accepts) > 0 {
		fmt.Fprintf(&b, "  it accepts %s\n", strings.Join(e.Accepts, ", "))
	}
	_, err = fmt.Fprint(proc.Stdout, b.String())
	return err
}
