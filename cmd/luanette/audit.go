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

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// auditCommand is `luanette audit`: it reads and verifies the audit log.
type auditCommand struct {
	List   auditListCommand   `cmd:"" default:"withargs" help:"List entries, the newest last."`
	Verify auditVerifyCommand `cmd:"" help:"Check the log for entries that were changed, removed or moved."`
	Export auditExportCommand `cmd:"" help:"Write all entries to a file as JSON lines, chain included."`
}

type auditListCommand struct {
	clientFlags
	Since    time.Duration `placeholder:"1h" help:"Only entries of this last period."`
	Org      string        `placeholder:"ORG" help:"Only entries of this organisation."`
	Who      string        `placeholder:"KEY" help:"Only entries of this key, given by its id or name."`
	Tool     string        `placeholder:"NS.TOOL" help:"Only this tool; * matches any text."`
	Decision string        `enum:",allow,deny" default:"" placeholder:"allow|deny" help:"Only allowed, or only denied entries."`
	Limit    int           `placeholder:"100" help:"Maximum number of entries; --follow ends after that many."`
	Follow   bool          `short:"f" help:"Print new entries of all nodes until interrupted."`
}

// Run lists entries.
func (c *auditListCommand) Run(ctx context.Context, proc *process) error {
	if c.Follow {
		return c.follow(ctx, proc)
	}
	query := c.query()
	query.Set("limit", strconv.Itoa(cmp.Or(c.Limit, 100)))
	var list adminapi.AuditList
	raw, err := c.admin(ctx, proc, http.MethodGet, "/api/v1/audit?"+query.Encode(), nil, &list)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	if len(list.Entries) == 0 {
		_, err := fmt.Fprintln(proc.Stdout, "no entries")
		return err
	}
	var rows [][]string
	for i := len(list.Entries) - 1; i >= 0; i-- {
		rows = append(rows, auditRow(&list.Entries[i]))
	}
	return table(proc, []string{"TIME", "WHO", "ACTION", "WHAT", "DECISION", "ERROR", "BYTES", "TOOK", "RULE"}, rows)
}

// query returns the filters as URL parameters, without the limit.
func (c *auditListCommand) query() url.Values {
	query := url.Values{"org": {c.Org}, "who": {c.Who}, "tool": {c.Tool}, "decision": {c.Decision}}
	if c.Since > 0 {
		query.Set("since", time.Now().Add(-c.Since).UTC().Format(time.RFC3339Nano))
	}
	return query
}

// auditRow returns the columns of an entry.
func auditRow(e *audit.Entry) []string {
	return []string{
		e.At.Local().Format("2006-01-02 15:04:05.000"), auditWho(e), e.Action, e.Subject, e.Decision, e.Error,
		strconv.FormatInt(e.Size, 10), time.Duration(e.Took * 1000).Round(10 * time.Microsecond).String(), e.Rule,
	}
}

// auditWho says who did it, and by which client.
func auditWho(e *audit.Entry) string {
	if e.By == "" {
		return e.Name
	}
	return e.By + " for " + e.Name
}

type auditVerifyCommand struct{ clientFlags }

// Run verifies every chain and returns an error if one is damaged.
func (c *auditVerifyCommand) Run(ctx context.Context, proc *process) error {
	var v adminapi.AuditVerified
	raw, err := c.admin(ctx, proc, http.MethodGet, "/api/v1/audit/verify", nil, &v)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(proc.Stdout, raw)
	} else {
		for _, n := range v.Chains {
			fmt.Fprintf(proc.Stdout, "%s: %d entries, up to %d, head %s\n", n.Node, n.Entries, n.Seq, n.Hash)
			if n.Erased > 0 {
				fmt.Fprintf(proc.Stdout, "  %d of them were erased after the time that their organisation keeps entries\n", n.Erased)
			}
			for _, problem := range n.Problems {
				fmt.Fprintf(proc.Stdout, "  %s\n", problem)
			}
		}
	}
	if err == nil && !v.Sound {
		return fault.New(fault.Conflict, "the audit log was tampered with").
			WithHint("compare it with an export, or with a head hash that you stored elsewhere")
	}
	return err
}

type auditExportCommand struct {
	clientFlags
	File string `arg:"" complete:"file" help:"The file to write; it must not exist."`
}

// Run writes every chain, in order.
func (c *auditExportCommand) Run(ctx context.Context, proc *process) error {
	return c.withClient(ctx, proc, func(api client.Client) error {
		file, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fault.Wrap(fault.Config, err, "export the audit log").WithHint("give a file that does not exist")
		}
		out := bufio.NewWriter(file)
		count, err := exportAll(ctx, api, json.NewEncoder(out))
		if err = errors.Join(err, out.Flush(), file.Close()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(proc.Stdout, "exported %d entries to %s\n", count, c.File)
		return err
	})
}

func exportAll(ctx context.Context, api client.Client, out *json.Encoder) (count int, err error) {
	var chains adminapi.AuditChains
	if _, err := adminRequest(ctx, api, http.MethodGet, "/api/v1/audit/chains", nil, &chains); err != nil {
		return 0, err
	}
	for _, chain := range chains.Chains {
		for last := chain.Cut; ; {
			query := url.Values{"node": {chain.Node}, "after": {strconv.FormatInt(last, 10)}, "limit": {"5000"}}
			var list adminapi.AuditList
			if _, err := adminRequest(ctx, api, http.MethodGet, "/api/v1/audit?"+query.Encode(), nil, &list); err != nil {
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
