package db

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// cancelTimeout is how long the server may take to cancel a statement before the connection
// is closed. Tests use a longer time.
var cancelTimeout = 2 * time.Second

// cancelOnServer makes connections cancel a statement at the server when its ctx ends, and stay
// open. A connection that listens runs no statement, so there only the wait ends.
func cancelOnServer(config *pgx.ConnConfig) {
	config.Tracer = listenTracer{}
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { return &cancelHandler{conn: c} }
}

const listens = "listens"

// listenTracer marks the connections that listen.
type listenTracer struct{}

func (listenTracer) TraceQueryStart(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, "LISTEN ") {
		c.PgConn().CustomData()[listens] = true
	}
	return ctx
}

func (listenTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// cancelHandler handles the end of the ctx that a connection is used with.
type cancelHandler struct {
	conn *pgconn.PgConn
	ctxwatch.Handler
}

func (e *cancelHandler) HandleCancel(ctx context.Context) {
	e.Handler = &pgconn.CancelRequestContextWatcherHandler{Conn: e.conn, DeadlineDelay: cancelTimeout}
	if e.conn.CustomData()[listens] != nil {
		e.Handler = &pgconn.DeadlineContextWatcherHandler{Conn: e.conn.Conn()}
	}
	e.Handler.HandleCancel(ctx)
}
