package conversation

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/store/db"
)

// journal stores the steps of a turn while it is not answered. Only the node that answers
// it can: one that was taken for dead makes no further calls.
type journal struct {
	service *Service
	turn    *Turn
}

func (j journal) Load(ctx context.Context) (steps []agent.Step, err error) {
	err = j.service.db.Read(ctx, func(tx *db.Tx) error {
		steps, err = db.All(ctx, tx, func(row db.Scanner) (s agent.Step, err error) {
			var data string
			err = row.Scan(&s.Iteration, &s.Call, &data)
			s.Data = json.RawMessage(data)
			return s, err
		}, `SELECT iteration, call, data FROM talk_steps WHERE turn = $1`, j.turn.ID)
		return err
	})
	return steps, err
}

func (j journal) Save(ctx context.Context, s agent.Step) error {
	r := j.service
	return r.retryDB(ctx, func() error {
		return r.db.Write(ctx, func(tx *db.Tx) error {
			result, err := tx.Exec(ctx, `INSERT INTO talk_steps (turn, iteration, call, data)
				SELECT id, $2, $3, $4 FROM talk_turns WHERE id = $1 AND node = $5 AND status = 'running' AND attempts = $6
				ON CONFLICT (turn, iteration, call) DO UPDATE SET data = excluded.data`,
				j.turn.ID, s.Iteration, s.Call, string(s.Data), r.options.Node, j.turn.attempts)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err == nil && n == 0 {
				err = errTaken
			}
			return err
		})
	})
}
