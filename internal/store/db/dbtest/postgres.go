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

// shared is the server that all tests on this machine share, those of other
// packages included, as long as there are any.
var shared = sync.OnceValues(func() (*cluster, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("luanette-postgres-2-%d", os.Getuid()))
	if !socketFits(dir) {
		return nil, fmt.Errorf("%s is too long for a socket, or odd", dir)
	}
	c, err := newCluster(dir)
	if err != nil {
		return nil, err
	}
	door, err := c.hold("door", syscall.LOCK_EX) // one comes in at a time
	if err != nil {
		return nil, err
	}
	defer func() { _ = door.Close() }()
	using, err := c.hold("users", syscall.LOCK_SH) // for as long as we live
	if err != nil {
		return nil, err
	}
	keepOpen = using
	if c.answers(context.Background()) {
		return c, nil
	}
	if err := c.furnish(); err != nil {
		return nil, err
	}
	if err := c.start(); err != nil {
		return nil, err
	}
	return c, c.guard()
})

// keepOpen must not be collected: it would be closed.
var keepOpen *os.File //nolint:unused // that it is there is its use

// Postgres is the address of an empty place in a real Postgres server, which is
// removed when the test is over. Where Postgres is not installed, the test is
// skipped.
func Postgres(t testing.TB) string {
	t.Helper()
	c, err := shared()
	if errors.Is(err, errMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	schema := "t_" + strings.ToLower(rand.Text()[:16])
	t.Cleanup(func() { c.remove(t, schema, schema+"_dbos") })
	return c.url(schema)
}

func (c *cluster) remove(t testing.TB, schemas ...string) {
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, c.url("public"))
	if err != nil {
		t.Logf("remove what the test left: %v", err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, schema := range schemas {
		if _, err := conn.Exec(ctx, "SET client_min_messages = error; DROP SCHEMA IF EXISTS "+schema+" CASCADE"); err != nil {
			t.Logf("remove what the test left: %v", err)
		}
	}
}

// StartDurable starts a server whose commits are on disk, for measurements, and
// tells where it is and how it is stopped.
func StartDurable() (url string, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "luanette-pg-")
	if err != nil {
		return "", nil, err
	}
	c, err := newCluster(dir)
	if err == nil {
		err = c.furnish()
	}
	if err == nil {
		err = c.start("fsync=on", "full_page_writes=on", "autovacuum=on", "max_wal_size=1GB", "shared_buffers=128MB")
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	url, _, _ = strings.Cut(c.url(""), "&search_path=")
	return url, func() error { return errors.Join(c.stop("fast"), os.RemoveAll(dir)) }, nil
}

// Server is a Postgres server of a test's own, which it may stop and start.
type Server struct {
	URL string
	c   *cluster
}

// StartServer starts a server and ends it with the test.
func StartServer(t testing.TB) *Server {
	t.Helper()
	if c, err := shared(); err != nil || c == nil { // it has the template
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
	s := &Server{URL: c.url("public"), c: c}
	using, err := c.hold("users", syscall.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop(t, "immediate")
		_ = using.Close()
		_ = os.RemoveAll(dir)
	})
	common, _ := shared()
	if err := c.run("cp", "-a", common.path("template"), c.path("data")); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	if err := c.guard(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Start starts it after Stop, on what it kept. Its disk is not waited for, so
// only the machine's own crash could lose what was committed.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.c.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop stops it: "fast" ends connections in an orderly way, "immediate" is a
// crash. A server that does not run is left alone.
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
