package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// The statements that begin a transaction on Postgres. A writing one reads its
// transaction id, by which its outcome can be looked up later. A transaction that
// conflicted before takes the exclusive lock, so that it cannot conflict again; taking
// a table lock does not fix the snapshot, so it sees what was committed before. A
// process that is frozen while it holds the lock is disconnected by the idle timeout.
// The lock timeout is shorter than the second after which Postgres checks for
// deadlocks: a transaction that had to wait for a row is run again anyway.
const (
	beginRead      = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	beginWrite     = begin + "SET LOCAL lock_timeout = 500; LOCK TABLE db_turns IN ROW SHARE MODE;" + number
	beginExclusive = begin + "SET LOCAL lock_timeout = 5000; LOCK TABLE db_turns IN EXCLUSIVE MODE;" + number

	begin  = "BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL idle_in_transaction_session_timeout = 10000;"
	number = "SELECT pg_current_xact_id()::TEXT"

	commitTimeout = 30 * time.Second
)

// inDoubt means that the connection was lost during a commit.
type inDoubt struct {
	error
	number string // of the transaction
	life   string // of the server it ran on
}

func (d inDoubt) Unwrap() error { return d.error }

// readServerLife reads the id of the server's current life. The table is unlogged, so
// a crash empties it and the next connection creates a new id. While the id is the
// same, transaction ids are still valid.
func readServerLife(ctx context.Context, conn *pgx.Conn) error {
	var life string
	err := conn.QueryRow(ctx, `WITH made AS (
		INSERT INTO db_lives (one, life) VALUES (1, gen_random_uuid()::TEXT) ON CONFLICT DO NOTHING RETURNING life
	) SELECT life FROM made UNION ALL SELECT life FROM db_lives LIMIT 1`).Scan(&life)
	if errors.Is(err, pgx.ErrNoRows) { // another connection has just inserted it
		err = conn.QueryRow(ctx, "SELECT life FROM db_lives").Scan(&life)
	}
	conn.PgConn().CustomData()["life"] = life
	return err
}

// pgConnector opens connections of the pool.
type pgConnector struct {
	driver.Connector
	wait func(context.Context, func() error) error
}

// Connect opens a connection, and waits for an unreachable server.
func (c pgConnector) Connect(ctx context.Context) (driver.Conn, error) {
	var conn driver.Conn
	err := c.wait(ctx, func() (err error) {
		conn, err = c.Connector.Connect(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &pgConn{Conn: conn.(*stdlib.Conn)}, nil
}

// pgConn is a connection that begins and ends transactions itself. Like any driver's
// it is used by one goroutine at a time.
type pgConn struct {
	*stdlib.Conn
	exclusive bool   // the next transaction locks out other writers
	number    string // of the transaction
}

// BeginTx begins a transaction.
func (c *pgConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	statement := beginWrite
	switch {
	case o.ReadOnly:
		statement = beginRead
	case c.exclusive:
		statement = beginExclusive
	}
	results, err := c.Conn.Conn().PgConn().Exec(ctx, statement).ReadAll()
	if err != nil {
		if c.isLost() && ctx.Err() == nil {
			return nil, driver.ErrBadConn // database/sql retries on another connection
		}
		_ = c.Rollback() //nolint:contextcheck // it may have begun; err is the error to report
		return nil, err
	}
	if !o.ReadOnly {
		c.number = string(results[len(results)-1].Rows[0][0])
	}
	return c, nil
}

// Commit returns when the transaction is on disk. The error is inDoubt if it may be.
func (c *pgConn) Commit() error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	results, err := c.Conn.Conn().PgConn().Exec(ctx, "COMMIT").ReadAll()
	switch {
	case err != nil && c.isLost():
		life, _ := c.Conn.Conn().PgConn().CustomData()["life"].(string)
		return inDoubt{err, c.number, life}
	case err != nil:
		return err
	case results[0].CommandTag.String() != "COMMIT":
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// Rollback rolls back. The server does so itself when the connection is lost.
func (c *pgConn) Rollback() error {
	if c.isLost() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	_, err := c.Conn.Conn().PgConn().Exec(ctx, "ROLLBACK").ReadAll()
	if c.isLost() {
		return nil
	}
	return err
}

// ExecContext runs a statement.
func (c *pgConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.mark(ctx, err)
}

// QueryContext runs a statement that returns rows.
func (c *pgConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, query, args)
	return rows, c.mark(ctx, err)
}

// mark wraps the error of a lost connection.
func (c *pgConn) mark(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || !c.isLost() {
		return err
	}
	return lost{err}
}

// mustRollback reports whether the transaction can only be rolled back.
func (c *pgConn) mustRollback() bool { return c.isLost() || c.Conn.Conn().PgConn().TxStatus() != 'T' }

func (c *pgConn) isLost() bool { return c.Conn.Conn().IsClosed() }

// commitOutcome looks up a transaction whose commit is in doubt: nil means that it was
// committed, lost that it was not.
func (p *postgres) commitOutcome(ctx context.Context, d inDoubt) error {
	if ctx.Value(outagesKey{}) == nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.outageTimeout)
		defer cancel()
		ctx = limited
	}
	errRunning := lost{errors.New("the transaction is still running")}
	var status, life string
	err := p.whileUnreachable(ctx, func() error {
		err := p.all.current().QueryRow(ctx, "SELECT coalesce(pg_xact_status($1::TEXT::xid8), ''), life FROM db_lives", d.number).Scan(&status, &life)
		if e := (*pgconn.PgError)(nil); errors.As(err, &e) && e.Code == "22023" { // an id that was not assigned yet
			status, err = "aborted", nil
		}
		if err == nil && status == "in progress" && life == d.life {
			return errRunning
		}
		return err
	})
	switch {
	case err != nil:
		return errors.Join(ErrCommitUnknown, d.error, err)
	case status == "committed" && life == d.life:
		return nil
	case status == "aborted", status == "in progress": // after a crash the id belongs to another transaction
		return lost{d.error}
	}
	return errors.Join(ErrCommitUnknown, d.error)
}
