package job

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// Status returns a job with its current state and its output so far.
func (q *Queue) Status(ctx context.Context, id string) (Job, error) {
	if err := q.check(ctx, principal.Job, principal.See, id); err != nil {
		return Job{}, err
	}
	c := q.following(id)
	j, _, err := q.load(ctx, id)
	if err != nil {
		return Job{}, err
	}
	switch {
	case j.State.Final():
	case c != nil:
		c.overlay(&j)
	case q.options.Node != "":
		err = q.overlayOther(ctx, &j)
	}
	if err == nil {
		j.Sharing, err = q.sharing(ctx, principal.Job, id, j.owner, j.ownerName)
	}
	return j, err
}

// Logs returns the output of a job, starting with line number from.
func (q *Queue) Logs(ctx context.Context, id string, from int) ([]host.OutputLine, error) {
	j, err := q.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	return j.Output[min(max(from, 0), len(j.Output)):], nil
}

// Filter selects jobs. Zero fields match all.
type Filter struct {
	State    State
	Tag      string
	Creator  string
	Schedule string
	Script   string    // name or hash of the script
	Since    time.Time // created then or later
}

func (f Filter) where() (string, []any) {
	var conditions []string
	var args []any
	add := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if f.State != "" {
		add("state = $%d", string(f.State))
	}
	if f.Creator != "" {
		add("creator = $%d", f.Creator)
	}
	if f.Schedule != "" {
		add("schedule = $%d", f.Schedule)
	}
	if f.Script != "" {
		add("$%[1]d IN (name, hash)", f.Script)
	}
	if !f.Since.IsZero() {
		add("created >= $%d", f.Since.UnixMicro())
	}
	if f.Tag != "" {
		add("id IN (SELECT job FROM job_tags WHERE tag = $%d)", f.Tag)
	}
	if len(conditions) == 0 {
		return "TRUE", nil
	}
	return strings.Join(conditions, " AND "), args
}

// Page is one page of a list, the newest jobs first.
type Page struct {
	Jobs  []Job
	Total int    // on all pages
	Next  string // cursor of the next page; "" at the end
}

// List returns the jobs that match the filter: at most limit of them, zero meaning
// 100, starting at cursor, "" being the beginning.
func (q *Queue) List(ctx context.Context, f Filter, limit int, cursor string) (page Page, err error) {
	if limit <= 0 {
		limit = 100
	}
	before, id, err := parseCursor(cursor)
	if err != nil {
		return Page{}, err
	}
	where, args := f.where()
	if where, args, err = q.visible(ctx, principal.Job, where, args); err != nil {
		return Page{}, err
	}
	err = q.db.Read(ctx, func(tx *db.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM jobs WHERE "+where, args...).Scan(&page.Total); err != nil {
			return err
		}
		n := len(args)
		all := append(slices.Clone(args), before, id, limit+1)
		page.Jobs, err = db.All(ctx, tx, func(row db.Scanner) (Job, error) { return scan(row) },
			fmt.Sprintf("SELECT %s FROM jobs WHERE %s AND (created < $%d OR created = $%d AND id < $%d) ORDER BY created DESC, id DESC LIMIT $%d",
				columns, where, n+1, n+1, n+2, n+3), all...)
		return err
	})
	if err != nil {
		return Page{}, fault.Wrap(fault.Internal, err, "list jobs")
	}
	if len(page.Jobs) > limit {
		page.Jobs = page.Jobs[:limit]
		last := page.Jobs[limit-1]
		page.Next = fmt.Sprintf("%d.%s", last.Created.UnixMicro(), last.ID)
	}
	return page, q.overlayAll(ctx, page.Jobs)
}

// overlayAll adds the progress of unfinished jobs, and how the caller sees jobs of others.
func (q *Queue) overlayAll(ctx context.Context, jobs []Job) error {
	var others []*Job
	var err error
	for i := range jobs {
		j := &jobs[i]
		if j.Sharing, err = q.sharing(ctx, principal.Job, j.ID, j.owner, j.ownerName); err != nil {
			return err
		}
		if j.State.Final() {
			continue
		}
		if c := q.following(j.ID); c != nil {
			c.overlay(j)
			j.Output = nil
		} else if q.options.Node != "" {
			others = append(others, j)
		}
	}
	return q.overlayOthers(ctx, others)
}

// parseCursor parses Page.Next: the time and id of the last job of a page.
func parseCursor(cursor string) (before int64, id string, err error) {
	if cursor == "" {
		return 1 << 62, "", nil
	}
	micros, id, ok := strings.Cut(cursor, ".")
	before, err = strconv.ParseInt(micros, 10, 64)
	if !ok || err != nil {
		return 0, "", fault.New(fault.InvalidParams, "%q is not a cursor", cursor).WithHint("pass next_cursor of the previous answer unchanged")
	}
	return before, id, nil
}

// Stats returns the number of jobs in each state.
func (q *Queue) Stats(ctx context.Context) (map[State]int, error) {
	var stats map[State]int
	where, args := ofOwner(ctx, "TRUE", nil)
	err := q.db.Read(ctx, func(tx *db.Tx) error {
		stats = map[State]int{}
		_, err := db.All(ctx, tx, func(row db.Scanner) (struct{}, error) {
			var state State
			var n int
			err := row.Scan(&state, &n)
			stats[state] = n
			return struct{}{}, err
		}, "SELECT state, count(*) FROM jobs WHERE "+where+" GROUP BY state", args...)
		return err
	})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "count jobs")
	}
	return stats, nil
}

// Watch passes the progress of an unfinished job of this process to see, which must not
// block, until stop is called. Of other jobs it passes nothing.
func (q *Queue) Watch(ctx context.Context, id string, see func(fraction float64, message string)) (stop func()) {
	c := q.following(id)
	if c == nil || q.check(ctx, principal.Job, principal.See, id) != nil {
		return func() {}
	}
	return c.watch(see)
}

// maxPoll is the maximum time that Poll waits.
const maxPoll = 60 * time.Second

// Poll waits until one of the jobs has ended, or all of them, for at most timeout and
// never longer than a minute. It returns the ended jobs, in the order of ids, and the
// ids of the others. Unknown ids are an error that names them.
func (q *Queue) Poll(ctx context.Context, ids []string, timeout time.Duration, all bool) (done []Job, pending []string, err error) {
	if err := q.check(ctx, principal.Job, principal.See, ids...); err != nil {
		return nil, nil, err
	}
	woke := make(chan struct{}, 1)
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer q.options.Clock.AfterFunc(min(timeout, maxPoll), func() { cancel(errPolled) })()
	for {
		stop := q.awaitEnds(ids, woke) // before the check, so that no end is missed
		done, pending, err = q.partition(ctx, ids)
		over := err != nil || len(pending) == 0 || !all && len(done) > 0
		if !over {
			select {
			case <-woke:
			case <-waiting.Done():
				over = true
				if ctx.Err() != nil {
					done, pending, err = nil, nil, context.Cause(ctx)
				}
			}
		}
		if stop(); over {
			return done, pending, err
		}
	}
}

// awaitEnds has woke signalled when one of the jobs ends, here or on another node: a job may
// move meanwhile. The caller calls stop to unregister.
func (q *Queue) awaitEnds(ids []string, woke chan<- struct{}) (stop func()) {
	var stops []func()
	for _, id := range ids {
		stops = append(stops, q.awaitOther(id, woke))
		if c := q.following(id); c != nil {
			stops = append(stops, c.await(woke))
		}
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// errPolled ends a Poll whose timeout has passed.
var errPolled = fault.New(fault.Timeout, "the jobs are not over yet")

// partition separates ended jobs from unfinished ones.
func (q *Queue) partition(ctx context.Context, ids []string) (done []Job, pending []string, err error) {
	var missing []string
	for _, id := range ids {
		if q.following(id) != nil {
			pending = append(pending, id)
			continue
		}
		j, err := q.Status(ctx, id)
		switch {
		case fault.CodeOf(err) == fault.NotFound:
			missing = append(missing, id)
		case err != nil:
			return nil, nil, err
		case !j.State.Final():
			pending = append(pending, id)
		default:
			done = append(done, j)
		}
	}
	if len(missing) > 0 {
		return nil, nil, unknown(missing...)
	}
	return done, pending, nil
}
