package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// Filter picks entries. Zero fields pick all.
type Filter struct {
	Since, Until time.Time
	Who          string // id or name
	Tool         string // the subject; * stands for any letters
	Decision     string
	Node         string
	After        int64 // with Node: entries after this one, in the order of the chain
	Limit        int   // 0 is 100
}

// Find lists entries, the newest first; with Node in the order of the node's chain.
// What is in a page and no entry is left to Verify.
func (s *Store) Find(ctx context.Context, f Filter) (list []Entry, err error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	look := f.newest
	if f.Node != "" {
		look = f.inChain
	}
	sieve := newSieve(f)
	err = s.db.Read(ctx, func(tx *db.Tx) (err error) {
		list, err = look(ctx, tx, sieve)
		return err
	})
	return list, reading(err)
}

// inChain finds entries in the order of a node's chain.
func (f Filter) inChain(ctx context.Context, tx *db.Tx, sieve *sieve) (list []Entry, err error) {
	var where conditions
	f.inTime(&where)
	where.add(`node = ?`, f.Node)
	behind := func(last *page, where *conditions) {
		if last == nil {
			where.add(`first >= coalesce((SELECT max(first) FROM audit_pages WHERE node = ? AND first <= ?), 0)`, f.Node, f.After+1)
			return
		}
		where.add(`first > ?`, last.first)
	}
	err = turn(ctx, tx, pages{where, `first`, behind}, func(p *page) (more bool) {
		for e := range sieve.entries(p) {
			if list = append(list, e); len(list) == f.Limit {
				return false
			}
		}
		return true
	})
	return list, err
}

// newest finds the newest entries. Pages overlap in time, for nodes write at once and
// a call is kept when it ends, under the time it began: there may be newer ones in a
// page until the latest time in it is before all that were found.
func (f Filter) newest(ctx context.Context, tx *db.Tx, sieve *sieve) (list []Entry, err error) {
	var where conditions
	f.inTime(&where)
	behind := func(last *page, where *conditions) {
		if last != nil {
			where.add(`(until, node, first) < (?, ?, ?)`, last.until, last.node, last.first)
		}
	}
	err = turn(ctx, tx, pages{where, `until DESC, node DESC, first DESC`, behind}, func(p *page) (more bool) {
		if len(list) == f.Limit && list[f.Limit-1].At.UnixMicro() > p.until {
			return false
		}
		before := len(list)
		if list = slices.AppendSeq(list, sieve.entries(p)); len(list) > before {
			slices.SortFunc(list, newerFirst)
			list = list[:min(len(list), f.Limit)]
		}
		return true
	})
	return list, err
}

func newerFirst(a, b Entry) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Node, b.Node), cmp.Compare(b.Seq, a.Seq))
}

// inTime leaves out pages without an entry of the time that is asked for.
func (f *Filter) inTime(where *conditions) {
	if !f.Since.IsZero() {
		where.add(`until >= ?`, f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		where.add(`since < ?`, f.Until.UnixMicro())
	}
}

// conditions are what rows are asked for by.
type conditions struct {
	all  []string
	args []any
}

// add adds a condition, in which ? stands for one value after the other.
func (c *conditions) add(condition string, values ...any) {
	for _, v := range values {
		c.args = append(c.args, v)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(c.args)), 1)
	}
	c.all = append(c.all, condition)
}

func (c *conditions) String() string {
	if len(c.all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.all, " AND ")
}

// pages are which to go through, and in which order.
type pages struct {
	where  conditions
	order  string
	behind func(last *page, where *conditions) // picks those that come after it, or nil
}

// Pages are asked for in portions, each larger than the one before: a database may
// send all of one even if nobody wants the rest.
const fewPages, manyPages = 8, 64

// turn goes through pages until take has enough. It holds one at a time.
func turn(ctx context.Context, tx *db.Tx, over pages, take func(*page) (more bool)) error {
	var last *page
	for portion := fewPages; ; portion = min(2*portion, manyPages) {
		where := conditions{slices.Clone(over.where.all), slices.Clone(over.where.args)}
		over.behind(last, &where)
		query := fmt.Sprintf(`SELECT %s FROM audit_pages%s ORDER BY %s LIMIT %d`, pageColumns, where.String(), over.order, portion)
		seen, more := 0, true
		err := each(ctx, tx, query, where.args, func(p *page) bool {
			seen, last = seen+1, &page{node: p.node, first: p.first, until: p.until}
			more = take(p)
			return more
		})
		if err != nil || !more || seen < portion {
			return err
		}
	}
}

// each reads pages one by one until take has enough.
func each(ctx context.Context, tx *db.Tx, query string, args []any, take func(*page) (more bool)) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // what went wrong is in Err
	for rows.Next() {
		p, err := scanPage(rows)
		if err != nil {
			return err
		}
		if !take(&p) {
			return nil
		}
	}
	return rows.Err()
}
