package remotecall

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// pollInterval is how often the table is read without a notification.
const pollInterval = time.Second

// Send calls a node and waits for its answer. If node is "", the node that the call
// concerns answers. The error is not_found if the node is not alive.
func (s *Service) Send(ctx context.Context, node string, body []byte) (answer []byte, err error) {
	id := rand.Text()
	done := make(chan struct{}, 1)
	s.mu.Lock()
	s.waiting[id] = done
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, id)
		s.mu.Unlock()
	}()
	if err := s.insert(ctx, id, node, body); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.remove(context.WithoutCancel(ctx), id, answer == nil)) }()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-done:
		case <-tick.C:
		}
		if answer, err = s.readAnswer(ctx, id); answer != nil || err != nil {
			return answer, err
		}
		if err := s.checkAlive(ctx, node); err != nil {
			return nil, err
		}
	}
}

func (s *Service) insert(ctx context.Context, id, node string, body []byte) error {
	if err := s.checkAlive(ctx, node); err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO errands (id, node, body, made) VALUES ($1, $2, $3, $4)`, id, node, body, now.UnixMicro()); err != nil {
			return err
		}
		return tx.Notify(topic, messageCall+" "+id+" "+node)
	})
}

// checkAlive returns an error if a node is not alive.
func (s *Service) checkAlive(ctx context.Context, node string) error {
	if node == "" {
		return nil
	}
	if alive, err := s.options.Alive(ctx, node); err != nil || alive {
		return err
	}
	return fault.New(fault.NotFound, "node %s is gone", node)
}

func (s *Service) readAnswer(ctx context.Context, id string) (answer []byte, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT answer FROM errands WHERE id = $1`, id).Scan(&answer)
	})
	if len(answer) == 0 {
		return nil, err
	}
	return answer[1:], err
}

// remove deletes a call. With off, the node that handles it is notified to stop.
func (s *Service) remove(ctx context.Context, id string, off bool) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM errands WHERE id = $1`, id); err != nil || !off {
			return err
		}
		return tx.Notify(topic, messageCancel+" "+id)
	})
}
