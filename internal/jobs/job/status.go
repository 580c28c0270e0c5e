package job

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/redact"
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

// awaitEnds has woke signalled when one of the jobs ends, here or on another node. The caller
// calls stop to unregister.
func (q *Queue) awaitEnds(ids []string, woke chan<- struct{}) (stop func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		q.waiters[id] = append(q.waiters[id], woke)
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, id := range ids {
			rest := slices.DeleteFunc(q.waiters[id], func(c chan<- struct{}) bool { return c == woke })
			if q.waiters[id] = rest; len(rest) == 0 {
				delete(q.waiters, id)
			}
		}
	}
}

// wake signals the callers that wait for the end of a job, or of any if id is "".
func (q *Queue) wake(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for of, waiting := range q.waiters {
		if id == "" || of == id {
			for _, woke := range waiting {
				signal(woke)
			}
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

// updateInterval is how often the progress of jobs is stored for other nodes. A job that
// ends sooner is not reported.
const updateInterval = time.Second / 2

// jobUpdate is the progress of a running job since it was last stored.
type jobUpdate struct {
	job       string
	fraction  float64
	message   string
	first     int // index of the first of lines
	lines     []host.OutputLine
	restarted bool // a new run began: earlier output is obsolete
}

// update returns what other nodes do not know yet; ok is false if there is nothing.
func (c *liveJob) update(id string) (a jobUpdate, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return a, false
	}
	a = jobUpdate{job: id, fraction: c.fraction, message: c.message, first: c.storedLines, lines: slices.Clone(c.lines[c.storedLines:]), restarted: c.restarted}
	c.changed, c.restarted, c.storedLines, c.stored = false, false, len(c.lines), true
	return a, true
}

// restore marks an update that could not be stored, so that it is stored again.
func (c *liveJob) restore(a jobUpdate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed, c.restarted = true, c.restarted || a.restarted
	c.storedLines = min(c.storedLines, a.first)
}

// storeUpdates stores the progress of this node's jobs for other nodes, until ctx ends.
func (q *Queue) storeUpdates(ctx context.Context) {
	for q.options.Clock.Sleep(ctx, updateInterval) == nil {
		if err := q.storeUpdatesOnce(ctx); err != nil && ctx.Err() == nil {
			q.options.Log.WarnContext(ctx, "progress of jobs not stored", "error", err)
		}
	}
}

func (q *Queue) storeUpdatesOnce(ctx context.Context) error {
	q.mu.Lock()
	running, ended := maps.Clone(q.current), q.endedLive
	q.endedLive = nil
	q.mu.Unlock()
	var updates []jobUpdate
	for id, c := range running {
		if a, ok := c.update(id); ok {
			updates = append(updates, a)
		}
	}
	if len(updates)+len(ended) == 0 {
		return nil
	}
	err := q.db.Write(ctx, func(tx *db.Tx) error {
		for _, a := range updates {
			if err := q.storeUpdate(ctx, tx, a); err != nil {
				return err
			}
		}
		return forgetLive(ctx, tx, ended)
	})
	if err != nil {
		for _, a := range updates {
			running[a.job].restore(a)
		}
		q.mu.Lock()
		q.endedLive = append(q.endedLive, ended...)
		q.mu.Unlock()
	}
	return err
}

// storeUpdate stores the progress of a job, if the job still belongs to this node.
func (q *Queue) storeUpdate(ctx context.Context, tx *db.Tx, a jobUpdate) error {
	var ours bool
	err := tx.QueryRow(ctx, "SELECT node = $2 AND finished = 0 FROM jobs WHERE id = $1", a.job, q.options.Node).Scan(&ours)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !ours {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO job_live (job, fraction, message) VALUES ($1, $2, $3)
		ON CONFLICT (job) DO UPDATE SET fraction = excluded.fraction, message = excluded.message`, a.job, a.fraction, a.message); err != nil {
		return err
	}
	if a.restarted {
		if _, err := tx.Exec(ctx, "DELETE FROM job_said WHERE job = $1", a.job); err != nil {
			return err
		}
	}
	if len(a.lines) == 0 {
		return nil
	}
	lines, err := json.Marshal(a.lines)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO job_said (job, first, lines) VALUES ($1, $2, $3) ON CONFLICT (job, first) DO UPDATE SET lines = excluded.lines",
		a.job, a.first, lines)
	return err
}

// forgetLive removes the stored progress and output of jobs that have ended.
func forgetLive(ctx context.Context, tx *db.Tx, jobs []string) error {
	for _, id := range jobs {
		for _, table := range []string{"job_live", "job_said"} {
			if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE job = $1", id); err != nil {
				return err
			}
		}
	}
	return nil
}

// overlayOther adds the progress and output of another node's job.
func (q *Queue) overlayOther(ctx context.Context, j *Job) error {
	return q.db.Read(ctx, func(tx *db.Tx) error {
		err := tx.QueryRow(ctx, "SELECT fraction, message FROM job_live WHERE job = $1", j.ID).Scan(&j.Progress, &j.Message)
		if err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		}
		parts, err := db.All(ctx, tx, func(row db.Scanner) (lines []host.OutputLine, err error) {
			var raw []byte
			if err := row.Scan(&raw); err != nil {
				return nil, err
			}
			return lines, json.Unmarshal(raw, &lines)
		}, "SELECT lines FROM job_said WHERE job = $1 ORDER BY first", j.ID)
		j.Output = slices.Concat(parts...)
		return err
	})
}

// overlayOthers adds the progress of other nodes' jobs.
func (q *Queue) overlayOthers(ctx context.Context, jobs []*Job) error {
	if len(jobs) == 0 {
		return nil
	}
	return q.db.Read(ctx, func(tx *db.Tx) error {
		far := map[string]Job{}
		_, err := db.All(ctx, tx, func(row db.Scanner) (j Job, err error) {
			err = row.Scan(&j.ID, &j.Progress, &j.Message)
			far[j.ID] = j
			return j, err
		}, "SELECT job, fraction, message FROM job_live")
		for _, j := range jobs {
			if at, ok := far[j.ID]; ok {
				j.Progress, j.Message = at.Progress, at.Message
			}
		}
		return err
	})
}

// Traces connects jobs with the traces that they come from.
type Traces interface {
	// Origin returns the span of ctx as text, or "".
	Origin(ctx context.Context) string
	// Join returns the context of a run, and the id of its trace: that of the origin if
	// the job starts at once, otherwise its own, with a link.
	Join(ctx context.Context, job, origin string, atOnce bool) (context.Context, string)
}

// noTraces is used where there are none.
type noTraces struct{}

func (noTraces) Origin(context.Context) string { return "" }

func (noTraces) Join(ctx context.Context, _, _ string, _ bool) (context.Context, string) {
	return ctx, ""
}

// atOnce reports whether the job's run is part of what its submitter is doing: it is not
// delayed, and no earlier process has run it.
func (j Job) atOnce() bool { return !j.resumed && !j.Due.After(j.Created) }

// traced returns the context of a run of j.
func (q *Queue) traced(ctx context.Context, j Job) context.Context {
	ctx, _ = q.options.Traces.Join(ctx, j.ID, j.origin, j.atOnce())
	return ctx
}

// traceID returns the id of the trace of a run of j.
func (q *Queue) traceID(ctx context.Context, j Job) string {
	_, id := q.options.Traces.Join(ctx, j.ID, j.origin, j.atOnce())
	return id
}

// newDurations returns the histogram of the durations of jobs.
func newDurations(m metric.Meter) metric.Float64Histogram {
	const name = "luanette.job.duration"
	if m == nil {
		m = noop.Meter{}
	}
	h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription("how long jobs took from their start to their end, waits included"),
		metric.WithExplicitBucketBoundaries(0.01, 0.1, 1, 10, 60, 600, 3600, 6*3600, 24*3600))
	if err != nil {
		h, _ = noop.Meter{}.Float64Histogram(name) // never fails
	}
	return h
}

// recordOutcome adds a span to the trace of an ended job that says how it ended, also if
// it never ran or ended in another process than it began in.
func (q *Queue) recordOutcome(ctx context.Context, j Job) {
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{}) // not that of who cancelled it
	began := j.Started
	if began.IsZero() {
		began = j.Created
	}
	joined, id := q.options.Traces.Join(ctx, j.ID, j.origin, true)
	if id != j.TraceID { // its latest run began later than its submitter
		joined, _ = q.options.Traces.Join(ctx, j.ID, j.origin, false)
	}
	status := attribute.String("job.status", string(j.State))
	_, span := q.options.Tracer.Start(joined, strings.TrimSpace("job "+j.Name), trace.WithTimestamp(began), trace.WithAttributes(
		attribute.String("job.id", j.ID), status, attribute.String("job.name", j.Name), attribute.String("script.hash", j.Hash)))
	if j.Error != nil {
		span.SetAttributes(attribute.String("error.type", string(j.Error.Code)))
		span.SetStatus(codes.Error, redact.Cut(redact.Text(j.Error.Message), 500))
	}
	span.End(trace.WithTimestamp(cmp.Or(j.Finished, began)))
	q.durations.Record(joined, max(j.Finished.Sub(began).Seconds(), 0), metric.WithAttributes(status))
}
