package db

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// calledOff is how long the server may take to cancel a statement before the connection
// is closed. Tests use a longer time.
var calledOff = 2 * time.Second

// callOff makes connections cancel a statement at the server when its ctx ends, and stay
// open. A connection that listens runs no statement, so there only the wait ends.
func callOff(config *pgx.ConnConfig) {
	config.Tracer = ears{}
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { return &ending{conn: c} }
}

const listens = "listens"

// ears marks the connections that listen.
type ears struct{}

func (ears) TraceQueryStart(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, "LISTEN ") {
		c.PgConn().CustomData()[listens] = true
	}
	return ctx
}

func (ears) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// ending handles the end of the ctx that a connection is used with.
type ending struct {
	conn *pgconn.PgConn
	ctxwatch.Handler
}

func (e *ending) HandleCancel(ctx context.Context) {
	e.Handler = &pgconn.CancelRequestContextWatcherHandler{Conn: e.conn, DeadlineDelay: calledOff}
	if e.conn.CustomData()[listens] != nil {
		e.Handler = &pgconn.DeadlineContextWatcherHandler{Conn: e.conn.Conn()}
	}
	e.Handler.HandleCancel(ctx)
}
