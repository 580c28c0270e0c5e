package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

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
