package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// auditCommand is `luanette audit`: it reads and verifies the audit log.
type auditCommand struct {
	List   auditListCommand   `cmd:"" default:"withargs" aliases:"show" help:"List entries, the newest last."`
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
	slices.Reverse(list.Entries)
	return printList(proc, list.Entries, "no entries", "TIME WHO ACTION WHAT DECISION ERROR BYTES TOOK RULE", func(e audit.Entry) []string { return auditRow(&e) })
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

type auditVerifyCommand struct {
	clientFlags
	File string `placeholder:"FILE" type:"path" help:"Check a file of audit export in place of the log; this needs no server."`
}

// Run verifies every chain and returns an error if one is damaged.
func (c *auditVerifyCommand) Run(ctx context.Context, proc *process) error {
	v, err := c.verify(ctx, proc)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printValue(proc, v)
	} else {
		for _, n := range v.Chains {
			fmt.Fprintf(proc.Stdout, "%s: %d entries, up to %d, head %s\n", n.Node, n.Entries, n.Seq, n.Hash)
			printFindings(proc.Stdout, n)
		}
	}
	if err == nil && !v.Sound {
		return fault.New(fault.Conflict, "the audit log was tampered with").
			WithHint("compare it with an export, or with a head hash that you stored elsewhere")
	}
	return err
}

// verify checks the log, or a file.
func (c *auditVerifyCommand) verify(ctx context.Context, proc *process) (v adminapi.AuditVerified, err error) {
	if c.File == "" {
		_, err = c.admin(ctx, proc, http.MethodGet, "/api/v1/audit/verify", nil, &v)
		return v, err
	}
	file, err := os.Open(c.File)
	if err != nil {
		return v, fault.Wrap(fault.InvalidParams, err, "read the export").WithHint("name a file that `luanette audit export` wrote")
	}
	defer file.Close()
	found, err := audit.VerifyExport(file)
	return adminapi.VerifiedOf(found), err
}

// printFindings prints what is special about a chain.
func printFindings(out io.Writer, n audit.Verified) {
	for _, note := range []struct {
		count int64
		text  string
	}{
		{n.Erased, "of them were erased after the time that their organisation keeps entries"},
		{n.Redacted, "of them are redacted: a person in them was erased"},
		{n.Others, "more are of other organisations: their places in the chain alone"},
		{n.Lost, "more are missing: they could not be stored (audit.lost says when)"},
	} {
		if note.count > 0 {
			fmt.Fprintf(out, "  %d %s\n", note.count, note.text)
		}
	}
	for _, problem := range n.Problems {
		fmt.Fprintf(out, "  %s\n", problem)
	}
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
			query := url.Values{"node": {chain.Node}, "after": {strconv.FormatInt(last, 10)}, "limit": {"5000"}, "links": {"true"}}
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

const (
	followPause = 500 * time.Millisecond // between two polls
	followPage  = 1000                   // entries per request
)

// follow prints the entries that are added to the chains of all nodes until ctx
// ends. With --since it prints earlier ones first.
func (c *auditListCommand) follow(ctx context.Context, proc *process) error {
	return c.withClient(ctx, proc, func(api client.Client) error {
		f := follower{api: api, query: c.query(), seen: map[string]int64{}}
		if c.Since == 0 {
			if err := f.skip(ctx); err != nil {
				return err
			}
		}
		print := func(e *audit.Entry) error {
			_, err := fmt.Fprintln(proc.Stdout, strings.TrimRight(strings.Join(auditRow(e), "  "), " "))
			return err
		}
		if c.JSON {
			out := json.NewEncoder(proc.Stdout)
			print = func(e *audit.Entry) error { return out.Encode(e) }
		}
		for {
			err := f.poll(ctx, func(e *audit.Entry) error {
				if f.shown++; c.Limit > 0 && f.shown > c.Limit {
					return nil
				}
				return print(e)
			})
			if ctx.Err() != nil || c.Limit > 0 && f.shown >= c.Limit {
				return nil //nolint:nilerr // the command was interrupted, or its limit is reached
			}
			if err != nil {
				return err
			}
			select {
			case <-time.After(followPause):
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// follower tracks how far it has read every chain.
type follower struct {
	api   client.Client
	query url.Values
	seen  map[string]int64 // by node
	shown int
}

func (f *follower) chains(ctx context.Context) ([]audit.Chain, error) {
	var all adminapi.AuditChains
	_, err := adminRequest(ctx, f.api, http.MethodGet, "/api/v1/audit/chains", nil, &all)
	return all.Chains, err
}

// skip moves to the current end of every chain.
func (f *follower) skip(ctx context.Context) error {
	chains, err := f.chains(ctx)
	for _, chain := range chains {
		f.seen[chain.Node] = chain.Seq
	}
	return err
}

// poll prints new entries, in the order of their times.
func (f *follower) poll(ctx context.Context, print func(*audit.Entry) error) error {
	chains, err := f.chains(ctx)
	if err != nil {
		return err
	}
	var fresh []audit.Entry
	for _, chain := range chains {
		entries, err := f.read(ctx, chain)
		if err != nil {
			return err
		}
		fresh = append(fresh, entries...)
	}
	slices.SortStableFunc(fresh, func(a, b audit.Entry) int { return a.At.Compare(b.At) })
	for i := range fresh {
		if err := print(&fresh[i]); err != nil {
			return err
		}
	}
	return nil
}

// read returns the entries of a chain that were not printed yet.
func (f *follower) read(ctx context.Context, chain audit.Chain) (fresh []audit.Entry, err error) {
	after := max(f.seen[chain.Node], chain.Cut)
	for after < chain.Seq {
		query := url.Values{"node": {chain.Node}, "after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(followPage)}}
		for name, values := range f.query {
			query[name] = values
		}
		var list adminapi.AuditList
		if _, err := adminRequest(ctx, f.api, http.MethodGet, "/api/v1/audit?"+query.Encode(), nil, &list); err != nil {
			return nil, err
		}
		fresh = append(fresh, list.Entries...)
		if after = chain.Seq; len(list.Entries) > 0 {
			after = max(after, list.Entries[len(list.Entries)-1].Seq)
		}
		if len(list.Entries) == followPage { // there may be more before the reported end
			after = list.Entries[followPage-1].Seq
		}
	}
	f.seen[chain.Node] = max(after, f.seen[chain.Node])
	return fresh, nil
}
