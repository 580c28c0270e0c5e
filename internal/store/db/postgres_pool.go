package db

import (
	"context"
	"database/sql/driver"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// sharedPool is the connections of a node: the store's, and those of the library
// that it let in. The library closes the pool it was given when it ends, before the
// store does, which then goes on with another.
type sharedPool struct {
	mu   sync.Mutex
	pool *pgxpool.Pool
	lent bool // the library has it
}

// current is the pool that the store uses.
func (s *sharedPool) current() *pgxpool.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pool
}

// lend gives the pool away, to be closed. It is given once: a second library, or the
// same one once more, gets none.
func (s *sharedPool) lend() *pgxpool.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent {
		return nil
	}
	s.lent = true
	return s.pool
}

// renew has the store go on with a pool of its own, if it uses the one that is about
// to be closed. It connects when it is needed.
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

// connector opens connections of whichever pool is the current one.
type connector struct{ *sharedPool }

// Connect takes a connection. A pool may be closed between being asked for and
// being used; then there is another.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	for {
		pool := c.current()
		conn, err := stdlib.GetPoolConnector(pool).Connect(ctx)
		if err == nil || ctx.Err() != nil || c.current() == pool {
			return conn, err
		}
	}
}

// Driver is stdlib's.
func (c connector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }
