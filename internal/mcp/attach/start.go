package attach

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
)

// Starter starts a server in the background if there is none.
type Starter struct {
	Place  Place
	Args   []string // of this program, such as serve --data DIR
	Folder string   // that the server runs in
	Find   func(ctx context.Context) (Server, error)
}

// Limits of a server that starts in the background.
const (
	startTimeout = 60 * time.Second // for it to listen; upstreams connect later
	maxLog       = 10 << 20         // bytes of the log, after which a new one is begun
	startPoll    = 25 * time.Millisecond
)

// FindOrStart returns the running server, or starts one. When many processes call it at
// once, one of them starts the server and the others wait for it.
func (s *Starter) FindOrStart(ctx context.Context) (Server, error) {
	if found, err := s.Find(ctx); err == nil {
		return found, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fault.New(fault.Timeout, "no server within %s", startTimeout))
	defer cancel()
	lock, err := filelock.Wait(ctx, s.Place.file("start"))
	if err != nil {
		return Server{}, fault.Wrap(fault.Unavailable, err, "start a server in the background")
	}
	defer func() { _ = lock.Unlock() }() // nothing is lost with it
	if found, err := s.Find(ctx); err == nil {
		return found, nil
	}
	return s.start(ctx)
}

// start starts the server and waits until it can be found.
func (s *Starter) start(ctx context.Context) (Server, error) {
	log, err := openLog(s.Place.Log())
	if err != nil {
		return Server{}, fault.Wrap(fault.Config, err, "write the log of the server in the background")
	}
	defer log.Close()
	begin, _ := log.Seek(0, 2) // what it writes is shown if it ends at once
	program, err := os.Executable()
	if err != nil {
		return Server{}, fault.Wrap(fault.Internal, err, "find this program")
	}
	cmd := exec.Command(program, s.Args...) //nolint:noctx // it lives longer than this process
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.Folder
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return Server{}, fault.Wrap(fault.Unavailable, err, "start a server in the background")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		if found, err := s.Find(ctx); err == nil {
			return found, nil
		}
		select {
		case <-tick.C:
		case <-ended:
			return Server{}, fault.New(fault.Unavailable, "the server in the background ended: %s", lastLines(s.Place.Log(), begin)).
				WithHint("its log is %s", s.Place.Log())
		case <-ctx.Done():
			return Server{}, fault.Wrap(fault.Timeout, context.Cause(ctx), "start a server in the background").WithHint("its log is %s", s.Place.Log())
		}
	}
}

// openLog opens the log to append to it. A large one is kept aside.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		fmt.Fprintf(log, "\n%s started in the background\n", time.Now().UTC().Format(time.RFC3339))
	}
	return log, err
}

// lastLines returns what a log says after a position, in short.
func lastLines(path string, from int64) string {
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) < from {
		return "its log cannot be read"
	}
	lines := strings.Split(string(bytes.TrimSpace(text[from:])), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}
