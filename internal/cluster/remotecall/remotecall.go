// Package remotecall runs a function on another node of the same database and returns
// its result: a request that reaches one node may concern a call that another node
// handles. A remote call is a row of a table until its caller stops waiting;
// notifications only tell the nodes when to read the table.
package remotecall

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// topic is the notification channel of remote calls.
const topic = "errands"

// Handler handles a remote call. Mine is false if the call does not concern this node.
// Its ctx ends when the caller stops waiting.
type Handler func(ctx context.Context, body []byte) (answer []byte, mine bool)

// Options configure a Service.
type Options struct {
	Self  string                                               // id of this node
	Alive func(ctx context.Context, node string) (bool, error) // reports whether a node is alive
	Log   *slog.Logger                                         // nil discards
}

// Service sends remote calls and handles those of other nodes. It is safe for
// concurrent use.
type Service struct {
	db      *db.DB
	options Options

	mu      sync.Mutex
	waiting map[string]chan struct{}      // signalled when a call has its answer
	running map[string]context.CancelFunc // calls of other nodes that are being handled
}

// Open creates or updates the tables.
func Open(ctx context.Context, database *db.DB, o Options) (*Service, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	service := &Service{db: database, options: o, waiting: map[string]chan struct{}{}, running: map[string]context.CancelFunc{}}
	return service, database.Migrate(ctx, "errand", Migrations) // the name from before the package was called remotecall
}

// Self returns the id of this node.
func (s *Service) Self() string { return s.options.Self }

// The first words of notifications: a call for a node, a call that has its answer, and
// a call whose caller stopped waiting.
const (
	messageCall   = "for"
	messageDone   = "done"
	messageCancel = "off"
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
	err = s.db.QueryRow(ctx, `SELECT answer FROM errands WHERE id = $1`, id).Scan(&answer)
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
		ids, err = db.All(ctx, tx, db.Column[string],
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
	bodies, err := db.Find(ctx, s.db, db.Column[[]byte],
		`SELECT body FROM errands WHERE id = $1 AND answer IS NULL`, id)
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
