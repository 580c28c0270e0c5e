package attach_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/attach"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// tools are the tools of the servers in these tests: one answers, one asks the client, and
// one waits until it is cancelled.
type tools struct{ called, cancelled chan struct{} }

func (tools) Tools(context.Context) (list []tool.Info, err error) {
	for _, name := range []string{"ask", "echo", "wait"} {
		list = append(list, tool.Info{Ref: tool.Ref{Name: name}, Input: json.RawMessage(`{"type":"object"}`)})
	}
	return list, nil
}

func (t tools) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	switch call.Ref.Name {
	case "ask":
		answers, err := call.Caller.Ask(ctx, []tool.Question{{Method: "elicitation/create", Params: json.RawMessage(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)}})
		if err != nil {
			return tool.Result{}, err
		}
		return tool.Output("answered "+string(answers[0]), nil)
	case "wait":
		t.called <- struct{}{}
		<-ctx.Done()
		t.cancelled <- struct{}{}
		return tool.Result{}, ctx.Err()
	}
	return tool.Output("echo "+string(call.Args), nil)
}

// server is a hub that can be attached to.
type server struct {
	tools
	hub      *hub.Hub
	listener *attach.Listener
	refused  error // by the next reload
}

func startServer(t *testing.T, place attach.Place) *server {
	t.Helper()
	s := &server{tools: tools{make(chan struct{}, 10), make(chan struct{}, 10)}}
	s.hub = hub.New(hub.Options{Name: "test", Version: "1", Tools: s.tools})
	lock, err := attach.Reserve(t.Context(), place, true)
	if err != nil {
		t.Fatal(err)
	}
	s.listener, err = attach.Listen(context.Background(), place, lock, attach.Options{
		Serve: func(ctx context.Context, in io.Reader, out io.Writer, want attach.Want) error {
			if want.Menu != "" {
				_, err := fmt.Fprintf(out, "menu %s\n", want.Menu)
				return err
			}
			return s.hub.ServeStdio(ctx, in, out)
		},
		API: http.NotFoundHandler(),
		Reload: func(context.Context) ([]string, error) {
			return []string{"listen"}, s.refused
		},
		Info: func() attach.Info {
			return attach.Info{Version: "1", PID: os.Getpid(), Data: filepath.Dir(place.Folder), Config: "the.toml"}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// end ends the server, once, as if its process had ended.
func (s *server) end() {
	if s.listener == nil {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.hub.Close(ended) // running requests do not matter
	_ = s.listener.Close() // nothing depends on it
	s.listener = nil
}

// client is an MCP client behind a relay.
type client struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
	err chan error
}

func startClient(t *testing.T, place attach.Place) *client {
	t.Helper()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	c := &client{t, send, bufio.NewScanner(receive), make(chan error, 1)}
	c.out.Buffer(nil, 64<<20)
	relay := attach.Relay{
		Find: func(ctx context.Context) (attach.Server, error) { return attach.Find(ctx, place, false) },
		Log:  func(string) {},
	}
	go func() {
		err := relay.Run(t.Context(), in, out)
		_ = out.Close() // it is a pipe in memory
		c.err <- err
	}()
	return c
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(c.in, line+"\n"); err != nil {
			c.t.Fatal(err)
		}
	}
}

// expect returns the next message, which must contain all parts.
func (c *client) expect(parts ...string) string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("no message: %v", c.out.Err())
	}
	for _, part := range parts {
		if !strings.Contains(c.out.Text(), part) {
			c.t.Fatalf("message %s\nlacks %s", c.out.Text(), part)
		}
	}
	return c.out.Text()
}

const (
	initialize = `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	ready      = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func call(id any, name string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, name)
}

// modern is a call of the stateless era.
func modern(id any, name string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, id, name)
}

func newPlace(t *testing.T) attach.Place {
	t.Helper()
	return attach.PlaceOf(t.TempDir(), "the.toml", "sqlite:x")
}

func TestBothErasAndBothDirections(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	s := startServer(t, place)
	c := startClient(t, place)
	c.send(modern(1, "echo"))
	c.expect(`"id":1`, "echo {}")
	c.send(initialize, ready, call(2, "ask"))
	c.expect(`"id":"a"`, `"protocolVersion":"2025-11-25"`)
	c.expect(`"method":"elicitation/create"`, `"id":1`)
	c.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{}}}`)
	c.expect(`"id":2`, "answered")
	c.send(call(3, "wait"))
	<-s.called
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	<-s.cancelled
	c.send("no json", call(4, "echo"))
	c.expect(`"error"`)
	c.expect(`"id":4`, "echo")
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	if c.out.Scan() {
		t.Errorf("after the end: %s", c.out.Text())
	}
	if err := <-c.err; err != nil {
		t.Error(err)
	}
}

func TestTheLastAnswersArrive(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	startServer(t, place)
	c := startClient(t, place)
	c.send(initialize, ready)
	go func() {
		c.send(call(2, "echo"))
		_ = c.in.Close() // the client has nothing more to say
	}()
	c.expect(`"id":"a"`)
	c.expect(`"id":2`, "echo")
	if err := <-c.err; err != nil {
		t.Error(err)
	}
}

// TestAClientThatEndsCancelsItsCalls checks that a killed client leaves no calls behind.
func TestAClientThatEndsCancelsItsCalls(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	s := startServer(t, place)
	found, err := attach.Find(t.Context(), place, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	in, send := io.Pipe()
	relay := attach.Relay{Find: func(context.Context) (attach.Server, error) { return found, nil }, Log: func(string) {}}
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx, in, io.Discard) }()
	if _, err := io.WriteString(send, initialize+"\n"+ready+"\n"+call(1, "wait")+"\n"); err != nil {
		t.Fatal(err)
	}
	<-s.called
	kill()
	<-s.cancelled
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheNextServerContinuesTheSession(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	first := startServer(t, place)
	c := startClient(t, place)
	c.send(initialize, ready, call(1, "ask"))
	c.expect(`"id":"a"`)
	c.expect(`"method":"elicitation/create"`, `"id":1`)
	c.send(call(2, "wait"))
	<-first.called
	first.end()
	got := c.expect("jsonrpc") + c.expect("jsonrpc") + c.expect("jsonrpc")
	for _, part := range []string{`"id":1,"error"`, `"id":2,"error"`, "notifications/cancelled", "requestId"} {
		if !strings.Contains(got, part) {
			t.Errorf("after the end of the server the client got\n%s\nwithout %s", got, part)
		}
	}
	second := startServer(t, place)
	c.expect("notifications/tools/list_changed")
	c.expect("notifications/resources/list_changed")
	c.expect("notifications/prompts/list_changed")
	c.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`) // late, for the first server
	c.send(call(3, "ask"))
	var question struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(c.expect("elicitation/create")), &question); err != nil || string(question.ID) == "1" {
		t.Fatalf("the id of the first server is used again: %s %v", question.ID, err)
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, question.ID))
	c.expect(`"id":3`, "answered", "decline")
	second.end()
}

func TestFind(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	place, other := attach.PlaceOf(data, "the.toml", "x"), attach.PlaceOf(data, "other.toml", "x")
	if _, err := attach.Find(t.Context(), place, true); !errors.Is(err, attach.ErrNone) {
		t.Errorf("without a server: %v", err)
	}
	s := startServer(t, place)
	if found, err := attach.Find(t.Context(), place, false); err != nil || found.Version != "1" {
		t.Errorf("%+v %v", found, err)
	}
	var another *attach.OtherError
	if _, err := attach.Find(t.Context(), other, false); !errors.As(err, &another) || !errors.Is(err, attach.ErrNone) || another.Info.Config != "the.toml" {
		t.Errorf("with another configuration: %v", err)
	}
	if _, err := attach.Find(t.Context(), other, true); err != nil {
		t.Errorf("without a configuration: %v", err)
	}
	found, err := attach.Find(t.Context(), place, false)
	if waiting, failed := found.Reload(t.Context()); err != nil || failed != nil || !slices.Equal(waiting, []string{"listen"}) {
		t.Errorf("Reload = %q, %v, %v", waiting, failed, err)
	}
	s.refused = fault.New(fault.Config, "a mistake").WithHint("repair it")
	if _, err := found.Reload(t.Context()); err == nil || err.Error() != "a mistake" || fault.HintOf(err) != "repair it" {
		t.Errorf("a reload that is refused: %v", err)
	}
	if lock, err := attach.Reserve(t.Context(), place, false); lock != nil || err != nil {
		t.Errorf("the place was reserved twice: %v", err)
	}
	if !s.listener.Retire() {
		t.Error("a server without clients cannot retire")
	}
	if _, err := attach.Find(t.Context(), place, false); !errors.Is(err, attach.ErrNone) {
		t.Errorf("a retired server was found: %v", err)
	}
}

// TestAForeignDataFolderIsNotUsed copies the record of a server into another data folder.
func TestAForeignDataFolderIsNotUsed(t *testing.T) {
	t.Parallel()
	place, copied := newPlace(t), newPlace(t)
	startServer(t, place)
	text, err := os.ReadFile(filepath.Join(place.Folder, place.Name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(copied.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(copied.Folder, copied.Name+".json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := attach.Find(t.Context(), copied, true); !errors.Is(err, attach.ErrNone) {
		t.Errorf("%v", err)
	}
}

// TestALongPath uses a data folder whose path is too long for a socket.
func TestALongPath(t *testing.T) {
	t.Parallel()
	place := attach.PlaceOf(filepath.Join(t.TempDir(), strings.Repeat("long/", 30)), "", "x")
	startServer(t, place)
	c := startClient(t, place)
	c.send(modern(1, "echo"))
	c.expect("echo {}")
}

func TestTheMenuIsPassedOn(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	startServer(t, place)
	found, err := attach.Find(t.Context(), place, false)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var mu sync.Mutex
	in, send := io.Pipe()
	got := make(chan struct{}, 1)
	relay := attach.Relay{Find: func(context.Context) (attach.Server, error) { return found, nil }, Want: attach.Want{Menu: "full"}, Log: func(string) { got <- struct{}{} }}
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(t.Context(), in, lockedWriter{&mu, &out}) }()
	<-got // the stand-in for the server ends at once
	_ = send.Close()
	if err := <-ended; err != nil || !strings.HasPrefix(out.String(), "menu full\n") {
		t.Errorf("%q %v", out.String(), err)
	}
}

type lockedWriter struct {
	mu  *sync.Mutex
	out io.Writer
}

func (w lockedWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(data)
}
