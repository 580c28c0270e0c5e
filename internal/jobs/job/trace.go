package job

import "context"

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
