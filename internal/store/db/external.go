package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// External gives a library that has its own tables access to the database. Either SQL
// or Postgres is set. The caller closes it before the database; the library may do so too.
type External struct {
	// SQL is SQLite. Its transactions are queued with the Writes and share their
	// commits, so that neither finds the database busy; single SELECTs are Reads. A
	// query reads all its rows before it returns the first.
	SQL *sql.DB
	// Postgres is a pool for the library, and Schema the name of a schema for it alone.
	Postgres *pgxpool.Pool
	Schema   string
	// Exclusive runs f, which creates the library's tables, in one process at a time.
	Exclusive func(ctx context.Context, f func() error) error
}

// Close closes the library's access.
func (g External) Close() error {
	if g.Postgres == nil {
		return g.SQL.Close()
	}
	g.Postgres.Close()
	return nil
}

// External opens the database for a library.
func (d *DB) External(ctx context.Context) (External, error) {
	if d.closed.Load() {
		return External{}, errClosed()
	}
	return d.dialect.external(ctx, d)
}

func (*sqliteFile) external(_ context.Context, d *DB) (External, error) {
	alone := func(_ context.Context, f func() error) error { return f() } // only one process uses the file's tables
	return External{SQL: sql.OpenDB(shimConnector{d}), Exclusive: alone}, nil
}

// shimConnector makes connections that hold no resources: each statement and
// transaction is a Read or Write of the store.
type shimConnector struct{ db *DB }

func (e shimConnector) Connect(context.Context) (driver.Conn, error) { return &shimConn{db: e.db}, nil }

func (e shimConnector) Driver() driver.Driver { return e }

// Open is required by driver.Driver and not used.
func (e shimConnector) Open(string) (driver.Conn, error) { return &shimConn{db: e.db}, nil }

// shimConn is a connection of that pool.
type shimConn struct {
	db *DB
	tx *shimTx
}

// shimTx is a transaction of the library: a Write whose function waits until the
// library commits or rolls back.
type shimTx struct {
	tx      *Tx
	finish  chan error // nil commits
	outcome chan error // what Write returned
}

// errRolledBack makes the Write roll back.
var errRolledBack = errors.New("rolled back")

// BeginTx waits until the Write runs. Any isolation level is satisfied: writers never
// run concurrently.
func (g *shimConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	v := &shimTx{finish: make(chan error), outcome: make(chan error, 1)}
	entered := make(chan *Tx)
	go func() {
		v.outcome <- g.db.Write(ctx, func(tx *Tx) error {
			entered <- tx
			return <-v.finish
		})
	}()
	select {
	case v.tx = <-entered:
		g.tx = v
		return g, nil
	case err := <-v.outcome:
		return nil, err
	}
}

// Begin is BeginTx for callers without a context.
func (g *shimConn) Begin() (driver.Tx, error) {
	return g.BeginTx(context.Background(), driver.TxOptions{})
}

// Commit returns when the transaction is on disk.
func (g *shimConn) Commit() error { return g.end(nil) }

// Rollback undoes the transaction.
func (g *shimConn) Rollback() error {
	if err := g.end(errRolledBack); !errors.Is(err, errRolledBack) {
		return err
	}
	return nil
}

func (g *shimConn) end(how error) error {
	v := g.tx
	g.tx = nil
	v.finish <- how
	return <-v.outcome
}

// ExecContext runs statements in the transaction, or in one of their own.
func (g *shimConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if g.tx != nil {
		n, err := g.tx.tx.Exec(ctx, query, unnamed(args)...)
		return driver.RowsAffected(n), err
	}
	var n int64
	err := g.db.Write(ctx, func(tx *Tx) (err error) {
		n, err = tx.Exec(ctx, query, unnamed(args)...)
		return err
	})
	return driver.RowsAffected(n), err
}

// QueryContext runs a statement that returns rows.
func (g *shimConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	found := &shimRows{}
	read := func(tx *Tx) error { return found.fill(ctx, tx, query, unnamed(args)) }
	switch {
	case g.tx != nil:
		return found, read(g.tx.tx)
	case onlyReads(query):
		return found, g.db.Read(ctx, read)
	default:
		return found, g.db.Write(ctx, read)
	}
}

// onlyReads is true for a plain SELECT. Other statements that return rows may write.
func onlyReads(query string) bool {
	query = strings.TrimSpace(query)
	return len(query) > 6 && strings.EqualFold(query[:6], "SELECT")
}

// Prepare only stores the text: the store caches prepared statements itself.
func (g *shimConn) Prepare(query string) (driver.Stmt, error) { return &shimStmt{g, query}, nil }

// Close does nothing.
func (g *shimConn) Close() error { return nil }

func unnamed(args []driver.NamedValue) []any {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
		if arg.Name != "" {
			values[i] = sql.Named(arg.Name, arg.Value)
		}
	}
	return values
}

// shimStmt is a prepared statement.
type shimStmt struct {
	conn  *shimConn
	query string
}

func (p *shimStmt) Close() error { return nil }

// NumInput leaves the check of the number of arguments to the database.
func (p *shimStmt) NumInput() int { return -1 }

func (p *shimStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return p.conn.ExecContext(ctx, p.query, args)
}

func (p *shimStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return p.conn.QueryContext(ctx, p.query, args)
}

// Exec and Query are required by driver.Stmt. database/sql calls the variants with a
// context instead.
func (p *shimStmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (p *shimStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

// shimRows are the rows of a query, all read before.
type shimRows struct {
	columns []string
	rows    [][]any
	next    int
}

func (p *shimRows) fill(ctx context.Context, tx *Tx, query string, args []any) (err error) {
	p.rows = nil
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if p.columns, err = rows.Columns(); err != nil {
		return err
	}
	for rows.Next() {
		row, into := make([]any, len(p.columns)), make([]any, len(p.columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		p.rows = append(p.rows, row)
	}
	return tx.explain(ctx, rows.Err())
}

func (p *shimRows) Columns() []string { return p.columns }

func (p *shimRows) Close() error { return nil }

func (p *shimRows) Next(into []driver.Value) error {
	if p.next == len(p.rows) {
		return io.EOF
	}
	for i, value := range p.rows[p.next] {
		into[i] = value
	}
	p.next++
	return nil
}

var (
	_ driver.ConnBeginTx      = (*shimConn)(nil)
	_ driver.ExecerContext    = (*shimConn)(nil)
	_ driver.QueryerContext   = (*shimConn)(nil)
	_ driver.StmtExecContext  = (*shimStmt)(nil)
	_ driver.StmtQueryContext = (*shimStmt)(nil)
)
