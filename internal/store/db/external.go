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

// External is the database for a library that keeps its own tables there. One of
// the two is set; the caller closes it before the database. A library that closes
// the pool itself is told to end between Leave and Close.
type External struct {
	// SQL is SQLite. Its transactions take their turn among the Writes and share
	// their commits, so that neither side ever finds the database busy; single
	// SELECTs are Reads. Rows are read whole before the first is handed out.
	SQL *sql.DB
	// Postgres is the store's own pool, the first time it is asked for, and Schema
	// a name for the library's schema that nobody else uses. Each takes connections
	// for a moment and gives them back, and nobody waits for the other with one in
	// hand: so they cannot wait for each other in a circle.
	Postgres *pgxpool.Pool
	Schema   string
	// Exclusive runs what makes the library's tables, while no other process does.
	Exclusive func(ctx context.Context, f func() error) error

	detach func() error
}

// Detach has the store go on without the pool that it shares.
func (g External) Detach() error {
	if g.detach == nil {
		return nil
	}
	return g.detach()
}

// Close ends their stay.
func (g External) Close() error {
	if g.Postgres == nil {
		return g.SQL.Close()
	}
	err := g.Detach()
	g.Postgres.Close()
	return err
}

// External lets a library in.
func (d *DB) External(ctx context.Context) (External, error) {
	if d.closed.Load() {
		return External{}, errClosed()
	}
	return d.dialect.external(ctx, d)
}

func (*sqliteFile) external(_ context.Context, d *DB) (External, error) {
	alone := func(_ context.Context, f func() error) error { return f() } // one process at a time has the file's engine
	return External{SQL: sql.OpenDB(shimConnector{d}), Exclusive: alone}, nil
}

// shimConnector makes the pool's connections, which hold nothing and cost nothing.
type shimConnector struct{ db *DB }

func (e shimConnector) Connect(context.Context) (driver.Conn, error) { return &shimConn{db: e.db}, nil }

func (e shimConnector) Driver() driver.Driver { return e }

// Open is for drivers that are known by name, which this one is not.
func (e shimConnector) Open(string) (driver.Conn, error) { return &shimConn{db: e.db}, nil }

// shimConn is a connection of the pool. Within a transaction it has a visit.
type shimConn struct {
	db *DB
	tx *shimTx
}

// shimTx is a guest's transaction: a Write whose function waits until the guest
// leaves.
type shimTx struct {
	tx      *Tx
	finish  chan error // nil to commit
	outcome chan error // what Write returned
}

// errRolledBack undoes a Write because its guest rolled back.
var errRolledBack = errors.New("rolled back")

// BeginTx waits for the turn. The isolation asked for is given: writers never
// run side by side.
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

// ExecContext runs statements, in the transaction or in one of their own.
func (g *shimConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if g.tx != nil {
		return g.tx.tx.Exec(ctx, query, unnamed(args)...)
	}
	var result sql.Result
	err := g.db.Write(ctx, func(tx *Tx) (err error) {
		result, err = tx.Exec(ctx, query, unnamed(args)...)
		return err
	})
	return result, err
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

// onlyReads is sure of a plain SELECT; what else returns rows may write.
func onlyReads(query string) bool {
	query = strings.TrimSpace(query)
	return len(query) > 6 && strings.EqualFold(query[:6], "SELECT")
}

// Prepare keeps the text; the databases below keep what they compile.
func (g *shimConn) Prepare(query string) (driver.Stmt, error) { return &shimStmt{g, query}, nil }

// Close lets go of nothing.
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

// shimStmt is a prepared statement of a guest.
type shimStmt struct {
	conn  *shimConn
	query string
}

func (p *shimStmt) Close() error { return nil }

// NumInput leaves the counting to the database.
func (p *shimStmt) NumInput() int { return -1 }

func (p *shimStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return p.conn.ExecContext(ctx, p.query, args)
}

func (p *shimStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return p.conn.QueryContext(ctx, p.query, args)
}

// Exec and Query are the old forms, which database/sql does not call when there
// are the ones above.
func (p *shimStmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (p *shimStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

// shimRows is the rows of a query, read already.
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
