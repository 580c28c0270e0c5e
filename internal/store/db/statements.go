package db

import (
	"context"
	"database/sql/driver"
	"strconv"
	"strings"

	"modernc.org/sqlite"
)

// maxStatements is how many prepared statements a connection caches. The program has
// fewer, except for those that it generates.
const maxStatements = 256

// cachingConnector opens connections that prepare a statement once: preparing costs
// SQLite more than running most of ours.
type cachingConnector struct{ driver.Connector }

func newCachingConnector(dsn string) (driver.Connector, error) {
	inner, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return cachingConnector{inner}, nil
}

// Connect opens a connection.
func (r cachingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &cachingConn{fullConn: inner.(fullConn), statements: map[string]*cachedStmt{}}, nil
}

// fullConn are the interfaces of the driver's connections.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// cachingConn is a connection with its prepared statements. Like any driver's it is
// used by one goroutine at a time.
type cachingConn struct {
	fullConn
	statements map[string]*cachedStmt
	uses       uint64 // counter for cachedStmt.used
}

// cachedStmt is a prepared statement. While its rows are being read it is busy, and
// the same text is prepared again.
type cachedStmt struct {
	driver.StmtExecContext
	driver.StmtQueryContext
	close func() error
	used  uint64
	busy  bool
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

// prepared is the cached statement of a query, or nil if it is to be run directly.
func (m *cachingConn) prepared(ctx context.Context, query string) (*cachedStmt, error) {
	m.uses++
	if c := m.statements[query]; c != nil {
		if c.busy {
			return nil, nil //nolint:nilnil // nil is not an error here
		}
		c.used = m.uses
		return c, nil
	}
	if !isCacheable(query) {
		return nil, nil //nolint:nilnil // as above
	}
	stmt, err := m.PrepareContext(ctx, positional(query))
	if err != nil {
		return nil, err
	}
	if len(m.statements) >= maxStatements {
		if err := m.forget(); err != nil {
			return nil, err
		}
	}
	c := &cachedStmt{stmt.(driver.StmtExecContext), stmt.(driver.StmtQueryContext), stmt.Close, m.uses, false}
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
	return c.close()
}

// ExecContext runs a statement.
func (m *cachingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c, err := m.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return m.fullConn.ExecContext(ctx, query, args)
	}
	return c.ExecContext(ctx, args)
}

// QueryContext runs a statement that returns rows.
func (m *cachingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c, err := m.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return m.fullConn.QueryContext(ctx, query, args)
	}
	rows, err := c.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	c.busy = true
	return &cachedRows{rows, c}, nil
}

// Close closes the statements, then the connection.
func (m *cachingConn) Close() error {
	for query, c := range m.statements {
		delete(m.statements, query)
		_ = c.close() // closing the connection reports the error
	}
	return m.fullConn.Close()
}

// cachedRows are rows that release their statement when closed.
type cachedRows struct {
	driver.Rows
	of *cachedStmt
}

// Close closes the rows.
func (b *cachedRows) Close() error {
	err := b.Rows.Close()
	b.of.busy = false
	return err
}
