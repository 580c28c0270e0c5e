package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
)

// sqliteFile is a database in one file with a write-ahead log beside it: readers see the
// last commit while a writer writes.
type sqliteFile struct {
	path    string // absolute
	writers *sql.DB
}

func newSQLite(path string) (*sqliteFile, error) {
	if path == "" || strings.HasPrefix(path, ":") {
		return nil, fault.New(fault.Config, "open database sqlite:%s: not the path of a file", path).
			WithHint("use sqlite:PATH, for example sqlite:luanette.db")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "open database sqlite:%s", path)
	}
	return &sqliteFile{path: abs}, nil
}

func (s *sqliteFile) connect(ctx context.Context, o Options) (_ writer, readers *sql.DB, err error) {
	var writers *sql.DB
	if err := s.create(o.Initial); err != nil {
		return nil, nil, s.cannotOpen(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(writers, readers))
		}
	}()
	// The first connection creates the file and enables the log.
	if writers, err = s.pool(ctx, 1, o, "_txlock=immediate"); err != nil {
		return nil, nil, s.cannotOpen(err)
	}
	if readers, err = s.pool(ctx, o.Readers, o, "_query_only=1"); err != nil {
		return nil, readers, s.cannotOpen(err)
	}
	if err := s.damaged(readSchema(ctx, readers), fault.Config); err != nil {
		return nil, readers, err
	}
	s.writers = writers
	return newGroupWriter(writers, s), readers, nil
}

// create creates the file if it does not exist, readable only by its owner. SQLite gives
// the files beside it the same permissions.
func (s *sqliteFile) create(initial func() ([]byte, error)) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	if initial != nil && s.isNew() {
		if err := s.copyInitial(initial); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// isNew reports whether neither the file exists nor the log of one that was removed. SQLite
// discards such a log only if the file is empty.
func (s *sqliteFile) isNew() bool {
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if _, err := os.Stat(s.path + suffix); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// copyInitial creates the file with its first content, all at once. If another process was
// faster, or the file system has no links, it does nothing.
func (s *sqliteFile) copyInitial(initial func() ([]byte, error)) error {
	content, err := initial()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+".new-*") // readable only by its owner
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		_ = os.Link(f.Name(), s.path)
	}
	return err
}

// pool opens a pool of size connections and tries one.
func (s *sqliteFile) pool(ctx context.Context, size int, o Options, more string) (*sql.DB, error) {
	busy := o.OutageTimeout
	if busy <= 0 {
		busy = 5 * time.Second
	}
	// Data for rollbacks is kept in memory, as everything else of a transaction
	// that is not written yet. What is deleted is overwritten with zeros.
	const settings = "_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_pragma=temp_store(memory)&_pragma=secure_delete(fast)&"
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(s.path), RawQuery: fmt.Sprintf("_busy_timeout=%d&%s%s", busy.Milliseconds(), settings, more)}
	connector, err := sqlite.NewConnector(file.String())
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(cachingConnector{connector})
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, pool.PingContext(ctx)
}

func (s *sqliteFile) cannotOpen(err error) error {
	if err := s.damaged(err, fault.Config); err != nil {
		return err
	}
	return fault.Wrap(fault.Config, err, "open database sqlite:%s", s.path).
		WithHint("give a writable path, to a new file or to one that Luanette created")
}

func (s *sqliteFile) explain(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) || explained(err) {
		return err
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return fmt.Errorf("%w: %w", ErrUnique, err)
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return fmt.Errorf("%w: %w", ErrForeignKey, err)
	}
	switch e.Code() & 0xff { // the primary code, without the extended one
	case sqlite3.SQLITE_CONSTRAINT:
		return fmt.Errorf("%w: %w", ErrConstraint, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Wrap(fault.Unavailable, err, "the database is busy").
			WithHint("another program holds %s; try again when it is done", s.path)
	case sqlite3.SQLITE_FULL:
		return fault.Wrap(fault.Unavailable, unwritable{err}, "the disk is full").
			WithHint("free space on the disk of %s, then try again", s.path)
	case sqlite3.SQLITE_READONLY:
		return fault.Wrap(fault.Unavailable, unwritable{err}, "the database is read-only").
			WithHint("make %s and its folder writable for the user of the server", s.path)
	case sqlite3.SQLITE_IOERR:
		return fault.Wrap(fault.Unavailable, unwritable{err}, "the disk of the database fails").
			WithHint("check the disk of %s, and the quota of its user", s.path)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return s.damaged(err, fault.Internal)
	}
	return err
}

// explained reports whether err was returned by explain before.
func explained(err error) bool {
	var f *fault.Error
	return errors.As(err, &f)
}

func (s *sqliteFile) check(ctx context.Context, tx *Tx) error {
	problems, err := All(ctx, tx, Column[string], "SELECT integrity_check FROM pragma_integrity_check")
	if err != nil {
		return doing("check database", err)
	}
	orphans, err := All(ctx, tx, Column[string],
		`SELECT 'row ' || coalesce(rowid, '?') || ' of ' || "table" || ' refers to nothing in ' || parent
		 FROM pragma_foreign_key_check`)
	if err != nil {
		return doing("check database", err)
	}
	if len(problems) == 1 && problems[0] == "ok" {
		problems = nil
	}
	if problems = append(problems, orphans...); len(problems) == 0 {
		return nil
	}
	return fault.New(fault.Internal, "the database is damaged: %s", strings.Join(problems, "; ")).
		WithHint("restore %s from a backup", s.path)
}

func (*sqliteFile) migrations() goose.Dialect { return goose.DialectSQLite3 }

func (*sqliteFile) translate(migrations fs.FS) fs.FS { return migrations }

func (*sqliteFile) kind() Kind { return SQLite }

// migrating relies on SQLite's own lock, one migration at a time.
func (s *sqliteFile) migrating(_ context.Context, f func(*sql.DB) error) error { return f(s.writers) }

// now is this machine's time: all processes that share a file run on it.
func (*sqliteFile) now(context.Context, *Tx) (time.Time, error) { return time.Now(), nil }

// carrier returns nil: only one process serves from a file.
func (*sqliteFile) carrier(*broker) carrier { return nil }

func (*sqliteFile) close() error { return nil }

func closeAll(pools ...*sql.DB) (err error) {
	for _, p := range pools {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}

// readSchema reads the header, the list of tables and the versions of all sets of tables:
// what is damaged there makes everything else fail with errors that mislead.
func readSchema(ctx context.Context, pool *sql.DB) error {
	rows, err := pool.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'migrations_*'")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err has the error
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		tables = append(tables, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, name := range tables {
		var problem string
		if err := pool.QueryRowContext(ctx, "SELECT quick_check FROM pragma_quick_check($1)", name).Scan(&problem); err != nil {
			return err
		}
		if problem != "ok" {
			return damage(problem)
		}
	}
	return nil
}

// damage is what a check found.
type damage string

func (d damage) Error() string { return string(d) }

// damaged returns an error that names the last backup if err means that the file is
// damaged, else nil.
func (s *sqliteFile) damaged(err error, code fault.Code) error {
	var e *sqlite.Error
	var found damage
	if !errors.As(err, &found) && (!errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_CORRUPT && e.Code()&0xff != sqlite3.SQLITE_NOTADB) {
		return nil
	}
	backups, _ := filepath.Glob(filepath.Join(filepath.Dir(s.path), "backups", "*.backup")) // only the pattern can be wrong
	if len(backups) == 0 {
		return fault.Wrap(code, err, "the database %s is damaged", s.path).
			WithHint("restore a backup: luanette restore FILE --replace keeps what is there; without a backup, sqlite3 %s .recover may save some of it", s.path)
	}
	return fault.Wrap(code, err, "the database %s is damaged", s.path).
		WithHint("restore the last backup: luanette restore %s --replace", slices.Max(backups))
}

// Claim makes this process the only holder of the claim called name on this database,
// until release is called or the process ends, even by a crash. While another process
// holds it, Claim returns a fault.Conflict at once. On Postgres the claim also ends with
// the connection that holds it, when the server restarts.
func (d *DB) Claim(ctx context.Context, name string) (release func() error, err error) {
	if d.closed.Load() {
		return nil, errClosed()
	}
	return d.dialect.claim(ctx, name)
}

// claim locks a file beside the database's.
func (s *sqliteFile) claim(_ context.Context, name string) (func() error, error) {
	held, err := filelock.Try(s.path + "." + name + ".lock")
	switch {
	case err != nil:
		return nil, doing("claim "+name, err)
	case held == nil:
		return nil, fault.New(fault.Conflict, "another process has claimed %s of %s", name, s.path).
			WithHint("stop the other process, or give this one a data folder of its own")
	}
	return held.Unlock, nil
}

// claim takes an advisory lock on a connection of its own.
func (p *postgres) claim(ctx context.Context, name string) (func() error, error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, doing("claim "+name, p.explain(err))
	}
	var ours bool
	if err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", p.key("claim "+name)).Scan(&ours); err == nil && ours {
		return func() error { return giveBack(context.WithoutCancel(ctx), conn) }, nil
	}
	if err == nil {
		err = fault.New(fault.Conflict, "another process has claimed %s of %s", name, p.where).
			WithHint("stop the other process, or give this one a database of its own")
	}
	return nil, errors.Join(p.explain(err), conn.Close(context.WithoutCancel(ctx)))
}

// unclaimTime is how long the server may take to release a claim.
const unclaimTime = 10 * time.Second

// giveBack unlocks and closes the connection. The server releases a lock some time after
// its connection has closed, but the next claim should succeed at once. A lock that
// cannot be released ends with the connection.
func giveBack(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, unclaimTime)
	defer cancel()
	_, _ = conn.Exec(ctx, "SELECT pg_advisory_unlock_all()")
	return conn.Close(ctx)
}

// maxStatements is how many prepared statements a connection caches. The program has
// fewer, except for those that it generates.
const maxStatements = 256

// cachingConnector opens connections that prepare a statement once: preparing costs
// SQLite more than running most of ours.
type cachingConnector struct{ driver.Connector }

// Connect opens a connection.
func (r cachingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &cachingConn{preparingConn: inner.(preparingConn), statements: map[string]*cachedStmt{}}, nil
}

// preparingConn are the interfaces of the driver's connections, without those that run a
// statement directly: database/sql then prepares every statement.
type preparingConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// cachingConn is a connection with its prepared statements. Like any driver's it is
// used by one goroutine at a time.
type cachingConn struct {
	preparingConn
	statements map[string]*cachedStmt
	uses       uint64 // counter for cachedStmt.used
}

// cachedStmt is a prepared statement. While it is in use, the same text is prepared again.
type cachedStmt struct {
	fullStmt
	used uint64
	busy bool
}

// fullStmt are the interfaces of the driver's statements.
type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// Close lets the statement be used again.
func (c *cachedStmt) Close() error {
	c.busy = false
	return nil
}

// isCacheable reports whether a statement is likely to be repeated, unlike one that
// creates a table.
func isCacheable(query string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToUpper(word) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "SAVEPOINT", "RELEASE":
		return true
	}
	return false
}

// positional replaces $1, $2 … by ? if they appear in order and once each: the driver
// looks up each named parameter among all of them.
func positional(query string) string {
	var out strings.Builder
	rest, quoted := query, false
	for next := 1; ; {
		at := strings.IndexAny(rest, "'$")
		if at < 0 {
			return out.String() + rest
		}
		out.WriteString(rest[:at])
		rest = rest[at:]
		if rest[0] == '\'' {
			quoted = !quoted
		}
		if quoted || rest[0] == '\'' {
			out.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		name := "$" + strconv.Itoa(next)
		if !strings.HasPrefix(rest, name) || len(rest) > len(name) && rest[len(name)] >= '0' && rest[len(name)] <= '9' {
			return query
		}
		out.WriteByte('?')
		rest = rest[len(name):]
		next++
	}
}

// PrepareContext returns the cached statement of a query, or prepares one.
func (m *cachingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	m.uses++
	c := m.statements[query]
	if c != nil && !c.busy {
		c.busy, c.used = true, m.uses
		return c, nil
	}
	if c != nil || !isCacheable(query) {
		return m.preparingConn.PrepareContext(ctx, query)
	}
	stmt, err := m.preparingConn.PrepareContext(ctx, positional(query))
	if err != nil {
		return nil, err
	}
	if len(m.statements) >= maxStatements {
		if err := m.forget(); err != nil {
			return nil, err
		}
	}
	c = &cachedStmt{stmt.(fullStmt), m.uses, true}
	m.statements[query] = c
	return c, nil
}

// forget closes the least recently used statement.
func (m *cachingConn) forget() error {
	var oldest string
	for query, c := range m.statements {
		if !c.busy && (oldest == "" || c.used < m.statements[oldest].used) {
			oldest = query
		}
	}
	if oldest == "" {
		return nil
	}
	c := m.statements[oldest]
	delete(m.statements, oldest)
	return c.fullStmt.Close()
}

// Close closes the statements, then the connection.
func (m *cachingConn) Close() error {
	for query, c := range m.statements {
		delete(m.statements, query)
		_ = c.fullStmt.Close() // closing the connection reports the error
	}
	return m.preparingConn.Close()
}
