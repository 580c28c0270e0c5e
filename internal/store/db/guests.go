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

	leave func() error
}

// Detach has the store go on without the pool that it shares.
func (g External) Detach() error {
	if g.leave == nil {
		return nil
	}
	return g.leave()
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
	return d.dialect.guests(ctx, d)
}

func (*sqliteFile) guests(_ context.Context, d *DB) (External, error) {
	alone := func(_ context.Context, f func() error) error { return f() } // one process at a time has the file's engine
	return External{SQL: sql.OpenDB(entrance{d}), Exclusive: alone}, nil
}

// entrance makes the pool's connections, which hold nothing and cost nothing.
type entrance struct{ db *DB }

func (e entrance) Connect(context.Context) (driver.Conn, error) { return &guest{db: e.db}, nil }

func (e entrance) Driver() driver.Driver { return e }

// Open is for drivers that are known by name, which this one is not.
func (e entrance) Open(string) (driver.Conn, error) { return &guest{db: e.db}, nil }

// guest is a connection of the pool. Within a transaction it has a visit.
type guest struct {
	db    *DB
	visit *visit
}

// visit is a guest's transaction: a Write whose function waits until the guest
// leaves.
type visit struct {
	tx      *Tx
	leave   chan error // nil to commit
	outcome chan error // what Write returned
}

// errLeft undoes a Write because its guest rolled back.
var errLeft = errors.New("rolled back")

// BeginTx waits for the turn. The isolation asked for is given: writers never
// run side by side.
func (g *guest) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	v := &visit{leave: make(chan error), outcome: make(chan error, 1)}
	entered := make(chan *Tx)
	go func() {
		v.outcome <- g.db.Write(ctx, func(tx *Tx) error {
			entered <- tx
			return <-v.leave
		})
	}()
	select {
	case v.tx = <-entered:
		g.visit = v
		return g, nil
	case err := <-v.outcome:
		return nil, err
	}
}

// Begin is BeginTx for callers without a context.
func (g *guest) Begin() (driver.Tx, error) {
	return g.BeginTx(context.Background(), driver.TxOptions{})
}

// Commit returns when the transaction is on disk.
func (g *guest) Commit() error { return g.end(nil) }

// Rollback undoes the transaction.
func (g *guest) Rollback() error {
	if err := g.end(errLeft); !errors.Is(err, errLeft) {
		return err
	}
	return nil
}

func (g *guest) end(how error) error {
	v := g.visit
	g.visit = nil
	v.leave <- how
	return <-v.outcome
}

// ExecContext runs statements, in the transaction or in one of their own.
func (g *guest) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if g.visit != nil {
		return g.visit.tx.Exec(ctx, query, plain(args)...)
	}
	var result sql.Result
	err := g.db.Write(ctx, func(tx *Tx) (err error) {
		result, err = tx.Exec(ctx, query, plain(args)...)
		return err
	})
	return result, err
}

// QueryContext runs a statement that returns rows.
func (g *guest) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	found := &page{}
	read := func(tx *Tx) error { return found.fill(ctx, tx, query, plain(args)) }
	switch {
	case g.visit != nil:
		return found, read(g.visit.tx)
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
func (g *guest) Prepare(query string) (driver.Stmt, error) { return &phrase{g, query}, nil }

// Close lets go of nothing.
func (g *guest) Close() error { return nil }

func plain(args []driver.NamedValue) []any {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
		if arg.Name != "" {
			values[i] = sql.Named(arg.Name, arg.Value)
		}
	}
	return values
}

// phrase is a prepared statement of a guest.
type phrase struct {
	guest *guest
	query string
}

func (p *phrase) Close() error { return nil }

// NumInput leaves the counting to the database.
func (p *phrase) NumInput() int { return -1 }

func (p *phrase) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return p.guest.ExecContext(ctx, p.query, args)
}

func (p *phrase) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return p.guest.QueryContext(ctx, p.query, args)
}

// Exec and Query are the old forms, which database/sql does not call when there
// are the ones above.
func (p *phrase) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (p *phrase) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

// page is the rows of a query, read already.
type page struct {
	columns []string
	rows    [][]any
	next    int
}

func (p *page) fill(ctx context.Context, tx *Tx, query string, args []any) (err error) {
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
	return tx.blame(ctx, rows.Err())
}

func (p *page) Columns() []string { return p.columns }

func (p *page) Close() error { return nil }

func (p *page) Next(into []driver.Value) error {
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
	_ driver.ConnBeginTx      = (*guest)(nil)
	_ driver.ExecerContext    = (*guest)(nil)
	_ driver.QueryerContext   = (*guest)(nil)
	_ driver.StmtExecContext  = (*phrase)(nil)
	_ driver.StmtQueryContext = (*phrase)(nil)
)
