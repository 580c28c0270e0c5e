package taskrelay

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
	"github.com/luanette/luanette/internal/store/db"
)

// task is a row of the table.
type task struct {
	id, owner, account, space, tool, remote, caps, node string

	state     tool.TaskState
	message   string
	poll, ttl time.Duration
	created   time.Time
	updated   time.Time
	expires   time.Time
	questions map[string]json.RawMessage
	answers   map[string]json.RawMessage
	asked     int64
	cancelled bool
	result    string // JSON, or empty
	failure   string // JSON-RPC error, or empty
}

const columns = `id, owner, account, space, tool, remote, caps, node, state, message, poll, ttl, created, updated, expires, questions, answers, asked, cancelled, result, error`

// unfinished is the condition of tasks that a node must follow, or cancel.
const unfinished = `(state IN ('working', 'input_required') OR cancelled = 1)`

// How long a task is stored whose upstream does not say: after its end, and in any case.
const (
	keepEnded = 24 * time.Hour
	keepMost  = 30 * 24 * time.Hour
)

func scanText(row db.Scanner) (text string, err error) { return text, row.Scan(&text) }

func scan(row db.Scanner) (t task, err error) {
	var poll, ttl, created, updated, expires, cancelled int64
	var questions, answers string
	err = row.Scan(&t.id, &t.owner, &t.account, &t.space, &t.tool, &t.remote, &t.caps, &t.node, &t.state, &t.message, &poll, &ttl,
		&created, &updated, &expires, &questions, &answers, &t.asked, &cancelled, &t.result, &t.failure)
	if err != nil {
		return t, err
	}
	t.poll, t.ttl = time.Duration(poll)*time.Millisecond, time.Duration(ttl)*time.Millisecond
	t.created, t.updated, t.expires, t.cancelled = time.UnixMicro(created), time.UnixMicro(updated), time.UnixMicro(expires), cancelled == 1
	t.questions, t.answers = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	return t, errors.Join(json.Unmarshal([]byte(questions), &t.questions), json.Unmarshal([]byte(answers), &t.answers))
}

// values are the columns of a task.
func (t *task) values() ([]any, error) {
	questions, err := encode(t.questions)
	if err != nil {
		return nil, err
	}
	answers, err := encode(t.answers)
	if err != nil {
		return nil, err
	}
	cancelled := 0
	if t.cancelled {
		cancelled = 1
	}
	return []any{
		t.id, t.owner, t.account, t.space, t.tool, t.remote, t.caps, t.node, string(t.state), t.message, t.poll.Milliseconds(), t.ttl.Milliseconds(),
		t.created.UnixMicro(), t.updated.UnixMicro(), t.expires.UnixMicro(), questions, answers, t.asked, cancelled, t.result, t.failure,
	}, nil
}

func encode(object map[string]json.RawMessage) (string, error) {
	if object == nil {
		return "{}", nil
	}
	raw, err := tool.Encode(object)
	return string(raw), err
}

// view is the task as its clients see it.
func (t *task) view() tool.Task {
	v := tool.Task{
		ID: t.id, Space: t.space, State: t.state, Message: t.message, Created: t.created, Updated: t.updated,
		TTL: t.ttl, Poll: t.poll, Questions: t.questions,
	}
	if t.result != "" {
		v.Result.Raw = json.RawMessage(t.result)
	}
	if t.failure != "" {
		v.Err = wire.ParseError([]byte(t.failure))
	}
	return v
}

func (r *Relay) insert(ctx context.Context, t task) error {
	return r.db.Write(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		t.created, t.updated = now, now
		t.expires = now.Add(cmp.Or(t.ttl, keepMost))
		return t.store(ctx, tx, `INSERT INTO relayed_tasks (`+columns+`) VALUES (`+placeholders+`)`)
	})
}

// placeholders are those of all columns.
var placeholders = func() string {
	var list []string
	for i := range strings.Count(columns, ",") + 1 {
		list = append(list, "$"+strconv.Itoa(i+1))
	}
	return strings.Join(list, ", ")
}()

// store writes all columns and notifies all nodes.
func (t *task) store(ctx context.Context, tx *db.Tx, query string) error {
	values, err := t.values()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, query, values...); err != nil {
		return err
	}
	return tx.Notify(topic, t.id)
}

// load reads a task that has not expired.
func (r *Relay) load(ctx context.Context, id string) (t task, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		t, err = read(ctx, tx, id)
		return err
	})
	return t, err
}

func read(ctx context.Context, tx *db.Tx, id string) (task, error) {
	now, err := tx.Now(ctx)
	if err != nil {
		return task{}, err
	}
	t, err := scan(tx.QueryRow(ctx, `SELECT `+columns+` FROM relayed_tasks WHERE id = $1 AND expires > $2`, id, now.UnixMicro()))
	if errors.Is(err, sql.ErrNoRows) {
		return task{}, errNoTask(id)
	}
	return t, err
}

// overlap is how much later than its time a change may become visible.
const overlap = time.Minute

// changesSince returns the tasks that have changed since then, and those that this node has
// to cancel at their upstreams.
func (r *Relay) changesSince(ctx context.Context, since time.Time) (ids []string, err error) {
	return db.Find(ctx, r.db, scanText, `SELECT id FROM relayed_tasks WHERE updated >= $1 OR cancelled = 1 AND node = $2`,
		since.Add(-overlap).UnixMicro(), r.options.Node)
}

// update changes a task that has not ended.
func (r *Relay) update(ctx context.Context, id string, change func(*task) error) error {
	return r.db.Write(ctx, func(tx *db.Tx) error {
		t, err := read(ctx, tx, id)
		if err != nil || t.state.Final() {
			return err
		}
		if err := change(&t); err != nil {
			return err
		}
		if t.updated, err = tx.Now(ctx); err != nil {
			return err
		}
		t.settle()
		return t.store(ctx, tx, `UPDATE relayed_tasks SET (`+columns+`) = (`+placeholders+`) WHERE id = $1`)
	})
}

// settle sets the state that follows from the rest of the task.
func (t *task) settle() {
	switch {
	case t.state.Final():
		if t.ttl == 0 {
			t.expires = t.updated.Add(keepEnded)
		}
	case len(t.questions) > 0:
		t.state = tool.TaskInputRequired
	default:
		t.state = tool.TaskWorking
	}
}

// updateOwn changes a task that this node follows.
func (r *Relay) updateOwn(ctx context.Context, id string, change func(*task) error) error {
	return r.update(ctx, id, func(t *task) error {
		if t.node != r.options.Node {
			return errTakenOver
		}
		return change(t)
	})
}

// pageSize is the number of tasks in a page of the list.
const pageSize = 100

// ListTasks lists the tasks of the principal, the newest first.
func (r *Relay) ListTasks(ctx context.Context, cursor string) (list []tool.Task, next string, err error) {
	who := principal.Of(ctx)
	created, id := int64(1<<62), ""
	if cursor != "" {
		at, rest, ok := strings.Cut(cursor, ".")
		id = rest
		if created, err = strconv.ParseInt(at, 10, 64); err != nil || !ok {
			return nil, "", fault.New(fault.InvalidParams, "invalid cursor")
		}
	}
	var found []task
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		all := 0
		if who.Admin() {
			all = 1
		}
		found, err = db.All(ctx, tx, scan, `SELECT `+columns+` FROM relayed_tasks WHERE (owner = $1 OR $2 = 1) AND expires > $3
			AND (created < $4 OR created = $4 AND id > $5) ORDER BY created DESC, id LIMIT $6`,
			who.ID, all, now.UnixMicro(), created, id, pageSize)
		return err
	})
	for i := range found {
		if who.CanSee(found[i].space, "") {
			list = append(list, found[i].view())
		}
	}
	if len(found) == pageSize {
		last := found[pageSize-1]
		next = strconv.FormatInt(last.created.UnixMicro(), 10) + "." + last.id
	}
	return list, next, err
}

// deleteExpired deletes expired tasks periodically until ctx ends.
func (r *Relay) deleteExpired(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		_ = r.db.Write(ctx, func(tx *db.Tx) error { // after an error: expired tasks are not found anyway
			now, err := tx.Now(ctx)
			if err == nil {
				_, err = tx.Exec(ctx, `DELETE FROM relayed_tasks WHERE expires <= $1`, now.UnixMicro())
			}
			return err
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
