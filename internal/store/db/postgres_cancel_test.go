package db_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// The server is asked to cancel a statement, and the connection stays open. It is not
// asked to cancel a listener's wait, because no statement runs: closing would wait for a
// reply that does not come.
func TestCancelOnServer(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.Postgres(t))
	statements, listening := db.ConnConfigs(d)
	line := &line{}
	conn := line.connect(t, statements)
	wait := func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "SELECT pg_sleep(600)")
		return err
	}
	pid := conn.PgConn().PID()
	asked, err := line.until(t, wait, func() {
		clocktest.Await(t, func() (asleep bool) {
			err := d.QueryRow(t.Context(), "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $1", pid).Scan(&asleep)
			return err == nil && asleep
		})
	})
	if asked != 1 || err == nil {
		t.Errorf("%d requests to cancel a statement (%v)", asked, err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("the connection after the cancellation: %v", err)
	}
	conn = line.connect(t, listening)
	if _, err := conn.Exec(t.Context(), "LISTEN nothing"); err != nil {
		t.Fatal(err)
	}
	wait = func(ctx context.Context) error {
		_, err := conn.WaitForNotification(ctx)
		return err
	}
	asked, err = line.until(t, wait, func() { clocktest.Await(t, func() bool { return line.reading.Load() > 0 }) })
	if asked != 0 || err == nil {
		t.Errorf("%d requests to cancel, although no statement ran (%v)", asked, err)
	}
}

// line counts the reads of a test's connections.
type line struct {
	dialled atomic.Int64
	reading atomic.Int64 // reads that wait for the server
}

func (l *line) connect(t *testing.T, config *pgx.ConnConfig) *pgx.Conn {
	t.Helper()
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
// cancel, and the error of the wait.
func (l *line) until(t *testing.T, wait func(context.Context) error, begun func()) (asked int64, err error) {
	t.Helper()
	before := l.dialled.Load()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- wait(ctx) }()
	begun()
	cancel()
	err = <-ended
	return l.dialled.Load() - before, err
}
