package db

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/luanette/luanette/internal/base/fault"
)

const (
	pgWriters  = 2 // connections: one for the Writes, one for notifications and lookups
	pgExternal = 4 // of a library's own pool; one of them listens for its events
	pgLeast    = 4 // minimum of both pools together
)

// postgres is a schema of a Postgres database, which other nodes may share.
type postgres struct {
	config *pgxpool.Config
	plain  *pgxpool.Config // of connections that listen, and of a library: a wait just ends with its ctx
	where  string          // for messages, without the password
	outages
	address func() (string, error) // the address as it is now, for the password; may be nil
	most    int                    // maximum number of connections from the address; zero means the default
	filling bool                   // this process is filling it

	// Set by connect.
	all    *pgxpool.Pool
	schema string
}

func newPostgres(address string) (*postgres, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil { // the library's message may contain the password
		return nil, fault.New(fault.Config, "open database %s: not an address of a Postgres database", redacted(address)).
			WithHint("use postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %%XX for odd characters in the password")
	}
	p := &postgres{config: config}
	if u, err := url.Parse(address); err == nil && u.Query().Has("pool_max_conns") {
		if p.most = int(config.MaxConns); p.most < pgLeast {
			return nil, fault.New(fault.Config, "open database %s: %d connections are too few", redacted(address), p.most).
				WithHint("give pool_max_conns=%d or more", pgLeast)
		}
	}
	p.where = net.JoinHostPort(config.ConnConfig.Host, strconv.Itoa(int(config.ConnConfig.Port))) + "/" + config.ConnConfig.Database
	parameters := config.ConnConfig.RuntimeParams
	if parameters["application_name"] == "" {
		parameters["application_name"] = "luanette"
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	p.plain = config.Copy()
	// A statement whose ctx ends is cancelled at the server, and the connection stays open.
	config.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelTimeout}
	}
	config.AfterConnect = readServerLife
	config.BeforeConnect, p.plain.BeforeConnect = p.logIn, p.logIn
	return p, nil
}

// logIn gives a new connection the user and password of now: they may have been changed
// since the start.
func (p *postgres) logIn(_ context.Context, conn *pgx.ConnConfig) error {
	if p.address == nil {
		return nil
	}
	address, err := p.address()
	if err != nil {
		return nil //nolint:nilerr // being replaced; the server says whether those of before are right
	}
	if now, err := pgxpool.ParseConfig(address); err == nil {
		conn.User, conn.Password = now.ConnConfig.User, now.ConnConfig.Password
	}
	return nil
}

// dial opens a connection outside of the pools, for statements.
func (p *postgres) dial(ctx context.Context) (*pgx.Conn, error) { return p.dialAs(ctx, p.config) }

// dialPlain opens a connection that listens.
func (p *postgres) dialPlain(ctx context.Context) (*pgx.Conn, error) { return p.dialAs(ctx, p.plain) }

func (p *postgres) dialAs(ctx context.Context, pool *pgxpool.Config) (*pgx.Conn, error) {
	config := pool.ConnConfig.Copy()
	if err := p.logIn(ctx, config); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

func (p *postgres) connect(ctx context.Context, o Options) (writer, *sql.DB, error) {
	p.timeout, p.address = cmp.Or(max(0, o.OutageTimeout), 20*time.Second), o.Address // a restart takes seconds
	if err := p.prepare(ctx); err != nil {
		return nil, nil, p.cannotOpen(err)
	}
	config, readers := p.config.Copy(), o.Readers
	config.MaxConns = int32(pgWriters + o.Readers) // small
	if p.most > 0 {
		config.MaxConns = p.shares().store
		readers = min(readers, max(1, int(config.MaxConns)-pgWriters))
	}
	all, err := pgxpool.NewWithConfig(ctx, config)
	if err == nil {
		p.all, err = all, all.Ping(ctx)
	}
	if err != nil {
		if all != nil {
			all.Close()
		}
		return nil, nil, p.cannotOpen(err)
	}
	return newSerializableWriter(p), p.open(readers, p.whileUnreachable), nil
}

// shares divides the connections that the address allows between the store and a library.
func (p *postgres) shares() (s struct{ store, external int32 }) {
	s.external = pgExternal
	if p.most > 0 {
		s.external = min(pgExternal, int32(p.most)/2) // it was one
		s.store = int32(p.most) - s.external          // it was one
	}
	return s
}

// open returns a pool for database/sql over some of the connections, with the
// transactions of tx.go. wait waits for an unreachable server.
func (p *postgres) open(size int, wait func(context.Context, func() error) error) *sql.DB {
	pool := sql.OpenDB(pgConnector{stdlib.GetPoolConnector(p.all), wait})
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(0) // idle connections return to the common pool
	return pool
}

// prepare creates the schema and the tables db_lives and db_turns, once for all nodes.
func (p *postgres) prepare(ctx context.Context) error {
	return p.alone(ctx, "prepare", func(conn *pgx.Conn) error {
		there, err := p.findSchema(ctx, conn)
		if err == nil && !there {
			_, err = conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{p.schema}.Sanitize())
		}
		if err == nil && !p.filling {
			err = p.refuseFilling(ctx, conn)
		}
		if err == nil {
			_, err = conn.Exec(ctx, "CREATE UNLOGGED TABLE IF NOT EXISTS db_lives (one BIGINT PRIMARY KEY, life TEXT NOT NULL)")
		}
		if err == nil {
			_, err = conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS db_turns (one BIGINT PRIMARY KEY)")
		}
		return err
	})
}

// findSchema finds the schema of the search path, and whether it exists.
func (p *postgres) findSchema(ctx context.Context, conn *pgx.Conn) (there bool, err error) {
	var path string
	err = conn.QueryRow(ctx, "SELECT coalesce(current_schema(), ''), current_setting('search_path')").Scan(&p.schema, &path)
	if err != nil || p.schema != "" {
		return err == nil, err
	}
	p.schema, _, _ = strings.Cut(path, ",")
	p.schema = strings.Trim(strings.TrimSpace(p.schema), `"`)
	return false, nil
}

// alone runs f on a connection of its own that holds an exclusive lock.
func (p *postgres) alone(ctx context.Context, what string, f func(*pgx.Conn) error) (err error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", p.key(what)); err != nil {
		return err
	}
	return f(conn)
}

// key returns the number of an advisory lock. These locks belong to the database, so the
// schema is part of the key.
func (p *postgres) key(what string) int64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "luanette %s %s", p.schema, what)
	return int64(h.Sum64())
}

func (p *postgres) close() error {
	p.all.Close()
	return nil
}

// migrating holds a lock, so that of several nodes that start at once one migrates and
// the others find it done.
func (p *postgres) migrating(ctx context.Context, f func(*sql.DB) error) error {
	return p.alone(ctx, "migrate", func(*pgx.Conn) (err error) {
		pool := stdlib.OpenDBFromPool(p.all)
		defer func() { err = errors.Join(err, pool.Close()) }()
		return f(pool)
	})
}

func (*postgres) translate(migrations fs.FS) fs.FS { return collated{migrations} }

func (*postgres) kind() Kind { return Postgres }

func (*postgres) migrations() goose.Dialect { return goose.DialectPostgres }

func (*postgres) now(ctx context.Context, tx *Tx) (time.Time, error) {
	var micros int64
	err := tx.QueryRow(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT").Scan(&micros)
	return time.UnixMicro(micros), err
}

func (p *postgres) external(ctx context.Context, _ *DB) (External, error) {
	config := p.plain.Copy()
	config.MaxConns = p.shares().external
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// The other nodes continue the runs of a frozen process, whose transaction may lock their rows.
		_, err := conn.Exec(ctx, "SET "+idle)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return External{}, p.explain(err)
	}
	return External{Postgres: pool, Schema: p.externalSchema(), Exclusive: p.exclusively}, nil
}

// externalPrefix begins the names of the library's schema and tables.
const externalPrefix = "dbos"

// externalSchema returns the schema of the library.
func (p *postgres) externalSchema() string {
	if p.schema == "public" {
		return externalPrefix
	}
	return p.schema + "_" + externalPrefix
}

// exclusively runs f while no other process does. It polls for the lock: a statement
// that waits for a lock would block the creation of indexes meanwhile.
func (p *postgres) exclusively(ctx context.Context, f func() error) (err error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return p.explain(err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for {
		var ours bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", p.key("guests")).Scan(&ours); err != nil { // earlier releases use this name too
			return p.explain(err)
		}
		if ours {
			break
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return f()
}

// check reads all tables, and asks Postgres for invalid indexes.
func (p *postgres) check(ctx context.Context, tx *Tx) error {
	tables, err := All(ctx, tx, Column[string], "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename")
	if err != nil {
		return doing("check database", err)
	}
	for _, table := range tables {
		var size int64
		name := pgx.Identifier{table}.Sanitize()
		if err := tx.QueryRow(ctx, "SELECT coalesce(sum(length(t::TEXT)), 0)::BIGINT FROM "+name+" t").Scan(&size); err != nil {
			return fault.Wrap(fault.Internal, err, "the table %s is damaged", table).
				WithHint("restore the database from a backup")
		}
	}
	problems, err := All(ctx, tx, Column[string], `SELECT 'the index ' || c.relname || ' is not valid' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace
		UNION ALL SELECT checksum_failures || ' pages have a wrong checksum' FROM pg_stat_database
		WHERE datname = current_database() AND checksum_failures > 0`)
	if err != nil {
		return doing("check database", err)
	}
	if len(problems) > 0 {
		return fault.New(fault.Internal, "the database is damaged: %s", strings.Join(problems, "; ")).
			WithHint("REINDEX what is not valid, or restore the database from a backup")
	}
	return nil
}

// cancelTimeout is how long the server may take to cancel a statement before the connection
// is closed. Tests use a longer time.
var cancelTimeout = 2 * time.Second

// lost means that the connection was lost: what was not committed is rolled back.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

// isLost reports whether err is that of a lost connection, or of a server that is
// unreachable or refuses connections at the moment.
func isLost(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch e.Code {
		case "57P01", "57P02", "57P03", "53300": // shut down, crashed, starting up; too many connections
			return true
		}
		return strings.HasPrefix(e.Code, "08") || isRefused(err)
	}
	var l lost
	var refused *pgconn.ConnectError
	var wire *net.OpError
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &refused):
		return true // including a timeout: it is that of the attempt
	case errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return errors.As(err, &l) || errors.As(err, &wire) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// IsOutage reports whether err says that the database is unreachable, or lets nobody in.
func IsOutage(err error) bool {
	var e *pgconn.PgError
	var refused *pgconn.ConnectError
	return errors.As(err, &refused) || errors.As(err, &e) && isLost(e)
}

// isRefused reports whether the server does not accept our user and password, perhaps until
// the new password has arrived here.
func isRefused(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && strings.HasPrefix(e.Code, "28")
}

// refusal is what the server says, without the names of user, host and database.
func refusal(err error) string {
	var e *pgconn.PgError
	errors.As(err, &e)
	message, _, _ := strings.Cut(e.Message, ` "`)
	message, _, _ = strings.Cut(message, " for ")
	return e.Code + " " + message
}

// isConflict reports whether another transaction conflicted with ours, which must then
// be run again.
func isConflict(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, a lock that took too long
		return true
	case "0A000": // a migration changed the tables of a prepared statement
		return strings.Contains(e.Message, "cached plan")
	}
	return false
}

func (p *postgres) explain(err error) error {
	if err == nil || explained(err) {
		return err
	}
	switch {
	case isConflict(err):
		return fault.Wrap(fault.Unavailable, err, "the write kept conflicting with other writes").WithHint("try again in a moment")
	case isRefused(err):
		return fault.Wrap(fault.Unavailable, err, "the database refuses the login: %s", refusal(err)).
			WithHint("put the right password where the setting `database` gets it from; a ${file:…} is read again for every connection, anything else at the start")
	case isLost(err):
		return fault.Wrap(fault.Unavailable, err, "the database is unreachable").
			WithHint("make sure that Postgres runs at %s; this program then continues by itself", p.where)
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case "23505":
		return fmt.Errorf("%w: %w", ErrUnique, err)
	case "23503":
		return fmt.Errorf("%w: %w", ErrForeignKey, err)
	case "22021", "22P05":
		return fault.Wrap(fault.InvalidParams, err, "text that Postgres cannot store").
			WithHint("remove zero bytes and invalid UTF-8")
	case "53100":
		return fault.Wrap(fault.Unavailable, unwritable{err}, "the disk of the database is full").
			WithHint("free disk space at %s, then try again", p.where)
	case "XX001", "XX002":
		return fault.Wrap(fault.Internal, err, "the database is damaged").
			WithHint("restore %s from a backup", p.where)
	}
	if strings.HasPrefix(e.Code, "23") {
		return fmt.Errorf("%w: %w", ErrConstraint, err)
	}
	return err
}

func (p *postgres) cannotOpen(err error) error {
	if explained(err) {
		return err
	}
	hint := fmt.Sprintf("make sure that Postgres runs at %s and accepts connections from here", p.where)
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch {
		case strings.HasPrefix(e.Code, "28"):
			hint = "give the right user and password, postgres://USER:PASSWORD@HOST/DATABASE, or let Postgres trust them (pg_hba.conf)"
		case e.Code == "3D000":
			hint = "make the database first: createdb " + p.config.ConnConfig.Database
		case e.Code == "42501":
			hint = "let the user make tables: GRANT CREATE ON SCHEMA public TO " + p.config.ConnConfig.User
		}
	}
	// The library's message names user, host and database, and never the password.
	return fault.Wrap(fault.Config, err, "open database %s", p.where).WithHint("%s", hint)
}
