package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/luanette/luanette/internal/base/fault"
)

const (
	pgWriters  = 2 // connections: one for the Writes, one for notifications and lookups
	pgExternal = 4 // additional ones for a library; one of them listens for its events
	pgLeast    = 4 // minimum of all of them
)

// postgres is a schema of a Postgres database, which other nodes may share.
type postgres struct {
	config        *pgxpool.Config
	where         string // for messages, without the password
	outageTimeout time.Duration
	most          int  // maximum number of connections from the address; zero means the default
	filling       bool // this process is filling it

	// Set by connect.
	all    sharedPool
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
	cancelOnServer(config.ConnConfig)
	config.AfterConnect = readServerLife
	return p, nil
}

func (p *postgres) connect(ctx context.Context, o Options) (writer, *sql.DB, error) {
	p.outageTimeout = o.OutageTimeout
	if p.outageTimeout <= 0 {
		p.outageTimeout = 20 * time.Second // a restart takes seconds
	}
	if err := p.prepare(ctx); err != nil {
		return nil, nil, p.cannotOpen(err)
	}
	config, readers := p.config.Copy(), o.Readers
	config.MaxConns = int32(pgWriters + o.Readers + pgExternal) //nolint:gosec // small
	if p.most > 0 {
		config.MaxConns = int32(p.most) //nolint:gosec // it was one
		readers = min(readers, p.most-pgLeast+1)
	}
	all, err := pgxpool.NewWithConfig(ctx, config)
	if err == nil {
		p.all.pool, err = all, all.Ping(ctx)
	}
	if err != nil {
		if all != nil {
			all.Close()
		}
		return nil, nil, p.cannotOpen(err)
	}
	return newSerializableWriter(p), p.open(readers, p.whileUnreachable), nil
}

// open returns a pool for database/sql over some of the connections, with the
// transactions of transaction.go. wait waits for an unreachable server.
func (p *postgres) open(size int, wait func(context.Context, func() error) error) *sql.DB {
	pool := sql.OpenDB(pgConnector{connector{&p.all}, wait})
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(0) // idle connections return to the shared pool
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
	conn, err := pgx.ConnectConfig(ctx, p.config.ConnConfig.Copy())
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
	return int64(h.Sum64()) //nolint:gosec // only the bits matter
}

func (p *postgres) close() error {
	p.all.current().Close()
	return nil
}

// migrating holds a lock, so that of several nodes that start at once one migrates and
// the others find it done.
func (p *postgres) migrating(ctx context.Context, f func(*sql.DB) error) error {
	return p.alone(ctx, "migrate", func(*pgx.Conn) (err error) {
		pool := stdlib.OpenDBFromPool(p.all.current())
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
	g := External{Postgres: p.all.lend(), Schema: p.externalSchema(), Exclusive: p.exclusively}
	if g.Postgres != nil {
		g.detach = func() error { return p.all.renew(g.Postgres) } //nolint:contextcheck // the new pool outlives the caller
		return g, nil
	}
	config := p.config.Copy()
	config.MaxConns, config.AfterConnect = pgExternal, nil
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return External{}, p.explain(err)
	}
	g.Postgres, g.detach = pool, func() error { return nil }
	return g, nil
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
	conn, err := pgx.ConnectConfig(ctx, p.config.ConnConfig.Copy())
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
	text := func(row Scanner) (found string, err error) { return found, row.Scan(&found) }
	tables, err := All(ctx, tx, text, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename")
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
	problems, err := All(ctx, tx, text, `SELECT 'the index ' || c.relname || ' is not valid' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
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
