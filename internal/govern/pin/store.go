package pin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

const columns = `id, upstream, kind, name, target, digest, definition, flags, approved, approved_target, approved_as, refused, seen, changed, decided, decided_by`

func scanPin(row db.Scanner) (*Pin, error) {
	var p Pin
	var flags []byte
	var definition, approved []byte
	var seen, changed, decided int64
	err := row.Scan(&p.ID, &p.Upstream, &p.Kind, &p.Name, &p.Target, &p.Digest, &definition, &flags,
		&p.ApprovedDigest, &p.ApprovedTarget, &approved, &p.RefusedDigest, &seen, &changed, &decided, &p.By)
	if err != nil {
		return nil, err
	}
	p.Definition, p.ApprovedAs = definition, approved
	p.Seen, p.Changed = time.UnixMicro(seen).UTC(), time.UnixMicro(changed).UTC()
	if decided != 0 {
		p.Decided = time.UnixMicro(decided).UTC()
	}
	return &p, json.Unmarshal(flags, &p.Flags)
}

func (g *Guard) load(ctx context.Context) (map[key]*Pin, error) {
	var pins map[key]*Pin
	err := g.db.Read(ctx, func(tx *db.Tx) error {
		pins = map[key]*Pin{}
		all, err := db.All(ctx, tx, scanPin, `SELECT `+columns+` FROM pins`)
		for _, p := range all {
			pins[p.key()] = p
		}
		return err
	})
	return pins, err
}

// save stores what is offered. It does not change decisions: another node may decide at
// the same time.
func (g *Guard) save(ctx context.Context, pins []*Pin) error {
	return g.db.Write(ctx, func(tx *db.Tx) error {
		for _, p := range pins {
			flags, err := json.Marshal(p.Flags)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `INSERT INTO pins (id, upstream, kind, name, target, digest, definition, flags, approved, approved_target, approved_as, refused, seen, changed, decided, decided_by)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', '', NULL, '', $9, $10, 0, '')
				ON CONFLICT (id) DO UPDATE SET target = excluded.target, digest = excluded.digest, definition = excluded.definition, flags = excluded.flags, changed = excluded.changed`,
				p.ID, p.Upstream, string(p.Kind), p.Name, p.Target, p.Digest, []byte(p.Definition), flags, p.Seen.UnixMicro(), p.Changed.UnixMicro())
			if err != nil {
				return err
			}
		}
		return tx.Notify(Topic, "")
	})
}

// saveDecision stores a decision about the definition with that digest; done is false
// when the upstream offers another by now.
func (g *Guard) saveDecision(ctx context.Context, p *Pin) (done bool, err error) {
	err = g.db.Write(ctx, func(tx *db.Tx) error {
		rows, err := tx.Exec(ctx, `UPDATE pins SET approved = $1, approved_target = $2, approved_as = $3, refused = $4, decided = $5, decided_by = $6, decider = $10
			WHERE id = $7 AND digest = $8 AND target = $9`,
			p.ApprovedDigest, p.ApprovedTarget, []byte(p.ApprovedAs), p.RefusedDigest, p.Decided.UnixMicro(), p.By, p.ID, p.Digest, p.Target, principal.OwnerOf(ctx).ID)
		if done = rows > 0; err != nil || !done {
			return err
		}
		return tx.Notify(Topic, p.ID)
	})
	return done, err
}

// stamp changes whenever a pin does.
func (g *Guard) stamp(ctx context.Context) (stamp [3]int64, err error) {
	err = g.db.QueryRow(ctx, `SELECT COUNT(*), COALESCE(MAX(changed), 0), COALESCE(MAX(decided), 0) FROM pins`).Scan(&stamp[0], &stamp[1], &stamp[2])
	return stamp, err
}

// Personal lists the tables with decisions of people, which stay.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "pins", Where: "OWNER(decider) OR decided_by = FULLNAME", Set: "decided_by = PSEUDONYM, decider = PSEUDONYM"},
	}
}
