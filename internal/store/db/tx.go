package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/luanette/luanette/internal/base/queue"
)

// Tx is a transaction. It is valid only until the function it was passed to returns.
type Tx struct {
	tx      *sql.Tx
	dialect dialect
	// shared means that other Writes are part of the same transaction. SQLite rolls
	// all of it back when a statement is interrupted, so none is.
	shared  bool
	wrote   bool   // or may have
	notes   []note // sent after the commit
	failure error  // the first error of a statement, even if the function ignored it

	statements, failing int // Options.InjectFaults: how many there were, and which one fails
}

// Now is the time of the database server, the same for all nodes. Use it for leases
// and deadlines that other nodes compare.
func (t *Tx) Now(ctx context.Context) (time.Time, error) { return t.dialect.now(ctx, t) }

// Exec runs a statement that returns no rows, and returns how many rows it changed.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	if ctx, err = t.statement(ctx); err != nil {
		return 0, err
	}
	t.wrote = true
	result, err := t.tx.ExecContext(ctx, query, args...)
	if err == nil {
		changed, err = result.RowsAffected()
	}
	return changed, t.explain(ctx, err)
}

// Query runs a statement that returns rows, which the caller closes; All is
// often shorter.
func (t *Tx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	ctx, err := t.statement(ctx)
	if err != nil {
		return nil, err
	}
	t.wrote = t.wrote || !onlyReads(query)
	rows, err := t.tx.QueryContext(ctx, query, args...)
	return rows, t.explain(ctx, err)
}

// QueryRow runs a statement that returns at most one row. Its errors, and
// sql.ErrNoRows when there is none, come from Scan.
func (t *Tx) QueryRow(ctx context.Context, query string, args ...any) Row {
	return Row{func(dest ...any) error {
		ctx, err := t.statement(ctx)
		if err != nil {
			return err
		}
		t.wrote = t.wrote || !onlyReads(query)
		return t.explain(ctx, t.tx.QueryRowContext(ctx, query, args...).Scan(dest...))
	}}
}

// statement prepares ctx for one statement, or returns why it must not run.
func (t *Tx) statement(ctx context.Context) (context.Context, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if t.statements++; t.statements == t.failing {
		return nil, errInjected
	}
	if t.shared {
		return context.WithoutCancel(ctx), nil
	}
	return ctx, nil
}

// explain makes an error of the database one of this package. If ctx has ended, its
// cause comes first.
func (t *Tx) explain(ctx context.Context, err error) error {
	if t.failure == nil && err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.failure = err
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return t.dialect.explain(err)
}

// Scanner is a row: a Row, or the current one of *sql.Rows.
type Scanner interface {
	Scan(dest ...any) error
}

// Row is the result of QueryRow, whose statement runs with Scan.
type Row struct{ scan func(dest ...any) error }

// Scan reads the row's columns into dest.
func (r Row) Scan(dest ...any) error { return r.scan(dest...) }

// All runs a query and reads all its rows, each by scan.
func All[T any](ctx context.Context, tx *Tx, scan func(Scanner) (T, error), query string, args ...any) (_ []T, err error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, tx.explain(ctx, rows.Err())
}

// Column scans rows of one column, for All and Find.
func Column[T any](row Scanner) (value T, err error) { return value, row.Scan(&value) }

// Micros scans a time that is stored as microseconds since 1970, as UTC. Zero and NULL are the zero
// time.
func Micros(t *time.Time) sql.Scanner { return (*micros)(t) }

type micros time.Time

// Scan sets the time.
func (m *micros) Scan(value any) error {
	var number sql.NullInt64
	if err := number.Scan(value); err != nil {
		return err
	}
	*m = micros{}
	if number.Int64 != 0 {
		*m = micros(time.UnixMicro(number.Int64).UTC())
	}
	return nil
}

// UnixMicro is a time as Micros scans it.
func UnixMicro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Find is All in a Read of its own.
func Find[T any](ctx context.Context, d *DB, scan func(Scanner) (T, error), query string, args ...any) (all []T, err error) {
	err = d.Read(ctx, func(tx *Tx) (err error) {
		all, err = All(ctx, tx, scan, query, args...)
		return err
	})
	return all, err
}

// QueryRow is Tx.QueryRow in a Read of its own.
func (d *DB) QueryRow(ctx context.Context, query string, args ...any) Row {
	return Row{func(dest ...any) error {
		return d.Read(ctx, func(tx *Tx) error { return tx.QueryRow(ctx, query, args...).Scan(dest...) })
	}}
}

// Exec is Tx.Exec in a Write of its own.
func (d *DB) Exec(ctx context.Context, query string, args ...any) error {
	_, err := d.Change(ctx, query, args...)
	return err
}

// Change is Exec that returns how many rows it changed.
func (d *DB) Change(ctx context.Context, query string, args ...any) (changed int64, err error) {
	err = d.Write(ctx, func(tx *Tx) error {
		changed, err = tx.Exec(ctx, query, args...)
		return err
	})
	return changed, err
}

func doing(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

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

	begin  = "BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL " + idle + ";"
	idle   = "idle_in_transaction_session_timeout = 10000"
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
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
		defer cancel()
		ctx = limited
	}
	errRunning := lost{errors.New("the transaction is still running")}
	var status, life string
	err := p.whileUnreachable(ctx, func() error {
		err := p.all.QueryRow(ctx, "SELECT coalesce(pg_xact_status($1::TEXT::xid8), ''), life FROM db_lives", d.number).Scan(&status, &life)
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

// A commit waits for the disk, which costs far more than a statement, so writers share
// commits. The first one opens a transaction. If others are queued when it has done its
// part, it queues again at the end; those before it do their parts in the same
// transaction, and then it commits for all. Each part has a savepoint, so a failing one
// does not affect the others. A single writer commits at once.
const (
	line     = "write" // the key of the only lane
	maxGroup = 256     // parts per commit: bounds how long the first part waits
)

type groupWriter struct {
	db      *sql.DB
	dialect dialect
	turns   *queue.Lanes

	// Used only inside the lane.
	open   *group // nil when no transaction is open
	closed bool
}

func newGroupWriter(db *sql.DB, d dialect) *groupWriter {
	return &groupWriter{db: db, dialect: d, turns: queue.NewLanes(queue.LaneOptions{Depth: math.MaxInt})}
}

// write does one part. The writer that opened the group commits it, even when its own
// part fails or panics: hence the defer.
func (w *groupWriter) write(ctx context.Context, f func(*Tx) error) (err error) {
	var g *group
	var first bool
	defer func() {
		if g == nil {
			return
		}
		if first {
			w.settle(ctx, g)
		}
		<-g.done // a refusal may be about what another part wrote, and that is not stored before
		if err == nil {
			err = g.err
		}
	}()
	return w.turns.Do(ctx, line, func(ctx context.Context) (err error) {
		if g, first, err = w.join(ctx); err != nil {
			return err
		}
		defer func() {
			if w.open == g && (w.turns.Len(line) == 1 || g.parts >= maxGroup) {
				w.commit(g)
			}
		}()
		return w.part(ctx, g, f)
	})
}

// join returns the open group, or a new one.
func (w *groupWriter) join(ctx context.Context) (g *group, first bool, err error) {
	switch {
	case w.closed:
		return nil, false, errClosed()
	case w.open != nil:
		return w.open, false, nil
	}
	tx, err := w.db.BeginTx(context.WithoutCancel(ctx), nil) // it outlives the first writer's ctx
	if err != nil {
		return nil, false, doing("begin write", err)
	}
	w.open = &group{tx: tx, done: make(chan struct{})}
	return w.open, true, nil
}

// part runs f in a savepoint of g.
func (w *groupWriter) part(ctx context.Context, g *group, f func(*Tx) error) (err error) {
	g.parts++
	if err := g.run(ctx, "SAVEPOINT part"); err != nil {
		return w.abandon(g, err)
	}
	released := false
	defer func() {
		if released {
			return
		}
		if undo := g.run(ctx, "ROLLBACK TO part; RELEASE part"); undo != nil {
			err = errors.Join(err, w.abandon(g, undo))
		}
	}()
	if err := f(&Tx{tx: g.tx, dialect: w.dialect, shared: true}); err != nil {
		return err
	}
	if err := g.run(ctx, "RELEASE part"); err != nil {
		return doing("end write", err)
	}
	released = true
	return nil
}

// settle commits g unless that is done. It ignores the end of ctx, because other
// writers wait for g.
func (w *groupWriter) settle(ctx context.Context, g *group) {
	select {
	case <-g.done:
		return
	default:
	}
	_ = w.turns.Do(context.WithoutCancel(ctx), line, func(context.Context) error {
		if w.open == g {
			w.commit(g)
		}
		return nil
	})
}

func (w *groupWriter) commit(g *group) {
	if err := g.tx.Commit(); err != nil {
		g.err = doing("commit", err)
	}
	w.end(g)
}

// abandon rolls all of g back: the database has lost the transaction, or cannot roll
// back one part of it.
func (w *groupWriter) abandon(g *group, cause error) error {
	_ = g.tx.Rollback() // cause is the error to report
	g.err = fmt.Errorf("transaction was rolled back: %w", cause)
	w.end(g)
	return g.err
}

func (w *groupWriter) end(g *group) {
	w.open = nil
	close(g.done)
}

// close commits the open group, if there is one, and closes the connection.
func (w *groupWriter) close() error {
	return w.turns.Do(context.Background(), line, func(context.Context) error {
		if w.open != nil {
			w.commit(w.open)
		}
		w.closed = true
		return w.db.Close()
	})
}

// group is a transaction that several writers share.
type group struct {
	tx    *sql.Tx
	parts int
	done  chan struct{} // closed when err is final
	err   error
}

func (g *group) run(ctx context.Context, statement string) error {
	_, err := g.tx.ExecContext(context.WithoutCancel(ctx), statement)
	return err
}
