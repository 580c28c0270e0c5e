package db

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// calledOff is how long the server may take to end a statement that nobody waits for
// any more, before the connection is given up. Tests are more patient.
var calledOff = 2 * time.Second

// callOff has a statement whose ctx ends called off at the server; the connection
// stays. One that listens waits for no statement, so nothing would come of it: there
// the wait just ends.
func callOff(config *pgx.ConnConfig) {
	config.Tracer = ears{}
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { return &ending{conn: c} }
}

const listens = "listens"

// ears note which connections listen.
type ears struct{}

func (ears) TraceQueryStart(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, "LISTEN ") {
		c.PgConn().CustomData()[listens] = true
	}
	return ctx
}

func (ears) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// ending is what happens to a connection when the ctx of its user ends.
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
