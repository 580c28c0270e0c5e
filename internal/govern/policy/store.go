package policy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Remember stores the labels of ctx under a name, in addition to those stored there:
// data does not lose a label.
func (p *Policy) Remember(ctx context.Context, name string) error {
	r := recordOf(ctx)
	if r == nil {
		return nil
	}
	labels := r.all()
	if len(labels) == 0 {
		return nil
	}
	err := p.db.Write(ctx, func(tx *db.Tx) error {
		for _, l := range labels {
			if _, err := tx.Exec(ctx, `INSERT INTO flow_labels (name, label, origin, line, at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name, label) DO NOTHING`,
				name, l.Name, l.From, l.Line, time.Now().UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fault.Wrap(fault.Internal, err, "remember what %s has read", name)
	}
	return nil
}

// Recall adds the labels stored under a name to those of ctx.
func (p *Policy) Recall(ctx context.Context, name string) error {
	return p.recall(ctx, `SELECT label, origin, line FROM flow_labels WHERE name = $1`, name)
}

// recallAny adds the labels stored under the names with that prefix that args contain,
// or under all of them if args contain none.
func (p *Policy) recallAny(ctx context.Context, prefix string, args json.RawMessage) error {
	texts := textsIn(args)
	for _, text := range texts {
		if err := p.Recall(ctx, prefix+text); err != nil {
			return err
		}
	}
	if len(texts) > 0 {
		return nil
	}
	return p.recall(ctx, `SELECT DISTINCT label, origin, line FROM flow_labels WHERE name LIKE $1`, prefix+"%")
}

func (p *Policy) recall(ctx context.Context, query string, args ...any) error {
	r := recordOf(ctx)
	if r == nil {
		return nil
	}
	var labels []Label
	labels, err := db.Find(ctx, p.db, func(row db.Scanner) (l Label, err error) {
		return l, row.Scan(&l.Name, &l.From, &l.Line)
	}, query, args...)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "recall what was read")
	}
	r.add(labels...)
	return nil
}
