package audit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Verified is the result of verifying one node's chain.
type Verified struct {
	Chain
	Entries  int64    `json:"entries"`
	Erased   int64    `json:"erased,omitempty"`   // of them, those that retention erased
	Redacted int64    `json:"redacted,omitempty"` // of them, those in which a person was who is erased
	Others   int64    `json:"others,omitempty"`   // more in an export, of other organisations: their places in the chain alone
	Lost     int64    `json:"lost,omitempty"`     // entries that could not be stored, as the log itself says
	Problems []string `json:"problems"`           // the first few
}

// maxProblems bounds the problems that are reported per chain.
const maxProblems = 20

// Verify checks every chain from its first stored entry to its end, and reports
// entries that were changed, deleted, added or moved. It counts those of the organisation whose
// entries the principal of ctx sees.
func (s *Store) Verify(ctx context.Context) (list []Verified, err error) {
	var chains []Chain
	chains, err = db.Find(ctx, s.db, scanChain, `SELECT `+chainColumns+` FROM audit_chains
			UNION ALL SELECT DISTINCT node, 0, '', 0, '' FROM audit_log WHERE node NOT IN (SELECT node FROM audit_chains)
			ORDER BY node`)
	list = []Verified{}
	for i := 0; i < len(chains) && err == nil; i++ {
		var v Verified
		if v, err = s.verify(ctx, chains[i]); err == nil {
			list = append(list, v)
		}
	}
	return list, reading(err)
}

// verify checks one chain as of one moment.
func (s *Store) verify(ctx context.Context, c Chain) (Verified, error) {
	var w walk
	err := s.db.Read(ctx, func(tx *db.Tx) error {
		chains, err := db.All(ctx, tx, scanChain, `SELECT `+chainColumns+` FROM audit_chains WHERE node = $1`, c.Node)
		if err != nil {
			return err
		}
		if w = (walk{Verified: Verified{Chain: c, Problems: []string{}}, org: seenOrg(ctx)}); len(chains) == 0 {
			w.problem("there are entries, but the end of the chain is not stored: it was deleted")
		} else {
			w.Chain = chains[0]
		}
		w.last, w.hash = w.Cut, w.CutHash
		if err := w.walk(ctx, tx); err != nil {
			return err
		}
		w.end()
		return nil
	})
	return w.Verified, err
}

// walk is a chain that is being verified.
type walk struct {
	Verified
	last int64
	hash string // of the last entry
	org  string // whose entries are counted; "" is all
	rows int64  // of all organisations

	export bool // it has links, which are no entries of a log
}

// ofOthers is the decision of a link.
const ofOthers = "other"

// link returns what those of other organisations see of the entry: its place in the chain.
func (e *Entry) link() Entry {
	return Entry{Node: e.Node, Seq: e.Seq, Decision: ofOthers, Prev: e.Prev, Hash: e.Hash}
}

// seenOrg is the organisation of a caller who sees no other's entries, or "".
func seenOrg(ctx context.Context) string {
	if who := principal.Of(ctx); !who.SeesAll() {
		return who.Org
	}
	return ""
}

// walk checks all rows of the chain, one at a time.
func (w *walk) walk(ctx context.Context, tx *db.Tx) error {
	rows, err := tx.Query(ctx, `SELECT `+rowColumns+` FROM audit_log WHERE node = $1 ORDER BY seq`, w.Node)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err has the error
	for rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return err
		}
		w.row(r)
	}
	return rows.Err()
}

// count counts a row, and returns 1 if it is one of those to be reported.
func (w *walk) count(r row) (counted int64) {
	w.rows++
	if w.org == "" || r.org == column(w.org) {
		counted = 1
	}
	w.Entries += counted
	return counted
}

func (w *walk) row(r row) {
	counted := w.count(r)
	e, err := decode(r.entry)
	if err != nil || e.Hash == "" {
		w.last, w.hash = r.seq, ""
		w.problem("entry %d was changed: it cannot be read", r.seq)
		return
	}
	w.position(&e)
	switch {
	case w.export && e == e.link():
		w.Entries--
		w.Others++
	case e.isErased():
		w.Erased += counted
	case e.Redacted:
		w.Redacted += counted
	case !isSigned(r.entry, e.Hash):
		w.problem("entry %d was changed", e.Seq)
	case e.Action == Lost:
		w.Lost += e.Size
	}
	if own := rowOf(&e, r.entry); e.Node == w.Node && own != r {
		w.problem("entry %d was changed: its columns differ from it", r.seq)
	}
	if e.Seq > w.last {
		w.last, w.hash = e.Seq, e.Hash
	}
	if e.Seq == w.Seq && e.Hash != w.Chain.Hash {
		w.problem("the last entry is not the stored end of the chain: the end was changed")
	}
}

// VerifyExport checks the entries of an export, one on each line. It finds what was changed, moved
// or removed among them; that none is missing at the end, the hashes of the heads show.
func VerifyExport(from io.Reader) (list []Verified, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	walks := map[string]*walk{}
	for number := 1; lines.Scan(); number++ {
		e, err := decode(lines.Text())
		if err != nil || e.Node == "" || e.Seq == 0 {
			return nil, fault.New(fault.InvalidParams, "line %d is no entry of the audit log", number).WithHint("`luanette audit export FILE` writes such a file")
		}
		w := walks[e.Node]
		if w == nil { // older entries may have been deleted because of their age
			w = &walk{Verified: Verified{Chain: Chain{Node: e.Node, Cut: e.Seq - 1, CutHash: e.Prev}, Problems: []string{}}, last: e.Seq - 1, hash: e.Prev, export: true}
			walks[e.Node] = w
		}
		w.row(rowOf(&e, lines.Text()))
	}
	for _, node := range slices.Sorted(maps.Keys(walks)) {
		w := walks[node]
		w.Seq, w.Chain.Hash = w.last, w.hash
		list = append(list, w.Verified)
	}
	return list, lines.Err()
}

// maxLine bounds a line of an export.
const maxLine = 16 << 20

// position checks that an entry follows the one before.
func (w *walk) position(e *Entry) {
	switch {
	case e.Node != w.Node:
		w.problem("entry %d belongs to node %s: it was moved", e.Seq, e.Node)
	case e.Seq <= w.last:
		w.problem("entry %d comes after entry %d: it was moved or added", e.Seq, w.last)
	case e.Seq > w.last+1:
		w.problem("entries %d to %d are missing", w.last+1, e.Seq-1)
	case e.Prev != w.hash:
		w.problem("entry %d does not follow entry %d: one of them was changed or moved", e.Seq, w.last)
	}
}

// end checks that the chain ends at the stored end.
func (w *walk) end() {
	switch {
	case w.last < w.Seq:
		w.problem("entries %d to %d are missing at the end", w.last+1, w.Seq)
	case w.last > w.Seq, w.rows == 0 && w.hash != w.Chain.Hash:
		w.problem("the last entry is not the stored end of the chain: the end was changed")
	}
}

func (v *Verified) problem(format string, args ...any) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}
