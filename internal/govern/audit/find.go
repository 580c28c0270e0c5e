package audit

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
)

// Filter selects entries. Zero fields select all.
type Filter struct {
	Since, Until time.Time
	Org          string
	Who          string // id or name
	Tool         string // the subject; * stands for any characters
	Decision     string
	NotOwn       bool // without the reads of our own page
	Node         string
	After        int64 // with Node: entries after this one, in the order of the chain
	// Links adds the entries of other organisations for those who see those of theirs, as links of
	// the chain: their numbers and hashes alone. It is for a whole chain, without other filters.
	Links bool
	Limit int // 0 is 100
}

// Find lists entries that the principal of ctx sees, the newest first; with Node in the
// order of the node's chain.
// Entries that cannot be decoded are left out: Verify reports them.
func (s *Store) Find(ctx context.Context, f Filter) (list []Entry, err error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	who, order := principal.Of(ctx), `at DESC, node DESC, seq DESC` // as the index has it
	where := f.visible(s.db.Kind(), who)
	if f.Node != "" {
		order = `seq`
	}
	query := fmt.Sprintf(`SELECT entry FROM audit_log%s ORDER BY %s LIMIT %d`, where.String(), order, f.Limit)
	var texts []string
	texts, err = db.Find(ctx, s.db, db.Column[string], query, where.args...)
	for _, text := range texts {
		e, err := decode(text)
		if err != nil {
			continue
		}
		if f.Links && e.Org != who.Org {
			e = e.link()
		}
		list = append(list, e)
	}
	return list, reading(err)
}

// visible are the conditions of the filter for what a principal sees. Links are of all entries.
func (f *Filter) visible(kind db.Kind, who principal.Principal) conditions {
	f.Links = f.Links && f.Node != "" && who.SeesOrg() && !who.SeesAll()
	if f.Links {
		return (&Filter{Node: f.Node, After: f.After}).conditions(kind)
	}
	where := f.conditions(kind)
	where.visibleTo(who)
	return where
}

// conditions are the WHERE clause of a filter.
func (f *Filter) conditions(kind db.Kind) (where conditions) {
	if f.Node != "" {
		where.add(`node = ? AND seq > ?`, f.Node, f.After)
	}
	if !f.Since.IsZero() {
		where.add(`at >= ?`, microsecondsUp(f.Since))
	}
	if !f.Until.IsZero() {
		where.add(`at < ?`, microsecondsUp(f.Until))
	}
	if f.Org != "" {
		where.add(`org = ? AND org <> ''`, column(f.Org)) // the second part makes the database use the index
	}
	if f.Who != "" {
		where.add(`(who = ? OR name = ?)`, column(f.Who), column(f.Who))
	}
	if f.Decision != "" {
		where.add(`decision = ?`, column(f.Decision))
	}
	if f.NotOwn {
		where.add(`own = 0`)
	}
	switch {
	case f.Tool == "":
	case !strings.Contains(f.Tool, "*"):
		where.add(`subject = ?`, column(f.Tool))
	case kind == db.Postgres:
		where.add(`subject LIKE ?`, strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`).Replace(column(f.Tool)))
	default: // LIKE ignores case on SQLite
		where.add(`subject GLOB ?`, strings.NewReplacer(`?`, `[?]`, `[`, `[[]`).Replace(column(f.Tool)))
	}
	return where
}

// visibleTo selects the entries that a principal sees, as principal.Sees has it.
func (c *conditions) visibleTo(who principal.Principal) {
	switch {
	case who.SeesAll():
	case who.Person != "": // entries have no column for it
		c.add(`1 = 0`)
	case who.SeesOrg():
		c.add(`org = ? AND org <> ''`, column(who.Org))
	case who.Org != "":
		c.add(`who = ? AND org = ?`, column(who.ID), column(who.Org))
	default:
		c.add(`who = ?`, column(who.ID))
	}
}

// microsecondsUp rounds up: stored times have no fraction of a microsecond.
func microsecondsUp(t time.Time) int64 { return t.Add(time.Microsecond - 1).UnixMicro() }

// conditions are combined with AND.
type conditions struct {
	all  []string
	args []any
}

// add adds a condition, in which each ? stands for the next value.
func (c *conditions) add(condition string, values ...any) {
	for _, v := range values {
		condition = strings.Replace(condition, "?", c.value(v), 1)
	}
	c.all = append(c.all, condition)
}

// value returns the placeholder of one more value.
func (c *conditions) value(v any) string {
	c.args = append(c.args, v)
	return fmt.Sprintf("$%d", len(c.args))
}

func (c *conditions) String() string {
	if len(c.all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.all, " AND ")
}

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
