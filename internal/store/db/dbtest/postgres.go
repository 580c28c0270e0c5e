package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// shared is the server that all tests on this machine share, including those of other
// packages. It is stopped when the last test process ends.
var shared = sync.OnceValues(func() (*cluster, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("luanette-postgres-3-%d", os.Getuid()))
	if !socketFits(dir) {
		return nil, fmt.Errorf("%s cannot hold a socket: the path is too long or has special characters", dir)
	}
	c, err := newCluster(dir)
	if err != nil {
		return nil, err
	}
	starting, err := c.hold("starting", syscall.LOCK_EX) // one process at a time starts the server
	if err != nil {
		return nil, err
	}
	defer func() { _ = starting.Close() }()
	using, err := c.hold("users", syscall.LOCK_SH) // until this process ends
	if err != nil {
		return nil, err
	}
	keepOpen = using
	if c.answers(context.Background()) {
		return c, nil
	}
	if err := c.initData(); err != nil {
		return nil, err
	}
	if err := c.start(); err != nil {
		return nil, err
	}
	return c, c.guard()
})

// keepOpen keeps the file from being garbage collected, which would close it.
var keepOpen *os.File //nolint:unused // its existence is its use

// Postgres returns the address of an empty schema of a real Postgres server, which is
// removed when the test ends. If Postgres is not installed, the test is skipped.
func Postgres(t testing.TB) string {
	t.Helper()
	c, schema := needShared(t), newName()
	t.Cleanup(func() {
		c.remove(t, "SET client_min_messages = error; DROP SCHEMA IF EXISTS "+schema+", "+schema+"_dbos CASCADE")
	})
	return c.url(common, schema)
}

// needShared returns the shared server. It skips the test if there is none.
func needShared(t testing.TB) *cluster {
	t.Helper()
	c, err := shared()
	if errors.Is(err, errMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newName returns a name for a schema or a database.
func newName() string { return "t_" + strings.ToLower(rand.Text()[:16]) }

// exec runs a statement on a connection of its own.
func (c *cluster) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, c.url(common, "public"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

func (c *cluster) remove(t testing.TB, statement string) {
	if err := c.exec(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Logf("remove what the test left: %v", err)
	}
}

// StartDurable starts a server whose commits are on disk, for benchmarks, and returns its
// address and how to stop it.
func StartDurable() (url string, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "luanette-pg-")
	if err != nil {
		return "", nil, err
	}
	c, err := newCluster(dir)
	if err == nil {
		err = c.initData()
	}
	if err == nil {
		err = c.start("fsync=on", "full_page_writes=on", "autovacuum=on", "max_wal_size=1GB", "shared_buffers=128MB")
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	url, _, _ = strings.Cut(c.url(common, ""), "&search_path=")
	return url, func() error { return errors.Join(c.stop("fast"), os.RemoveAll(dir)) }, nil
}

// Server is a Postgres server for one test, which may stop and start it.
type Server struct {
	URL string
	c   *cluster
}

// StartServer starts a server and stops it when the test ends.
func StartServer(t testing.TB) *Server {
	t.Helper()
	if c, err := shared(); err != nil || c == nil { // it created the template
		Postgres(t)
	}
	dir, err := os.MkdirTemp("", "luanette-pg-") //nolint:usetesting // another user must be able to enter it
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: c.url(common, "public"), c: c}
	using, err := c.hold("users", syscall.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop(t, "immediate")
		_ = using.Close()
		_ = os.RemoveAll(dir)
	})
	first, _ := shared()
	if err := c.run("cp", "-a", first.path("template"), c.path("data")); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	if err := c.guard(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Start starts the server again after Stop, with its data. It does not wait for the disk,
// so only a crash of the machine could lose commits.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.c.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop stops the server: "fast" closes connections in an orderly way, "immediate" is a
// crash. It does nothing if the server does not run.
func (s *Server) Stop(t testing.TB, how string) {
	t.Helper()
	if err := s.c.stop(how); err != nil {
		t.Error(err)
	}
}

func (c *cluster) stop(how string) error {
	if _, err := os.Stat(c.path("data/postmaster.pid")); err != nil {
		return nil //nolint:nilerr // it does not run
	}
	return c.run(filepath.Join(c.bin, "pg_ctl"), "stop", "-D", c.path("data"), "-m", how, "-w")
}

// RequirePassword lets the user guest log in with that password only, ends its connections,
// and returns the address for it.
func (s *Server) RequirePassword(t testing.TB, password string) (url string) {
	t.Helper()
	rules := "local all guest scram-sha-256\nlocal all all trust\n"
	if err := os.WriteFile(s.c.path("data/pg_hba.conf"), []byte(rules), 0o600); err != nil { // it keeps its owner
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DO $$ BEGIN CREATE ROLE guest SUPERUSER LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
		"ALTER ROLE guest PASSWORD '" + password + "'", "SELECT pg_reload_conf()",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guest'",
	} {
		if err := s.c.exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Replace(s.URL, "user=luanette", "user=guest&password="+password, 1)
}
