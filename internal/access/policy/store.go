package policy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Remember keeps under a name what the record of ctx has, beside what is kept
// there already: data does not lose a label.
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

// Recall adds to the record of ctx what is kept under a name.
func (p *Policy) Recall(ctx context.Context, name string) error {
	return p.recall(ctx, `SELECT label, origin, line FROM flow_labels WHERE name = $1`, name)
}

// recallAny adds what is kept under any name with that prefix which args speak of,
// or under all of them when they speak of none.
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
	err := p.db.Read(ctx, func(tx *db.Tx) (err error) {
		labels, err = db.All(ctx, tx, func(row db.Scanner) (l Label, err error) {
			return l, row.Scan(&l.Name, &l.From, &l.Line)
		}, query, args...)
		return err
	})
	if err != nil {
		return fault.Wrap(fault.Internal, err, "recall what was read")
	}
	r.add(labels...)
	return nil
}
