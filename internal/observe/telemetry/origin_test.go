package telemetry

import (
	"net/http"
	"strings"
	"testing"
)

const (
	jobID     = "0af76519-16cd-43dd-8448-eb211c80319c"
	callersID = "11112222333344445555666677778888"
)

// A job that starts at once is part of the trace of its submitter, and its upstreams get
// the caller's span.
func TestAJobContinuesTheTrace(t *testing.T) {
	t.Parallel()
	tel := setupInMemory(t, Options{RecentTraces: 3})
	caller := "00-" + callersID + "-aaaabbbbccccdddd-01"
	ctx, outer := tel.Tracer("x").Start(Extract(t.Context(), http.Header{"Traceparent": {caller}}), "request")
	origin := JobTraces{}.Origin(ctx)

	ctx, id := JobTraces{}.Join(t.Context(), jobID, origin, true)
	ctx, span := tel.Tracer("x").Start(ctx, "job")
	sent := http.Header{}
	Inject(ctx, sent)
	AddLink(ctx, span)
	span.End()
	outer.End()
	if id != callersID || span.SpanContext().TraceID().String() != callersID {
		t.Errorf("the job's trace is %s, its span is in %s", id, span.SpanContext().TraceID())
	}
	if got := sent.Get("Traceparent"); got != caller {
		t.Errorf("upstreams get %q, want the caller's span", got)
	}
	whole, _ := tel.Traces().Get(t.Context(), callersID)
	if len(whole.Spans) != 2 || whole.Spans[1].Parent != outer.SpanContext().SpanID().String() || len(whole.Spans[1].Links) != 0 {
		t.Errorf("stored spans %+v", whole.Spans)
	}
}

// A job that starts later has its own trace, with a link.
func TestALaterJobLinksToTheTrace(t *testing.T) {
	t.Parallel()
	tel := setupInMemory(t, Options{RecentTraces: 3})
	ctx, outer := tel.Tracer("x").Start(t.Context(), "request")
	origin := JobTraces{}.Origin(ctx)
	outer.End()

	ctx, id := JobTraces{}.Join(t.Context(), jobID, origin, false)
	ctx, span := tel.Tracer("x").Start(ctx, "job")
	AddLink(ctx, span)
	span.End()
	if want := strings.ReplaceAll(jobID, "-", ""); id != want || span.SpanContext().TraceID().String() != want {
		t.Errorf("the job's trace is %s, its span is in %s", id, span.SpanContext().TraceID())
	}
	whole, _ := tel.Traces().Get(t.Context(), id)
	want := SpanLink{Trace: outer.SpanContext().TraceID().String(), Span: outer.SpanContext().SpanID().String()}
	if len(whole.Spans) != 1 || len(whole.Spans[0].Links) != 1 || whole.Spans[0].Links[0] != want {
		t.Errorf("stored spans %+v, want a link to %+v", whole.Spans, want)
	}
	for _, bad := range []string{"", "x", "00-00-00-00 y", strings.Repeat("9", 999)} {
		if _, id := (JobTraces{}).Join(t.Context(), jobID, bad, true); id != TraceID(jobID) {
			t.Errorf("origin %q: trace %s", bad, id)
		}
	}
}
