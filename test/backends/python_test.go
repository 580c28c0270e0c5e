// Package backends_test tests backends and clients in other languages, written after
// docs/backends.md, with ours.
package backends_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

const (
	python  = "/usr/bin/python3" // the one Debian's python3-zmq belongs to
	program = "../../examples/backend.py"
	old     = "python/hoot01.py"
)

// needPython skips the test if the Debian packages are missing.
func needPython(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(python, "-c", "import zmq, msgpack").CombinedOutput(); err != nil {
		t.Skipf("no python3-zmq or python3-msgpack (apt-get install python3-zmq python3-msgpack): %v: %s", err, out)
	}
}

// startPython runs the example and returns the endpoint it listens on.
func startPython(t *testing.T) string {
	t.Helper()
	needPython(t)
	addr, _ := startBackend(t, nil, python, program, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*")
	return addr
}

// startBackend runs a backend, which prints the endpoint it listens on.
func startBackend(t *testing.T, env []string, command string, args ...string) (addr string, pid int) {
	t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the backend ended before it listened: %v", err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}

// client is a minimal client.
type client struct {
	*testing.T
	socket *zmtp.Socket
}

func connect(t *testing.T, addr string) client {
	t.Helper()
	socket, err := zmtp.Dial(t.Context(), zmtp.Dealer, addr, zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(socket.Close)
	return client{t, socket}
}

// ask sends a message and returns the answer, which has its id and trace.
func (c client) ask(f hootproto.Message) hootproto.Message {
	c.Helper()
	if err := c.socket.Send(c.Context(), f.Frames()); err != nil {
		c.Fatal(err)
	}
	m, err := c.socket.Recv(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	answer, err := hootproto.Parse(m)
	if err != nil {
		c.Fatal(err)
	}
	if answer.ID != f.ID || answer.Traceparent != f.Traceparent {
		c.Fatalf("asked %s in %q, answered %s in %q", f.ID, f.Traceparent, answer.ID, answer.Traceparent)
	}
	return answer
}

// call calls a tool, and returns the id it had as well.
func (c client) call(name, arguments string) (hootproto.Outcome, hootproto.ID) {
	c.Helper()
	f := hootproto.New(hootproto.Request, "greeter")
	f.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	f, err := f.With(hootproto.JSON, hootproto.Call{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		c.Fatal(err)
	}
	answer := c.ask(f)
	var outcome hootproto.Outcome
	if err := answer.Decode(&outcome); err != nil || answer.Command != hootproto.Reply {
		c.Fatalf("%s: %v", answer.Command, err)
	}
	return outcome, f.ID
}

// catalog returns the backend's catalog.
func (c client) catalog() (catalog hootproto.Catalog) {
	c.Helper()
	answer := c.ask(hootproto.New(hootproto.Ready, ""))
	if err := answer.Decode(&catalog); err != nil || answer.Command != hootproto.Ready {
		c.Fatalf("%s: %v", answer.Command, err)
	}
	return catalog
}

func TestPythonBackend(t *testing.T) {
	t.Parallel()
	c := connect(t, startPython(t))

	catalog := c.catalog()
	if catalog.Protocol != hootproto.Hoot01 || len(catalog.Tools) != 3 || catalog.Tools[0].Name != "greet" || !catalog.Tools[0].ReadOnly || len(catalog.Tools[0].InputSchema) == 0 {
		t.Errorf("catalog %+v", catalog)
	}
	if beat := c.ask(hootproto.New(hootproto.Heartbeat, "greeter")); beat.Command != hootproto.Heartbeat || beat.Content != hootproto.Empty {
		t.Errorf("the heartbeat is answered by %+v", beat)
	}
	got, _ := c.call("greet", `{"name":"Ann"}`)
	if got.Err != nil || got.Output.Text != "Hello, Ann!" || string(got.Output.Data) != `{"length": 3}` {
		t.Errorf("greet: %+v", got)
	}
	for arguments, code := range map[string]string{`{}`: "invalid_params", `{"a":1,"b":0}`: "internal_error", `{"a":1,"b":"x"}`: "invalid_params"} {
		if got, _ := c.call("divide", arguments); got.Err == nil || got.Err.Code != code || got.Err.Message == "" {
			t.Errorf("divide %s: %+v", arguments, got.Err)
		}
	}
	if got, _ := c.call("nonsense", `{}`); got.Err == nil || got.Err.Code != hootproto.CodeToolNotFound {
		t.Errorf("nonsense: %+v", got.Err)
	}
	if err := c.socket.Send(t.Context(), zmtp.Message{[]byte("not HOOT01")}); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.call("greet", `{"name":"Bob"}`); got.Err != nil {
		t.Errorf("after nonsense: %+v", got.Err)
	}
}

// A call's progress comes as a broadcast that names the request.
func TestPythonBroadcasts(t *testing.T) {
	t.Parallel()
	c := connect(t, startPython(t))
	sub, err := zmtp.Dial(t.Context(), zmtp.Sub, c.catalog().Broadcasts, zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Close)
	sub.Subscribe("")
	if err := sub.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	received := make(chan zmtp.Message)
	go func() {
		defer close(received)
		if m, err := sub.Recv(t.Context()); err == nil {
			received <- m
		}
	}()
	for { // broadcasts before the publisher has the subscription are lost
		_, id := c.call("greet", `{"name":"Ann"}`)
		asked[id.String()] = true
		select {
		case m, ok := <-received:
			if !ok {
				t.Fatal("no broadcast")
			}
			raw, err := hootproto.ParseBroadcast(m[0])
			if err != nil {
				t.Fatal(err)
			}
			b, err := raw.Decode()
			p, isProgress := b.(hootproto.Progress)
			if err != nil || !isProgress || !asked[p.JobID] || p.Percent != 0.5 || p.Message == "" {
				t.Errorf("received %+v, %v", b, err)
			}
			return
		default:
		}
	}
}
