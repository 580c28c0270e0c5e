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

	"github.com/luanette/luanette/internal/access/audit"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

const (
	followPause = 500 * time.Millisecond // between two looks
	followPage  = 1000                   // entries asked for at once
)

// follow prints what is added to the chains of all nodes until ctx ends; with
// --since also what was before.
func (c *auditListCommand) follow(ctx context.Context, world *process) error {
	return c.at(ctx, world, func(api client.Client) error {
		f := follower{api: api, query: c.query(), seen: map[string]int64{}}
		if c.Since == 0 {
			if err := f.skip(ctx); err != nil {
				return err
			}
		}
		print := func(e *audit.Entry) error {
			_, err := fmt.Fprintln(world.Stdout, strings.TrimRight(strings.Join(auditRow(e), "  "), " "))
			return err
		}
		if c.JSON {
			out := json.NewEncoder(world.Stdout)
			print = func(e *audit.Entry) error { return out.Encode(e) }
		}
		for {
			err := f.look(ctx, func(e *audit.Entry) error {
				if f.shown++; c.Limit > 0 && f.shown > c.Limit {
					return nil
				}
				return print(e)
			})
			if ctx.Err() != nil || c.Limit > 0 && f.shown >= c.Limit {
				return nil //nolint:nilerr // whoever looked was told to stop, or has enough
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

// follower knows how far it has read every chain.
type follower struct {
	api   client.Client
	query url.Values
	seen  map[string]int64 // by node
	shown int
}

func (f *follower) chains(ctx context.Context) ([]audit.Chain, error) {
	var all adminapi.AuditChains
	_, err := askAdmin(ctx, f.api, http.MethodGet, "/api/v1/audit/chains", nil, &all)
	return all.Chains, err
}

// skip begins at the end of what there is.
func (f *follower) skip(ctx context.Context) error {
	chains, err := f.chains(ctx)
	for _, chain := range chains {
		f.seen[chain.Node] = chain.Seq
	}
	return err
}

// look prints what is new, in the order it happened.
func (f *follower) look(ctx context.Context, print func(*audit.Entry) error) error {
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

// read is what a chain has past what was seen of it.
func (f *follower) read(ctx context.Context, chain audit.Chain) (fresh []audit.Entry, err error) {
	after := max(f.seen[chain.Node], chain.Cut)
	for after < chain.Seq {
		query := url.Values{"node": {chain.Node}, "after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(followPage)}}
		for name, values := range f.query {
			query[name] = values
		}
		var list adminapi.AuditList
		if _, err := askAdmin(ctx, f.api, http.MethodGet, "/api/v1/audit?"+query.Encode(), nil, &list); err != nil {
			return nil, err
		}
		fresh = append(fresh, list.Entries...)
		if after = chain.Seq; len(list.Entries) > 0 {
			after = max(after, list.Entries[len(list.Entries)-1].Seq)
		}
		if len(list.Entries) == followPage { // there is more, perhaps before the end that was told
			after = list.Entries[followPage-1].Seq
		}
	}
	f.seen[chain.Node] = max(after, f.seen[chain.Node])
	return fresh, nil
}
