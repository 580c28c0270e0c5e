package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/access/audit"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// auditCommand is `luanette audit`: who did what.
type auditCommand struct {
	List   auditListCommand   `cmd:"" default:"withargs" help:"List entries, the newest last."`
	Verify auditVerifyCommand `cmd:"" help:"Look for entries that were changed, taken out or moved."`
	Export auditExportCommand `cmd:"" help:"Write all entries to a file as JSON lines, chain included."`
}

type auditListCommand struct {
	clientFlags
	Since    time.Duration `placeholder:"1h" help:"Only the last so long."`
	Who      string        `placeholder:"KEY" help:"Only what this key did, by its id or name."`
	Tool     string        `placeholder:"NS.TOOL" help:"Only this tool; * for any letters."`
	Decision string        `enum:",allow,deny" default:"" placeholder:"allow|deny" help:"Only what was allowed, or refused."`
	Limit    int           `placeholder:"100" help:"How many at most; with --follow it ends after so many."`
	Follow   bool          `short:"f" help:"Go on with what is added, of all nodes, until interrupted."`
}

// Run lists entries.
func (c *auditListCommand) Run(ctx context.Context, world *process) error {
	if c.Follow {
		return c.follow(ctx, world)
	}
	query := c.query()
	query.Set("limit", strconv.Itoa(cmp.Or(c.Limit, 100)))
	var list adminapi.AuditList
	raw, err := c.admin(ctx, world, http.MethodGet, "/api/v1/audit?"+query.Encode(), nil, &list)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(world.Stdout, raw)
	}
	if len(list.Entries) == 0 {
		_, err := fmt.Fprintln(world.Stdout, "no entries")
		return err
	}
	var rows [][]string
	for i := len(list.Entries) - 1; i >= 0; i-- {
		rows = append(rows, auditRow(&list.Entries[i]))
	}
	return table(world, []string{"TIME", "WHO", "ACTION", "WHAT", "DECISION", "ERROR", "BYTES", "TOOK", "RULE"}, rows)
}

// query is what is asked for, but for how many.
func (c *auditListCommand) query() url.Values {
	query := url.Values{"who": {c.Who}, "tool": {c.Tool}, "decision": {c.Decision}}
	if c.Since > 0 {
		query.Set("since", time.Now().Add(-c.Since).UTC().Format(time.RFC3339Nano))
	}
	return query
}

// auditRow is an entry as people read it.
func auditRow(e *audit.Entry) []string {
	return []string{
		e.At.Local().Format("2006-01-02 15:04:05.000"), e.Name, e.Action, e.Subject, e.Decision, e.Error,
		strconv.FormatInt(e.Size, 10), time.Duration(e.Took * 1000).Round(10 * time.Microsecond).String(), e.Rule,
	}
}

type auditVerifyCommand struct{ clientFlags }

// Run verifies every chain; the exit code tells whether all are sound.
func (c *auditVerifyCommand) Run(ctx context.Context, world *process) error {
	var v adminapi.AuditVerified
	raw, err := c.admin(ctx, world, http.MethodGet, "/api/v1/audit/verify", nil, &v)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(world.Stdout, raw)
	} else {
		for _, n := range v.Chains {
			fmt.Fprintf(world.Stdout, "%s: %d entries, up to %d, head %s\n", n.Node, n.Entries, n.Seq, n.Hash)
			for _, problem := range n.Problems {
				fmt.Fprintf(world.Stdout, "  %s\n", problem)
			}
		}
	}
	if err == nil && !v.Sound {
		return fault.New(fault.Conflict, "the audit log was tampered with").
			WithHint("compare it with an export, or with a head that was noted elsewhere")
	}
	return err
}

type auditExportCommand struct {
	clientFlags
	File string `arg:"" help:"Where to; it must not exist."`
}

// Run writes every chain in its order.
func (c *auditExportCommand) Run(ctx context.Context, world *process) error {
	return c.at(ctx, world, func(api client.Client) error {
		file, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fault.Wrap(fault.Config, err, "export the audit log").WithHint("give a file that does not exist")
		}
		out := bufio.NewWriter(file)
		count, err := exportAll(ctx, api, json.NewEncoder(out))
		if err = errors.Join(err, out.Flush(), file.Close()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(world.Stdout, "exported %d entries to %s\n", count, c.File)
		return err
	})
}

func exportAll(ctx context.Context, api client.Client, out *json.Encoder) (count int, err error) {
	var chains adminapi.AuditChains
	if _, err := askAdmin(ctx, api, http.MethodGet, "/api/v1/audit/chains", nil, &chains); err != nil {
		return 0, err
	}
	for _, chain := range chains.Chains {
		for last := chain.Cut; ; {
			query := url.Values{"node": {chain.Node}, "after": {strconv.FormatInt(last, 10)}, "limit": {"5000"}}
			var list adminapi.AuditList
			if _, err := askAdmin(ctx, api, http.MethodGet, "/api/v1/audit?"+query.Encode(), nil, &list); err != nil {
				return count, err
			}
			if len(list.Entries) == 0 {
				break
			}
			for i := range list.Entries {
				if err := out.Encode(&list.Entries[i]); err != nil {
					return count, err
				}
			}
			count += len(list.Entries)
			last = list.Entries[len(list.Entries)-1].Seq
		}
	}
	return count, nil
}
