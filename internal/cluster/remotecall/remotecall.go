// Package remotecall has another node on the same database do something, and brings
// back what came of it: what reaches one node may be about a call that waits at
// another. An errand lies in a table as long as somebody waits for it; the news
// between nodes only say when to look there.
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

//go:embed migrations/*.sql
var migrations embed.FS

// topic is where nodes tell each other of errands.
const topic = "errands"

// Handler does what an errand says. Mine is false when it is about nothing that is here.
// Its ctx ends when nobody waits for it any more.
type Handler func(ctx context.Context, body []byte) (answer []byte, mine bool)

// Options are an office's choices.
type Options struct {
	Self  string                                               // this node
	Alive func(ctx context.Context, node string) (bool, error) // whether a node is there to do anything
	Log   *slog.Logger                                         // nil is nobody
}

// Office sends errands and takes those of others. It is safe for concurrent use.
type Service struct {
	db      *db.DB
	options Options

	mu      sync.Mutex
	waiting map[string]chan struct{}      // told when somebody has done it
	running map[string]context.CancelFunc // what others want of us
}

// Open brings the tables up to date.
func Open(ctx context.Context, database *db.DB, o Options) (*Service, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	office := &Service{db: database, options: o, waiting: map[string]chan struct{}{}, running: map[string]context.CancelFunc{}}
	return office, database.Migrate(ctx, "errand", migrations)
}

// Self is this node.
func (o *Service) Self() string { return o.options.Self }

// Words of the news: about an errand for a node, which somebody has done, and which
// nobody waits for any more.
const (
	messageCall   = "for"
	messageDone   = "done"
	messageCancel = "off"
)

// pollInterval is how often the table is looked at though nobody told.
const pollInterval = time.Second

// Send has a node do something, "" whichever it is about, and waits until that is
// done. A node that is not there is a not_found.
func (o *Service) Send(ctx context.Context, node string, body []byte) (answer []byte, err error) {
	id := rand.Text()
	done := make(chan struct{}, 1)
	o.mu.Lock()
	o.waiting[id] = done
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		delete(o.waiting, id)
		o.mu.Unlock()
	}()
	if err := o.insert(ctx, id, node, body); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.remove(context.WithoutCancel(ctx), id, answer == nil)) }()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-done:
		case <-tick.C:
		}
		if answer, err = o.readAnswer(ctx, id); answer != nil || err != nil {
			return answer, err
		}
		if err := o.checkAlive(ctx, node); err != nil {
			return nil, err
		}
	}
}

func (o *Service) insert(ctx context.Context, id, node string, body []byte) error {
	if err := o.checkAlive(ctx, node); err != nil {
		return err
	}
	return o.db.Write(ctx, func(tx *db.Tx) error {
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

// checkAlive says that a node is gone.
func (o *Service) checkAlive(ctx context.Context, node string) error {
	if node == "" {
		return nil
	}
	if alive, err := o.options.Alive(ctx, node); err != nil || alive {
		return err
	}
	return fault.New(fault.NotFound, "node %s is gone", node)
}

func (o *Service) readAnswer(ctx context.Context, id string) (answer []byte, err error) {
	err = o.db.Read(ctx, func(tx *db.Tx) error {
		return tx.QueryRow(ctx, `SELECT answer FROM errands WHERE id = $1`, id).Scan(&answer)
	})
	if len(answer) == 0 {
		return nil, err
	}
	return answer[1:], err
}

// remove takes an errand off the table. Off tells whoever is at it to leave it.
func (o *Service) remove(ctx context.Context, id string, off bool) error {
	return o.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM errands WHERE id = $1`, id); err != nil || !off {
			return err
		}
		return tx.Notify(topic, messageCancel+" "+id)
	})
}

// Serve does what others want, until ctx ends.
func (o *Service) Serve(ctx context.Context, do Handler) {
	var work sync.WaitGroup
	defer work.Wait()
	begin := func(id string) { o.start(ctx, &work, id, do) }
	_ = o.db.Listen(ctx, topic, func(news db.Notification) { // it ends with ctx
		if news.Missed {
			o.wakeAll()
			for _, id := range o.unanswered(ctx) {
				begin(id)
			}
			return
		}
		o.receive(news.Payload, begin)
	})
}

// receive takes a word about an errand.
func (o *Service) receive(news string, begin func(id string)) {
	word, rest, _ := strings.Cut(news, " ")
	id, node, _ := strings.Cut(rest, " ")
	if word == messageCall {
		if node == "" || node == o.options.Self {
			begin(id)
		}
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch word {
	case messageDone:
		wake(o.waiting[id])
	case messageCancel:
		if cancel := o.running[id]; cancel != nil {
			cancel()
		}
	}
}

// wakeAll has everybody look who waits: something may have been missed.
func (o *Service) wakeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, done := range o.waiting {
		wake(done)
	}
}

// wake sets a flag that is a channel of one; nobody's flag is nil.
func wake(done chan struct{}) {
	select {
	case done <- struct{}{}:
	default:
	}
}

// maxAge is how old an errand is that nobody can be waiting for.
const maxAge = time.Hour

// unanswered are the errands for us that nobody has done, and takes away what was left by
// nodes that died.
func (o *Service) unanswered(ctx context.Context) (ids []string) {
	err := o.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM errands WHERE made < $1`, now.Add(-maxAge).UnixMicro()); err != nil {
			return err
		}
		ids, err = db.All(ctx, tx, func(row db.Scanner) (id string, err error) { return id, row.Scan(&id) },
			`SELECT id FROM errands WHERE answer IS NULL AND (node = $1 OR node = '')`, o.options.Self)
		return err
	})
	if err != nil && ctx.Err() == nil {
		o.options.Log.WarnContext(ctx, "errands of other nodes not seen", "error", err)
	}
	return ids
}

// start does an errand beside others, unless it is our own or being done.
func (o *Service) start(ctx context.Context, work *sync.WaitGroup, id string, do Handler) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, own := o.waiting[id]; own || o.running[id] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	o.running[id] = cancel
	work.Go(func() {
		defer func() {
			cancel()
			o.mu.Lock()
			delete(o.running, id)
			o.mu.Unlock()
		}()
		if err := o.run(ctx, id, do); err != nil && ctx.Err() == nil {
			o.options.Log.WarnContext(ctx, "errand of another node not done", "error", err)
		}
	})
}

func (o *Service) run(ctx context.Context, id string, do Handler) error {
	var bodies [][]byte
	err := o.db.Read(ctx, func(tx *db.Tx) (err error) {
		bodies, err = db.All(ctx, tx, func(row db.Scanner) (body []byte, err error) { return body, row.Scan(&body) },
			`SELECT body FROM errands WHERE id = $1 AND answer IS NULL`, id)
		return err
	})
	if err != nil || len(bodies) == 0 { // somebody was faster, or nobody waits
		return err
	}
	answer, mine := do(ctx, bodies[0])
	if !mine || ctx.Err() != nil {
		return nil //nolint:nilerr // nobody here is concerned, or nobody waits any more
	}
	said := append([]byte{'='}, answer...) // even nothing is an answer
	return o.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE errands SET answer = $2 WHERE id = $1`, id, said); err != nil {
			return err
		}
		return tx.Notify(topic, messageDone+" "+id)
	})
}
