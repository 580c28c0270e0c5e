package audit

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/luanette/luanette/internal/store/db"
)

// Verified is what was found of one node's chain.
type Verified struct {
	Chain
	Entries  int64    `json:"entries"`
	Problems []string `json:"problems"` // the first few
}

// mostProblems bounds what is told of one chain.
const mostProblems = 20

// Verify goes through every chain from where it was cut to its end and tells of
// entries that were changed, taken out, added or moved.
func (s *Store) Verify(ctx context.Context) (list []Verified, err error) {
	if err := s.adopt(ctx, slog.New(slog.DiscardHandler)); err != nil { // what older nodes have added meanwhile
		return nil, err
	}
	var chains []Chain
	err = s.db.Read(ctx, func(tx *db.Tx) (err error) {
		chains, err = db.All(ctx, tx, scanChain, `SELECT `+chainColumns+` FROM audit_chains
			UNION ALL SELECT DISTINCT node, 0, '', 0, '' FROM audit_pages WHERE node NOT IN (SELECT node FROM audit_chains)
			ORDER BY node`)
		return err
	})
	list = []Verified{}
	for i := 0; i < len(chains) && err == nil; i++ {
		var v Verified
		if v, err = s.verify(ctx, chains[i]); err == nil {
			list = append(list, v)
		}
	}
	return list, reading(err)
}

// verify goes through one chain, as it is at one moment.
func (s *Store) verify(ctx context.Context, c Chain) (Verified, error) {
	var w walk
	err := s.db.Read(ctx, func(tx *db.Tx) error {
		chains, err := db.All(ctx, tx, scanChain, `SELECT `+chainColumns+` FROM audit_chains WHERE node = $1`, c.Node)
		if err != nil {
			return err
		}
		if w = (walk{Verified: Verified{Chain: c, Problems: []string{}}}); len(chains) == 0 {
			w.problem("there are entries, and the end of the chain is not noted: it was taken out")
		} else {
			w.Chain = chains[0]
		}
		w.last, w.hash, w.name = w.Cut, w.CutHash, string(appendText(nil, "", c.Node))
		var where conditions
		where.add(`node = ?`, c.Node)
		behind := func(last *page, where *conditions) {
			if last != nil {
				where.add(`first > ?`, last.first)
			}
		}
		err = turn(ctx, tx, pages{where, `first`, behind}, func(p *page) bool { w.page(p); return true })
		w.end()
		return err
	})
	return w.Verified, err
}

// walk is how far a chain was looked at.
type walk struct {
	Verified
	name string // of the node, as JSON
	last int64
	hash string // of that entry
}

// page looks at entries, and whether the page says of itself what they are.
func (w *walk) page(p *page) {
	found := page{node: p.node, entries: p.entries}
	for line := range p.lines() {
		w.Entries++
		l, ok := linkOf(line)
		if !ok {
			w.last, w.hash = w.last+1, ""
			w.problem("entry %d was changed: it cannot be read", w.last)
			continue
		}
		w.entry(&l)
		found.note(l.seq, l.at)
	}
	if found != *p {
		w.problem("the page of entries %d to %d is not what it says: it was changed", p.first, p.last)
	}
}

func (w *walk) entry(l *link) {
	switch {
	case l.node != w.name:
		w.problem("entry %d is one of node %s: it was moved", l.seq, l.node)
	case l.seq <= w.last:
		w.problem("entry %d stands behind entry %d: it was moved or added", l.seq, w.last)
	case l.seq > w.last+1:
		w.problem("entries %d to %d are missing", w.last+1, l.seq-1)
	case l.prev != w.hash:
		w.problem("entry %d does not follow entry %d: one of them was changed or moved", l.seq, w.last)
	}
	if !l.isSound() {
		w.problem("entry %d was changed", l.seq)
	}
	if l.seq > w.last {
		w.last, w.hash = l.seq, l.hash
	}
	if l.seq == w.Seq && l.hash != w.Hash {
		w.problem("the chain does not end as was noted: its end was changed")
	}
}

// end looks whether the chain ends where it was noted to.
func (w *walk) end() {
	switch {
	case w.last < w.Seq:
		w.problem("entries %d to %d are missing at the end", w.last+1, w.Seq)
	case w.last > w.Seq, w.Entries == 0 && w.hash != w.Hash:
		w.problem("the chain does not end as was noted: its end was changed")
	}
}

func (v *Verified) problem(format string, args ...any) {
	if len(v.Problems) < mostProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}
