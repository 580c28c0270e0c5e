package audit

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// export passes stored entries to Options.Export, in the trace of what they are about.
func (l *Log) export(ctx context.Context, entries []Entry) {
	if l.options.Export == nil {
		return
	}
	for i := range entries {
		e := &entries[i]
		_ = l.options.Export.Handle(e.inTrace(ctx), e.record()) // the exporter reports what it cannot send
	}
}

// record is the entry as a log record: a warning if it was refused.
func (e *Entry) record() slog.Record {
	level := slog.LevelInfo
	if e.Decision == "deny" {
		level = slog.LevelWarn
	}
	r := slog.NewRecord(e.At, level, "audit: "+e.Action+" "+e.Subject, 0)
	r.AddAttrs(slog.String("audit.node", e.Node), slog.Int64("audit.seq", e.Seq), slog.Int64("audit.size", e.Size), slog.Int64("audit.took_us", e.Took))
	for _, field := range [][2]string{
		{"audit.who", e.Who}, {"audit.name", e.Name}, {"audit.org", e.Org}, {"audit.for", e.For}, {"audit.by", e.By}, {"audit.grant", e.Grant}, {"audit.client", e.Client}, {"audit.agent", e.Agent},
		{"audit.action", e.Action}, {"audit.subject", e.Subject}, {"audit.args", e.Args}, {"audit.decision", e.Decision}, {"audit.rule", e.Rule},
		{"audit.error", e.Error}, {"audit.prev", e.Prev}, {"audit.hash", e.Hash},
	} {
		if field[1] != "" {
			r.AddAttrs(slog.String(field[0], field[1]))
		}
	}
	return r
}

// inTrace returns ctx in the span of what the entry is about.
func (e *Entry) inTrace(ctx context.Context) context.Context {
	id, err := trace.TraceIDFromHex(e.Trace)
	span, invalid := trace.SpanIDFromHex(e.Request)
	if err != nil || invalid != nil {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled}))
}
