package db_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// The server is asked to cancel a statement, and the connection stays open. It is not
// asked to cancel a listener's wait, because no statement runs: closing would wait for a
// reply that does not come.
func TestCancelOnServer(t *testing.T) {
	t.Parallel()
	library, err := dbtest.Open(t, dbtest.Postgres(t)).External(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := library.Close(); err != nil {
			t.Error(err)
		}
	}()
	line := &line{}
	conn := line.connect(t, library.Postgres)
	wait := func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "SELECT pg_sleep(600)")
		return err
	}
	pid := conn.PgConn().PID()
	asked := line.until(t, conn, wait, func() {
		clocktest.Await(t, func() (asleep bool) {
			err := library.Postgres.QueryRow(t.Context(), "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $1", pid).Scan(&asleep)
			return err == nil && asleep
		})
	})
	if asked != 1 {
		t.Errorf("%d requests to cancel a statement", asked)
	}
	if _, err := conn.Exec(t.Context(), "LISTEN nothing"); err != nil {
		t.Fatal(err)
	}
	wait = func(ctx context.Context) error {
		_, err := conn.WaitForNotification(ctx)
		return err
	}
	listening := func() { clocktest.Await(t, func() bool { return line.reading.Load() > 0 }) }
	if asked := line.until(t, conn, wait, listening); asked != 0 {
		t.Errorf("%d requests to cancel, although no statement ran", asked)
	}
}

// line counts the reads of a test's connections.
type line struct {
	dialled atomic.Int64
	reading atomic.Int64 // reads that wait for the server
}

func (l *line) connect(t *testing.T, pool *pgxpool.Pool) *pgx.Conn {
	t.Helper()
	config := pool.Config().ConnConfig
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		l.dialled.Add(1)
		c, err := dial(ctx, network, address)
		return &overLine{c, l}, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return conn
}

type overLine struct {
	net.Conn
	line *line
}

func (c *overLine) Read(p []byte) (int, error) {
	c.line.reading.Add(1)
	defer c.line.reading.Add(-1)
	return c.Conn.Read(p)
}

// until cancels a wait when it has begun. It returns how often the server was asked to
// cancel, and checks that the connection still works.
func (l *line) until(t *testing.T, conn *pgx.Conn, wait func(context.Context) error, begun func()) (asked int64) {
	t.Helper()
	before := l.dialled.Load()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- wait(ctx) }()
	begun()
	cancel()
	if err := <-ended; err == nil {
		t.Error("the wait was not cancelled")
	}
	asked = l.dialled.Load() - before
	if _, err := conn.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("the connection after the cancellation: %v", err)
	}
	return asked
}
