// Package programtest runs the program `luanette`, which must be in the PATH of the tests,
// in processes of its own: servers that a test kills, freezes and starts again, and commands.
package programtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
)

// ScriptsCache is the variable for the folder of the compiled JavaScript engine. TestMain sets
// it to one that all tests share, since compiling takes a second.
const ScriptsCache = "LUANETTE_SCRIPTS_CACHE"

// Command returns a command that runs the program in a folder. It has the variables HOME, PATH
// and ScriptsCache, and those in env.
func Command(ctx context.Context, folder string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "luanette", args...) // the program under test
	cmd.Dir = folder
	cmd.Env = []string{"HOME=" + folder}
	for _, name := range []string{"PATH", ScriptsCache} {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name)) //nolint:forbidigo // a helper of tests
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// database is the file that a first start leaves. Its tables take most of the time of that
// start.
var database = sync.OnceValues(func() (file []byte, err error) {
	folder, err := os.MkdirTemp("", "luanette-database-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	cmd := Command(context.Background(), folder, nil, "serve", "--listen", "127.0.0.1:0", "--data", ".")
	_, output, err := Listen(cmd)
	if err == nil {
		err = cmd.Process.Signal(os.Interrupt)
		<-output
		err = errors.Join(err, cmd.Wait())
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(folder, "luanette.db"))
})

// DataFolder is the default data folder of a command in a folder.
const DataFolder = ".local/share/luanette"

// CopyDatabase puts a database with tables and nothing in them into a data folder that has
// none yet.
func CopyDatabase(folder string) error {
	path := filepath.Join(folder, "luanette.db")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	file, err := database()
	if err == nil {
		err = errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(path, file, 0o600))
	}
	return err
}

// Listen starts `luanette serve` and waits until it listens. When the process closes its
// standard error, the channel gets all of it and is closed. One that takes too long is ended.
func Listen(cmd *exec.Cmd) (url string, output <-chan string, err error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	defer endIfLate(cmd.Process).Stop()
	var log strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		if _, url, ok := strings.Cut(lines.Text(), "is listening on "); ok {
			rest := make(chan string, 1)
			go func() {
				defer close(rest)
				for lines.Scan() {
					fmt.Fprintln(&log, lines.Text())
				}
				rest <- log.String()
			}()
			return url, rest, nil
		}
	}
	return "", nil, fmt.Errorf("the server ended before it listened: %w\n%s", cmd.Wait(), &log)
}

// endIfLate ends a process after clocktest.Timeout unless the timer is stopped. It then writes
// the stacks of its goroutines to standard error.
func endIfLate(p *os.Process) *time.Timer {
	return time.AfterFunc(clocktest.Timeout, func() {
		if p.Signal(syscall.SIGQUIT) != nil { // Windows has no signals
			_ = p.Kill()
		}
	})
}

// Server is `luanette serve` in a folder, at an address that stays the same.
type Server struct {
	Folder  string
	Address string
	Env     []string // besides HOME and PATH
	Args    []string // besides the address

	mu     sync.Mutex
	cmd    *exec.Cmd
	up     bool
	run    int
	output <-chan string
}

// New returns a server in a folder of its own that has this luanette.toml and an empty database
// in the default data folder. It is not started.
func New(t testing.TB, config string) *Server {
	t.Helper()
	s := &Server{Folder: t.TempDir(), Address: netguardtest.ReservedAddress()}
	s.Configure(t, config)
	if err := CopyDatabase(filepath.Join(s.Folder, DataFolder)); err != nil {
		t.Fatal(err)
	}
	return s
}

// Configure writes luanette.toml.
func (s *Server) Configure(t testing.TB, config string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Folder, "luanette.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// URL is where it listens.
func (s *Server) URL() string { return "http://" + s.Address }

// Command returns a command that runs the program in the server's folder.
func (s *Server) Command(ctx context.Context, args ...string) *exec.Cmd {
	return Command(ctx, s.Folder, s.Env, args...)
}

// Start starts it and waits until it listens. It is killed when the test ends.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.start(t, func(cmd *exec.Cmd) (output <-chan string, err error) {
		_, output, err = Listen(cmd)
		return output, err
	})
}

// Begin starts it without waiting, for one that may not get so far as to listen.
func (s *Server) Begin(t testing.TB) {
	t.Helper()
	s.start(t, func(cmd *exec.Cmd) (<-chan string, error) { return nil, cmd.Start() })
}

func (s *Server) start(t testing.TB, begin func(*exec.Cmd) (<-chan string, error)) {
	t.Helper()
	cmd := s.Command(context.WithoutCancel(t.Context()), append([]string{"serve", "--listen", s.Address}, s.Args...)...)
	cmd.Env = append(cmd.Env, "LUANETTE_LOCAL=owner") // requests of these tests have no credentials
	t.Cleanup(s.Kill)
	output, err := begin(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd, s.output, s.up = cmd, output, true
	s.run++
}

// Run returns whether it runs, and a number that increases with every start and every end.
func (s *Server) Run() (number int, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run, s.up
}

// Signal sends a signal to its process.
func (s *Server) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Kill kills it and waits until its process has ended. One that does not run is left alone.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.up {
		return
	}
	s.up = false // before clients see errors
	s.run++
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Wait waits until its process has ended by itself or by a signal, and returns what it wrote
// to standard error. One that takes too long is ended.
func (s *Server) Wait() (output string, err error) {
	defer endIfLate(s.cmd.Process).Stop()
	output = <-s.output
	err = s.cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = false
	s.run++
	return output, err
}

// Call calls a tool.
func (s *Server) Call(name string, args map[string]any, into any) error {
	const revision = "2026-07-28"
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": name, "arguments": args, "_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
		},
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/mcp", bytes.NewReader(body))
	if err != nil {
		return err
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json",
		"Mcp-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": name,
	} {
		r.Header.Set(key, value)
	}
	response, err := httpjsontest.Client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Error  *struct{ Message string }
		Result struct {
			IsError           bool
			Content           []struct{ Text string }
			StructuredContent json.RawMessage
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	switch {
	case answer.Error != nil:
		return errors.New(answer.Error.Message)
	case answer.Result.IsError:
		return errors.New(answer.Result.Content[0].Text)
	}
	return json.Unmarshal(answer.Result.StructuredContent, into)
}
