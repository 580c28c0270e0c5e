// Package db is the database: the only package that knows which one it is. Other
// packages have their own SQL and migrations, written so that SQLite and Postgres
// both understand them. They pass the migrations to Migrate at start, and then use
// Write and Read.
//
// Both databases understand the types TEXT, BIGINT, DOUBLE PRECISION, BOOLEAN and
// BYTEA; $1 placeholders, ON CONFLICT, RETURNING, WITH. Times are stored as
// integers, so that every database orders them alike. Constraints are not
// deferred: they must fail with their statement, not with the commit that
// several writers share. After an error of a statement a Write can only end.
// TEXT is compared byte by byte; Postgres accepts neither zero bytes nor invalid
// UTF-8. A text column of a migration must be written as "name TEXT" at the beginning
// of a line, or after a bracket or comma.
//
// Several nodes may share a Postgres database. Writes are serializable there, across
// all nodes: each behaves as if it ran alone, after all Writes that had returned before
// it began. A Write that conflicts with another is rolled back and run again, so a
// function that reads, decides and writes within one Write needs no lock, but must
// reset its results each time it runs. Data from another Read or Write may be outdated:
// compare it again where it matters (UPDATE … WHERE version = $1).
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
)

// Options configure a database. The zero value is ready to use.
type Options struct {
	// Readers is the maximum number of concurrent Reads; zero or less means 8.
	Readers int
	// OutageTimeout is how long Reads and Writes wait for an unreachable server, or
	// for another program that has locked the file; zero or less means 20 s and 5 s.
	// See WaitForDatabase.
	OutageTimeout time.Duration
	// Address returns the address as it is now: every new connection to a server logs in with
	// its user and password. Nil: it never changes.
	Address func() (string, error)
	// Initial returns the content of a new SQLite file; nil: it is empty.
	Initial func() ([]byte, error)
	// InjectFaults runs the function of every Write several times, with an error of
	// its first statement, of its second and so on, and commits only the run without
	// an error, as if the Write had conflicted with others. It runs the function of
	// every Read twice, as if the connection had been lost. For tests.
	InjectFaults bool
}

// DB is an open database. It is safe for concurrent use. The caller that opened it
// closes it.
type DB struct {
	dialect dialect
	writer  writer
	readers *sql.DB
	broker  *broker
	faults  bool
	closed  atomic.Bool
	sets    sync.Map // files of the migrated sets, by name

	unwritable atomic.Bool // a write failed because of the disk, and CheckWritable found no space since
}

// Open opens the database that url names: "sqlite:PATH", a file that is created with
// its folder if it does not exist, or "postgres://USER@HOST/DATABASE", where everything
// is stored in the first schema of the search path, which is created if necessary.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	d, err := dialectOf(url)
	if err != nil {
		return nil, err
	}
	return open(ctx, d, o)
}

func open(ctx context.Context, d dialect, o Options) (*DB, error) {
	if o.Readers <= 0 {
		o.Readers = 8
	}
	w, readers, err := d.connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return &DB{dialect: d, writer: w, readers: readers, broker: newBroker(d), faults: o.InjectFaults}, nil
}

// Kind is the kind of a database, for packages that use features of one of them.
type Kind string

// The kinds of databases. Other nodes may share Postgres.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// Kind returns the kind of the database.
func (d *DB) Kind() Kind { return d.dialect.kind() }

// KindOf returns the kind of database of an address, which need not exist.
func KindOf(url string) (Kind, error) {
	d, err := dialectOf(url)
	if err != nil {
		return "", err
	}
	return d.kind(), nil
}

// RedactURL returns an address without its password, for display.
func RedactURL(url string) string { return redacted(url) }

// PathOf returns the file of the database at address, or "" if it is not a file.
func PathOf(url string) string {
	d, err := dialectOf(url)
	if file, ok := d.(*sqliteFile); err == nil && ok {
		return file.path
	}
	return ""
}

// Write runs f in a transaction that is on disk when Write returns nil. If f
// returns an error, panics, or the commit fails, the transaction is rolled back;
// only ErrCommitUnknown leaves the outcome open.
//
// Writes behave as if they ran one after the other, each seeing those before it. For
// this f may be run again after a rollback, so it must be short, use nothing but tx,
// and reset its results each time. On SQLite, Writes do run one after the other: others
// wait for f, and a Write within f deadlocks. ctx ends the wait for the turn and is
// checked before each statement; once f has returned, Write waits for the outcome
// regardless of ctx.
func (d *DB) Write(ctx context.Context, f func(tx *Tx) error) error {
	if d.closed.Load() {
		return errClosed()
	}
	if d.faults {
		if err := d.injectFaults(ctx, f); err != nil {
			return err
		}
	}
	var notes []note
	err := d.writer.write(ctx, func(tx *Tx) error {
		err := f(tx)
		notes = tx.notes
		return err
	})
	if err != nil {
		err = d.dialect.explain(err)
		d.noteWrite(err)
		return err
	}
	d.noteWrite(nil)
	d.broker.publish(notes...)
	return nil
}

// errInjected rolls back a run with an injected fault, and is that fault.
var errInjected = errors.New("injected fault")

// injectFaults runs f with one statement failing after the other, and once with none. It
// ignores what f returns.
func (d *DB) injectFaults(ctx context.Context, f func(tx *Tx) error) error {
	const most = 10 // statements of one f
	for failing := 1; failing <= most; failing++ {
		count := 0
		err := d.writer.write(ctx, func(tx *Tx) error {
			tx.failing = failing
			_ = f(tx)
			count = tx.statements
			return errInjected
		})
		if !errors.Is(err, errInjected) {
			return d.dialect.explain(err)
		}
		if count < failing {
			break
		}
	}
	return nil
}

// Read runs f on an unchanging view of the database: what was committed when it
// began, including every Write that has returned. Reads do not wait for writers.
// Statements end with their ctx; writing is an error. If the connection is lost,
// f is run again, so it must reset its results each time.
func (d *DB) Read(ctx context.Context, f func(tx *Tx) error) error {
	if d.closed.Load() {
		return errClosed()
	}
	if d.faults {
		_ = d.readOnce(ctx, f)
	}
	return d.dialect.explain(d.dialect.whileUnreachable(ctx, func() error { return d.readOnce(ctx, f) }))
}

// readOnce runs f in one transaction. An error of the database takes precedence over
// what f returns.
func (d *DB) readOnce(ctx context.Context, f func(tx *Tx) error) error {
	inner, err := d.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return doing("begin read", err)
	}
	defer func() { _ = inner.Rollback() }() // nothing was written
	tx := &Tx{tx: inner, dialect: d.dialect}
	err = f(tx)
	if err != nil && ctx.Err() == nil && isLost(tx.failure) {
		return tx.failure
	}
	return err
}

// Check reads the whole database and returns an error that describes any damage.
func (d *DB) Check(ctx context.Context) error {
	return d.Read(ctx, func(tx *Tx) error { return d.dialect.check(ctx, tx) })
}

// Close waits for the running Write and closes the database. Writes that are queued
// are refused; running Reads continue to their end.
func (d *DB) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	err := d.writer.close()
	d.broker.close()
	return errors.Join(err, d.readers.Close(), d.dialect.close())
}

func errClosed() error {
	return fault.New(fault.Unavailable, "the database is closed").
		WithHint("the program is shutting down; try again once it runs")
}

// dialect is what differs between databases. To add a database, write a file like
// sqlite.go and add a case to dialectOf.
type dialect interface {
	kind() Kind
	// connect opens the writer, and a pool of o.Readers connections for reading.
	connect(ctx context.Context, o Options) (writer, *sql.DB, error)
	// close releases what connect opened in addition.
	close() error
	// whileUnreachable retries a function while the database is unreachable.
	whileUnreachable(ctx context.Context, do func() error) error
	// explain wraps err with what it means: ErrUnique, ErrForeignKey and the like, or a
	// fault with a hint. It returns unknown errors and nil unchanged.
	explain(err error) error
	// check looks for damage.
	check(ctx context.Context, tx *Tx) error
	// scrub is Scrub.
	scrub(ctx context.Context, d *DB) error
	// claim is Claim.
	claim(ctx context.Context, name string) (release func() error, err error)
	// now is the time on which all nodes agree.
	now(ctx context.Context, tx *Tx) (time.Time, error)
	// migrations is the name that goose has for the dialect.
	migrations() goose.Dialect
	// translate adapts migrations to the dialect.
	translate(migrations fs.FS) fs.FS
	// migrating runs f with a pool for changing tables, while no other process does
	// the same if the database can ensure that.
	migrating(ctx context.Context, f func(*sql.DB) error) error
	// carrier sends notifications to other processes; nil means that there are none.
	carrier(*broker) carrier
	// external is DB.External.
	external(ctx context.Context, d *DB) (External, error)
	// dump and fill are ReadDump and FillEmpty.
	dump(ctx context.Context, f func(*Dump) error) error
	fill(ctx context.Context, f func(*Filling) error) error
}

// writer runs transactions that write.
type writer interface {
	write(ctx context.Context, f func(*Tx) error) error
	// close waits for the running transaction, and refuses all others.
	close() error
}

func dialectOf(address string) (dialect, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme {
	case "sqlite":
		return newSQLite(rest)
	case "postgres", "postgresql":
		return newPostgres(address)
	default:
		return nil, fault.New(fault.Config, "open database %s: unknown kind of database", redacted(address)).
			WithHint("use sqlite:PATH, for example sqlite:luanette.db, or postgres://USER@HOST/DATABASE")
	}
}

// redacted returns address without its password.
func redacted(address string) string {
	var references []string // a path in one is no part of the address
	address = reference().ReplaceAllStringFunc(address, func(text string) string {
		references = append(references, text)
		return fmt.Sprintf("reference%dq", len(references)-1)
	})
	u, err := url.Parse(address)
	if err != nil {
		return "(unreadable address)"
	}
	password, _ := u.User.Password()
	if query := u.Query(); query.Has("password") {
		query.Set("password", "xxxxx")
		u.RawQuery = query.Encode()
	}
	shown := u.Redacted()
	if isPlaceholder().MatchString(password) { // a reference shows nothing of the password
		shown = u.String()
	}
	for i, text := range references {
		shown = strings.Replace(shown, fmt.Sprintf("reference%dq", i), text, 1)
	}
	return shown
}

// reference is one to a secret, as in ${file:PATH}; isPlaceholder matches what stands for it
// while an address is read.
var (
	reference     = lazyregexp.New(`\$\{[^}]*\}`)
	isPlaceholder = lazyregexp.New(`^reference[0-9]+q$`)
)

// Tables returns the names of all tables of ours.
func (t *Tx) Tables(ctx context.Context) ([]string, error) {
	query := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if t.dialect.kind() == Postgres {
		query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	}
	return All(ctx, t, Column[string], query)
}

// The errors of constraints, for errors.Is. The database's own message follows.
var (
	// ErrUnique means that a row with the same key exists already.
	ErrUnique = fault.New(fault.Conflict, "the key exists already")
	// ErrForeignKey means that a row refers to one that does not exist, or that a
	// removed row is still referred to.
	ErrForeignKey = fault.New(fault.Conflict, "a row refers to one that does not exist")
	// ErrConstraint means that a value breaks a rule of its table.
	ErrConstraint = fault.New(fault.InvalidParams, "the value breaks a rule of its table")
	// ErrCommitUnknown means that the connection was lost during a commit and the
	// outcome could not be looked up: the write may or may not have happened.
	ErrCommitUnknown = fault.New(fault.Unavailable, "the connection to the database was lost during a commit; whether the write happened is unknown").
				WithHint("check the current state before you retry")
)

// ErrUnwritable is wrapped by errors of Write whose cause is the disk: it is full, fails
// or is read-only. The transaction was rolled back; the same write may succeed later.
var ErrUnwritable = errors.New("the database cannot be written")

// unwritable marks an error as ErrUnwritable without changing its text.
type unwritable struct{ error }

func (u unwritable) Unwrap() error        { return u.error }
func (u unwritable) Is(target error) bool { return target == ErrUnwritable }

// noteWrite remembers that a write failed because of the disk. One that succeeds proves
// nothing: it may have changed nothing, or fit into the last free page.
func (d *DB) noteWrite(err error) {
	if errors.Is(err, ErrUnwritable) {
		d.unwritable.Store(true)
	}
}

// CheckReadable returns why nothing can be read, or nil.
func (d *DB) CheckReadable(ctx context.Context) error {
	var one int
	return d.Read(ctx, func(tx *Tx) error { return tx.QueryRow(ctx, "SELECT 1").Scan(&one) })
}

// CheckWritable returns why nothing can be written, or nil. It writes only if a write
// failed because of the disk, to find out whether there is space again.
func (d *DB) CheckWritable(ctx context.Context) error {
	if !d.unwritable.Load() {
		return nil
	}
	err := d.Write(ctx, func(tx *Tx) error {
		if _, err := tx.Exec(ctx, "CREATE TABLE space_check (filler TEXT)"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO space_check (filler) VALUES ($1)", filler); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DROP TABLE space_check")
		return err
	})
	if err == nil {
		d.unwritable.Store(false)
	}
	return err
}

// filler needs some pages of its own.
var filler = strings.Repeat("no space? ", 6000)

// Outages records whether the database was unreachable during a WaitForDatabase.
type Outages struct{ met atomic.Bool }

// Any reports whether the database was unreachable.
func (o *Outages) Any() bool { return o.met.Load() }

// WaitForDatabase is for work that must not be lost: Reads and Writes under the
// context it returns wait for an unreachable database until ctx ends, where others
// give up after Options.OutageTimeout.
func WaitForDatabase(ctx context.Context) (context.Context, *Outages) {
	o := &Outages{}
	return context.WithValue(ctx, outagesKey{}, o), o
}

type outagesKey struct{}

// reconnectDelay is the delay between attempts to reach a server.
var reconnectDelay = backoff.Policy{First: 10 * time.Millisecond, Max: 500 * time.Millisecond, Jitter: 0.5}

// outages decides how long a server may be unreachable.
type outages struct {
	timeout time.Duration
	end     atomic.Pointer[time.Time] // set by LimitOutages: nobody waits after it
}

// mayWait reports whether a caller still waits for an unreachable server that gives up at
// deadline, or never if it has promised to wait.
func (o *outages) mayWait(now, deadline time.Time, promised *Outages) bool {
	if promised != nil {
		promised.met.Store(true)
		deadline = now.Add(1)
	}
	if end := o.end.Load(); end != nil && end.Before(deadline) {
		deadline = *end
	}
	return now.Before(deadline)
}

// LimitOutages lets nobody wait longer than that from now on for an unreachable server, also
// those who wait already: the program is about to end.
func (d *DB) LimitOutages(most time.Duration) {
	if p, ok := d.dialect.(*postgres); ok {
		end := time.Now().Add(most)
		p.end.Store(&end)
	}
}

// whileUnreachable repeats do while the server is unreachable, up to the timeout.
func (p *postgres) whileUnreachable(ctx context.Context, do func() error) error {
	promised, _ := ctx.Value(outagesKey{}).(*Outages)
	deadline := time.Now().Add(p.timeout)
	var before error
	for failures := 1; ; failures++ {
		err := do()
		if before != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return before // it says why the time was not enough
		}
		before = err
		if !isLost(err) || !p.mayWait(time.Now(), deadline, promised) {
			return err
		}
		if sleep(ctx, reconnectDelay.Delay(failures)) != nil {
			return err
		}
	}
}

// once is whileUnreachable without a retry.
func once(_ context.Context, do func() error) error { return do() }

// whileUnreachable runs do: a file is always reachable.
func (*sqliteFile) whileUnreachable(ctx context.Context, do func() error) error { return once(ctx, do) }

// Poll calls look after each notification on a topic, after a notification may have been
// missed, and at every interval in any case, until ctx ends. Processes that share a
// SQLite file cannot notify each other: there the interval is all there is.
func (d *DB) Poll(ctx context.Context, topic string, every time.Duration, log *slog.Logger, look func(context.Context) error) {
	notified := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.Listen(ctx, topic, func(Notification) { // it ends with ctx
			select {
			case notified <- struct{}{}:
			default: // a look is due already
			}
		})
	}()
	defer func() { <-ended }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-notified:
		case <-tick.C:
		}
		if err := look(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "changes of other processes not read", "topic", topic, "error", err)
		}
	}
}

// Scrub removes what deleted rows have left in the files of the database, as far as that
// is possible while others use it. On Postgres that is the work of VACUUM, which the
// server does by itself.
func (d *DB) Scrub(ctx context.Context) error {
	if d.closed.Load() {
		return errClosed()
	}
	return d.dialect.explain(d.dialect.scrub(ctx, d))
}

func (*postgres) scrub(context.Context, *DB) error { return nil }

// scrub fills the unused pages with zeros, by a table that uses all of them for a moment.
// Then it empties the log. The rest of a page in use needs nothing: secure_delete
// overwrites it. If a reader needs the log, it is overwritten later.
func (s *sqliteFile) scrub(ctx context.Context, d *DB) error {
	const portion, most = 4 << 20, 4096 // bytes of one transaction, for which others wait, and the number of them
	for range most {
		var unused int64
		err := d.Write(ctx, func(tx *Tx) error {
			err := tx.QueryRow(ctx, "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size").Scan(&unused)
			if err == nil {
				_, err = tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS db_zeros (zeros BLOB NOT NULL)")
			}
			if err == nil && unused > 0 {
				_, err = tx.Exec(ctx, "INSERT INTO db_zeros (zeros) VALUES (zeroblob($1))", min(unused, portion))
			}
			return err
		})
		if err != nil {
			return err
		}
		if unused <= portion {
			break
		}
	}
	err := d.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, "DROP TABLE IF EXISTS db_zeros")
		return err
	})
	if err == nil {
		_, err = s.writers.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	return err
}
