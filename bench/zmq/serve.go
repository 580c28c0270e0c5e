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
	"strings"
	"time"

	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

func serveZMQ(ctx context.Context, packed bool) error {
	b, err := hootserver.Listen(ctx, hootserver.Options{Name: "bench", OfferMsgPack: packed, Listen: "tcp://127.0.0.1:0", Broadcast: "tcp://127.0.0.1:0", Source: echo{}})
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

// server is a process that serves the tools over ZeroMQ or HTTP.
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
	_ = s.cmd.Process.Kill() // it has no state
	_ = s.cmd.Wait()
}
