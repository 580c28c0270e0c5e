package upstream

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// maxFrames is how many functions of this package a call may pass on its way to
// the operating system or to net/http.
const maxFrames = 10

func TestCallPathIsShort(t *testing.T) {
	t.Parallel()
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		var stacks stackRecorder
		dial := func(_ context.Context, _ Spec, hooks Hooks) (Transport, error) { return dialPipe(hooks, &stacks) }
		callOnce(t, Options{Dialers: map[string]Dialer{"pipe": dial}}, Spec{Name: "test", Settings: Settings{URL: "pipe://here"}})
		stacks.check(t, "(*stdioWriter).write")
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", wire.ContentJSON)
			_, _ = w.Write(respondTo(body))
		}))
		t.Cleanup(server.Close)
		var stacks stackRecorder
		proxy := func(*http.Request) (*url.URL, error) { // net/http calls it when it sends a request
			stacks.record()
			return nil, nil
		}
		callOnce(t, Options{Proxy: proxy}, Spec{Name: "test", Settings: Settings{URL: server.URL}})
		stacks.check(t, "(*httpClient).send")
	})
}

// callOnce connects a manager to a server and calls its tool.
func callOnce(t *testing.T, o Options, spec Spec) {
	t.Helper()
	o.Events = event.New(event.BusOptions{})
	connected := o.Events.Subscribe(event.Options{Types: []string{"upstream.connected"}})
	m := New(o)
	t.Cleanup(m.Close)
	if err := m.Add(spec); err != nil {
		t.Fatal(err)
	}
	if _, err := connected.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	result, err := m.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "test", Name: "echo"}})
	if err != nil || string(result.Raw) != `{"content":[]}` {
		t.Fatalf("result = %s, %v", result.Raw, err)
	}
}

// respondTo is the response of a legacy server to a message.
func respondTo(message []byte) []byte {
	m, _ := wire.Parse(message)
	result := `{"content":[]}`
	switch m.Method {
	case wire.MethodDiscover:
		refused := wire.Answer(m.ID, nil, wire.Errorf(wire.CodeMethodNotFound, "no"))
		return refused.Append(nil)
	case wire.MethodInitialize:
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`
	case wire.MethodToolsList:
		result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
	}
	answer := wire.Answer(m.ID, json.RawMessage(result), nil)
	return answer.Append(nil)
}

// dialPipe is a stdio transport to a goroutine instead of a process.
func dialPipe(hooks Hooks, stacks *stackRecorder) (Transport, error) {
	stdin, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	output, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &pipeTransport{stdioTransport: newStdioTransport(hooks, recordingPipe{input, stacks}, 1<<20), input: input}
	p.wg.Go(func() {
		p.readMessages(output)
		output.Close()
		p.fail(io.EOF)
	})
	p.wg.Go(func() {
		defer stdin.Close()
		defer stdout.Close()
		for in := json.NewDecoder(stdin); ; {
			var message json.RawMessage
			if in.Decode(&message) != nil {
				return
			}
			_, _ = stdout.Write(append(respondTo(message), '\n'))
		}
	})
	return p, nil
}

type pipeTransport struct {
	*stdioTransport
	input *os.File
}

// Traits are not those of a process, which there is none.
func (*pipeTransport) Traits() Traits { return Traits{} }

func (p *pipeTransport) Close() {
	p.input.Close()
	p.wg.Wait()
}

// recordingPipe records who writes to it.
type recordingPipe struct {
	*os.File
	stacks *stackRecorder
}

func (p recordingPipe) Write(data []byte) (int, error) {
	p.stacks.record()
	return p.File.Write(data)
}

var _ inputPipe = recordingPipe{}

// stackRecorder stores the functions of the last recorded stack that belong to a
// Manager.Call, outermost first.
type stackRecorder struct {
	mu   sync.Mutex
	path []string
}

func (r *stackRecorder) record() {
	counters := make([]uintptr, 100)
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters)])
	var path []string
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		path = append(path, frame.Function)
		if strings.HasSuffix(frame.Function, "(*Manager).Call") {
			slices.Reverse(path)
			r.mu.Lock()
			r.path = path
			r.mu.Unlock()
			return
		}
	}
}

// check fails if the path has too many functions of this package, or if it returns
// to this package from another one. last is the last function of this package.
func (r *stackRecorder) check(t *testing.T, last string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var own []string
	for _, function := range r.path {
		name, ours := strings.CutPrefix(function, "github.com/luanette/luanette/internal/mcp/upstream.")
		if !ours || strings.Contains(name, "Test") || strings.Contains(name, "recordingPipe") {
			break
		}
		own = append(own, name)
	}
	if len(own) == 0 || own[len(own)-1] != last {
		t.Fatalf("the call does not lead straight to %s:\n%s", last, strings.Join(r.path, "\n"))
	}
	if len(own) > maxFrames {
		t.Errorf("%d functions, at most %d are allowed:\n%s", len(own), maxFrames, strings.Join(own, "\n"))
	}
	t.Logf("%d functions: %s", len(own), strings.Join(own, " → "))
}
