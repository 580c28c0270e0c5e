package remotecall

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// Serve handles the calls of other nodes until ctx ends.
func (s *Service) Serve(ctx context.Context, do Handler) {
	var work sync.WaitGroup
	defer work.Wait()
	begin := func(id string) { s.start(ctx, &work, id, do) }
	_ = s.db.Listen(ctx, topic, func(n db.Notification) { // it ends with ctx
		if n.Missed {
			s.wakeAll()
			for _, id := range s.unanswered(ctx) {
				begin(id)
			}
			return
		}
		s.receive(n.Payload, begin)
	})
}

// receive handles a notification.
func (s *Service) receive(message string, begin func(id string)) {
	kind, rest, _ := strings.Cut(message, " ")
	id, node, _ := strings.Cut(rest, " ")
	if kind == messageCall {
		if node == "" || node == s.options.Self {
			begin(id)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case messageDone:
		wake(s.waiting[id])
	case messageCancel:
		if cancel := s.running[id]; cancel != nil {
			cancel()
		}
	}
}

// wakeAll wakes all callers, because notifications may have been missed.
func (s *Service) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, done := range s.waiting {
		wake(done)
	}
}

// wake signals a channel with a buffer of one; nil is ignored.
func wake(done chan struct{}) {
	select {
	case done <- struct{}{}:
	default:
	}
}

// maxAge is the age after which a call cannot have a waiting caller.
const maxAge = time.Hour

// unanswered returns the calls for this node that have no answer, and deletes the calls
// of nodes that died.
func (s *Service) unanswered(ctx context.Context) (ids []string) {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM errands WHERE made < $1`, now.Add(-maxAge).UnixMicro()); err != nil {
			return err
		}
		ids, err = db.All(ctx, tx, func(row db.Scanner) (id string, err error) { return id, row.Scan(&id) },
			`SELECT id FROM errands WHERE answer IS NULL AND (node = $1 OR node = '')`, s.options.Self)
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.options.Log.WarnContext(ctx, "remote calls of other nodes not read", "error", err)
	}
	return ids
}

// start handles a call in a goroutine, unless it is this node's own or being handled.
func (s *Service) start(ctx context.Context, work *sync.WaitGroup, id string, do Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, own := s.waiting[id]; own || s.running[id] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	s.running[id] = cancel
	work.Go(func() {
		defer func() {
			cancel()
			s.mu.Lock()
			delete(s.running, id)
			s.mu.Unlock()
		}()
		if err := s.run(ctx, id, do); err != nil && ctx.Err() == nil {
			s.options.Log.WarnContext(ctx, "remote call of another node not handled", "error", err)
		}
	})
}

func (s *Service) run(ctx context.Context, id string, do Handler) error {
	var bodies [][]byte
	err := s.db.Read(ctx, func(tx *db.Tx) (err error) {
		bodies, err = db.All(ctx, tx, func(row db.Scanner) (body []byte, err error) { return body, row.Scan(&body) },
			`SELECT body FROM errands WHERE id = $1 AND answer IS NULL`, id)
		return err
	})
	if err != nil || len(bodies) == 0 { // another node answered, or the caller stopped waiting
		return err
	}
	answer, mine := do(ctx, bodies[0])
	if !mine || ctx.Err() != nil {
		return nil //nolint:nilerr // the call does not concern this node, or the caller stopped waiting
	}
	stored := append([]byte{'='}, answer...) // so that an empty answer is not NULL
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE errands SET answer = $2 WHERE id = $1`, id, stored); err != nil {
			return err
		}
		return tx.Notify(topic, messageDone+" "+id)
	})
}
