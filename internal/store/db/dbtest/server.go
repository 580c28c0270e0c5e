package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

// programs matches the programs of Postgres on Debian, whatever their version.
const programs = "/usr/lib/postgresql/*/bin/postgres"

// errMissing means that tests on Postgres cannot run here.
var errMissing = errors.New("Postgres is not installed (make system, or Debian's package postgresql): not tested on it")

// settings make a server fast to start, without durability.
var settings = []string{
	"listen_addresses=", "fsync=off", "full_page_writes=off", "autovacuum=off", "max_connections=600", "shared_buffers=32MB",
	"max_locks_per_transaction=256", "max_pred_locks_per_transaction=256", "max_wal_size=256MB",
}

// cluster is a Postgres server in a folder: a template that initdb created, the data of
// the running server, a socket, and lock files.
type cluster struct {
	dir, bin string
	as       *syscall.Credential // the user it runs as; nil means ourselves
}

// newCluster returns the server of a folder, which is created if necessary.
func newCluster(dir string) (*cluster, error) {
	found, err := filepath.Glob(programs)
	if err != nil || len(found) == 0 {
		return nil, errMissing
	}
	slices.Sort(found)
	c := &cluster{dir: dir, bin: filepath.Dir(found[len(found)-1])}
	if c.as, err = ordinary(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if c.as != nil {
		err = os.Chown(dir, int(c.as.Uid), int(c.as.Gid))
	}
	return c, err
}

// ordinary returns the user that Postgres runs as if this process is root, which Postgres
// refuses.
func ordinary() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil // this process's own user
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		gid, other := strconv.ParseUint(u.Gid, 10, 32)
		if err == nil && other == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("root cannot run Postgres, and there is no other user")
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

// url returns the address of a schema of a database. The connect timeout is long because
// the machine may be busy.
func (c *cluster) url(database, schema string) string {
	return fmt.Sprintf("postgres:///%s?user=luanette&host=%s&connect_timeout=60&search_path=%s", database, c.dir, schema)
}

// common is the database for everything that is not a Template.
const common = "postgres"

// command returns a command that runs as the server's user in a session of its own, so
// that it outlives this process. Its output goes to a file.
func (c *cluster) command(name string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(c.path("log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(name, args...) // the process of guard stops it
	cmd.Dir, cmd.Env = c.dir, []string{"PATH=" + c.bin + ":/usr/bin:/bin", "LC_ALL=C"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.as}
	return cmd, nil
}

func (c *cluster) run(name string, args ...string) error {
	cmd, err := c.command(name, args...)
	if err == nil {
		err = cmd.Run()
	}
	return c.because(name, err)
}

// because adds the end of the server's log to err.
func (c *cluster) because(doing string, err error) error {
	if err == nil {
		return nil
	}
	log, _ := os.ReadFile(c.path("log"))
	return fmt.Errorf("%s: %w\n%s", doing, err, log[max(0, len(log)-2000):])
}

// initData creates the data from the template, and the template if there is none.
func (c *cluster) initData() error {
	if _, err := os.Stat(c.path("template")); err != nil {
		err := errors.Join(os.RemoveAll(c.path("making")),
			c.run(filepath.Join(c.bin, "initdb"), "-D", c.path("making"), "-U", "luanette", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US", "--no-sync", "--wal-segsize=1"))
		if err == nil {
			err = os.Rename(c.path("making"), c.path("template"))
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(c.path("data")), c.run("cp", "-a", c.path("template"), c.path("data")))
}

// start starts the server on its data, and returns when it accepts connections.
func (c *cluster) start(more ...string) error {
	options := "-c unix_socket_directories=" + c.dir
	for _, setting := range append(slices.Clone(settings), more...) {
		options += " -c " + setting
	}
	return c.run(filepath.Join(c.bin, "pg_ctl"), "start", "-w", "-t", "120", "-D", c.path("data"), "-o", options)
}

// answers reports whether the server runs. It waits for a server that refuses connections
// at the moment, because others use it.
func (c *cluster) answers(ctx context.Context) (yes bool) {
	ctx, cancel := context.WithTimeout(ctx, clocktest.Timeout)
	defer cancel()
	clocktest.Poll(ctx, func() bool {
		conn, err := pgx.Connect(ctx, c.url(common, "public"))
		if yes = err == nil; yes {
			yes = conn.Close(ctx) == nil
		}
		return !errors.As(err, new(*pgconn.PgError))
	})
	return yes
}

// guard starts a process that stops the server when no process holds the file users any
// more. It waits a moment for the next one.
func (c *cluster) guard() error {
	const script = `until flock -x users true && sleep 2 && flock -xn users pg_ctl stop -D data -m immediate -w
		do [ -e data/postmaster.pid ] || exit; done`
	return c.run("sh", "-c", "("+script+") &")
}

// hold locks a file of the folder until f is closed or this process ends.
func (c *cluster) hold(name string, how int) (f *os.File, err error) {
	if f, err = os.OpenFile(c.path(name), os.O_CREATE|os.O_RDONLY, 0o644); err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// socketFits reports whether dir can hold the server's socket.
func socketFits(dir string) bool {
	return len(filepath.Join(dir, ".s.PGSQL.5432.lock")) < 104 && !strings.ContainsAny(dir, " &?%#")
}
