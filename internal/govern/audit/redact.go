package audit

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// redactedAtOnce bounds the entries that one transaction reads and changes.
const redactedAtOnce = 500

// ofPerson finds the entries in which a person occurs: as who did it, for whom, or what it
// was about. IDs of people are random, and nothing else contains them.
const ofPerson = `SELECT node, seq, entry FROM audit_log WHERE (node > $1 OR node = $1 AND seq > $2) AND entry LIKE $3 ORDER BY node, seq LIMIT 500`

type place struct {
	node  string
	seq   int64
	entry string
}

func (s *Store) mentions(ctx context.Context, tx *db.Tx, p personal.Person, after place) ([]place, error) {
	return db.All(ctx, tx, func(row db.Scanner) (at place, err error) { return at, row.Scan(&at.node, &at.seq, &at.entry) },
		ofPerson, after.node, after.seq, "%"+p.ID+"%")
}

// Export calls write for each entry of a person.
func (l *Log) Export(ctx context.Context, p personal.Person, write func(kind string, value any) error) error {
	l.flush(ctx)
	for after := (place{}); ; {
		var list []place
		err := l.db.Read(ctx, func(tx *db.Tx) (err error) {
			list, err = l.mentions(ctx, tx, p, after)
			return err
		})
		if err != nil || len(list) == 0 {
			return reading(err)
		}
		for _, at := range list {
			e, err := decode(at.entry)
			if err != nil {
				continue // it was changed: Verify reports it
			}
			if err := write("audit", e); err != nil {
				return err
			}
		}
		after = list[len(list)-1]
	}
}

// Erase replaces a person by the pseudonym in all entries, and removes from them what they
// were about in particular. That something was done stays, in its place in the chain.
func (l *Log) Erase(ctx context.Context, p personal.Person) error {
	l.flush(ctx)
	for after := (place{}); ; {
		var list []place
		err := l.db.Write(ctx, func(tx *db.Tx) (err error) {
			if list, err = l.mentions(ctx, tx, p, after); err != nil {
				return err
			}
			for _, at := range list {
				if err := redact(ctx, tx, at, p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(list) < redactedAtOnce {
			return reading(err)
		}
		after = list[len(list)-1]
	}
}

func redact(ctx context.Context, tx *db.Tx, at place, p personal.Person) error {
	e, err := decode(at.entry)
	if err != nil || e.Hash == "" {
		return nil //nolint:nilerr // it was changed: Verify reports it
	}
	e = e.without(p)
	r := rowOf(&e, sign(e.appendUnsigned(nil), e.Hash))
	_, err = tx.Exec(ctx, `UPDATE audit_log SET who = $1, name = $2, subject = $3, entry = $4 WHERE node = $5 AND seq = $6`, r.who, r.name, r.subject, r.entry, at.node, at.seq)
	return err
}

// without returns the entry with the pseudonym in place of the person.
func (e *Entry) without(p personal.Person) Entry {
	rest := *e
	own := e.For == p.ID || strings.HasSuffix(e.For, "/"+p.ID) || strings.Contains(e.Who, p.ID)
	replace := strings.NewReplacer(principal.PersonPrefix+p.ID, p.Pseudonym, p.ID, p.Pseudonym)
	for _, text := range []*string{&rest.Who, &rest.Name, &rest.For, &rest.Client, &rest.Subject, &rest.Rule} {
		*text = replace.Replace(*text)
	}
	if own {
		rest.Who, rest.Name, rest.Client, rest.Grant, rest.Args, rest.Trace, rest.Request = p.Pseudonym, p.Pseudonym, "", "", "", "", ""
		_, err := netip.ParseAddr(rest.Subject) // from where they signed in
		if err == nil || slices.Contains(p.Principals, "key:"+e.Subject) {
			rest.Subject = p.Pseudonym
		}
	}
	rest.Redacted = true
	return rest
}
