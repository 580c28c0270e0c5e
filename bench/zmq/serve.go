package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

func serveZMQ(ctx context.Context) error {
	b, err := hootserver.Listen(ctx, hootserver.Options{Name: "bench", Listen: "tcp://127.0.0.1:0", Broadcast: "tcp://127.0.0.1:0", Source: echo{}})
	if err != nil {
		return err
	}
	fmt.Println("zmq+" + b.Addr())
	return b.Serve(ctx)
}

func serveHTTP(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	echoHub := hub.New(hub.Options{Name: "bench", Version: "1", Tools: echo{}})
	server := &http.Server{Handler: echoHub.Handler(), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// server is one of the two, running.
type server struct {
	role string
	url  string
	cmd  *exec.Cmd
}

func start(ctx context.Context, role string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{role: role, cmd: exec.CommandContext(ctx, self, "-role", role)}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s.url = strings.TrimSpace(line)
	return s, err
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill() // it has nothing to lose
	_ = s.cmd.Wait()
}

// processor is how much processor time a process has used. Linux counts it in
// hundredths of a second.
func processor(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const user, system = 11, 12
	if len(fields) <= system {
		return 0
	}
	u, _ := strconv.Atoi(fields[user])
	k, _ := strconv.Atoi(fields[system])
	return time.Duration(u+k) * 10 * time.Millisecond
}
