package db

import (
	"context"
	"database/sql/driver"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// sharedPool is the pool of connections that the store shares with a library. The library
// closes the pool before the store closes; the store then continues with a new one.
type sharedPool struct {
	mu   sync.Mutex
	pool *pgxpool.Pool
	lent bool // the library uses it
}

// current returns the pool that the store uses.
func (s *sharedPool) current() *pgxpool.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pool
}

// lend returns the pool for the library, which closes it. Later calls return nil.
func (s *sharedPool) lend() *pgxpool.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent {
		return nil
	}
	s.lent = true
	return s.pool
}

// renew gives the store a new pool, if it uses the one that is about to be closed. The
// new pool connects on first use.
func (s *sharedPool) renew(old *pgxpool.Pool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool != old {
		return nil
	}
	fresh, err := pgxpool.NewWithConfig(context.Background(), old.Config())
	if err != nil {
		return err
	}
	s.pool, s.lent = fresh, false
	return nil
}

// connector opens connections of the current pool.
type connector struct{ *sharedPool }

// Connect takes a connection. If the pool was closed meanwhile, Connect uses the next one.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	for {
		pool := c.current()
		conn, err := stdlib.GetPoolConnector(pool).Connect(ctx)
		if err == nil || ctx.Err() != nil || c.current() == pool {
			return conn, err
		}
	}
}

// Driver returns the driver of pgx for database/sql.
func (c connector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }
