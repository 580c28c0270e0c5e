package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// A server that is killed and restarted 50 times while eight clients call it:
// each call of a reading tool succeeds, and each call of a writing tool succeeds
// or fails with unavailable.
func TestKilledAndRestartedFiftyTimesUnderLoad(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func() http.Handler{"legacy": legacyHandler, "modern": modernHandler} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httpServer(t, handler, upstream.Spec{})
			h := upstreamtest.Start(t, srv)
			var reads, writes, lost atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						text := fmt.Sprint(i, "/", n)
						if i%2 == 0 {
							if got := h.Echo(t, text); got != text {
								t.Errorf("echo of %q said %q", text, got)
							}
							reads.Add(1)
							continue
						}
						args, _ := json.Marshal(map[string]string{"text": text})
						result, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("write"), Args: args})
						switch view, _ := result.View(); {
						case err == nil && view.Text() == text:
							writes.Add(1)
						case fault.CodeOf(err) == fault.Unavailable:
							lost.Add(1)
						default:
							t.Errorf("write of %q gave %s, %v", text, result.Raw, err)
						}
					}
				})
			}
			for range 50 {
				srv.Kill(t)
				srv.Restart(t)
				before := reads.Load() + writes.Load()
				clocktest.Await(t, func() bool { return reads.Load()+writes.Load() > before })
			}
			stop()
			wg.Wait()
			t.Logf("%d reads, %d writes, %d writes with an unknown outcome", reads.Load(), writes.Load(), lost.Load())
		})
	}
}

// If a child process is killed between calls, the next call takes longer but does
// not fail, even if its tool must not be repeated and the process takes long to
// start.
func TestProcessKilledBetweenCallsCausesNoError(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"modern", "legacy"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			spec := stdioSpec(t, "sdk")
			spec.Protocol = protocol
			spec.Wait = duration.Duration(time.Millisecond) // less than any program needs
			srv := stdioServer(t, spec)
			h := upstreamtest.Start(t, srv)
			for i := range 10 {
				h.Echo(t, fmt.Sprint(i))
				victim := pids{spec.Env["PID_DIR"]}.alive(t)[0]
				srv.Kill(t)
				// Until then one of its threads may still read the next call.
				clocktest.Await(t, func() bool { return syscall.Kill(victim, 0) != nil })
				h.Text(t, "write", json.RawMessage(`{"text":"x"}`))
			}
		})
	}
}

// A call that a process had not begun to read when it ended is sent to the next
// one, even if the tool must not be repeated.
func TestCallThatAnEndedProcessNeverReadIsRepeated(t *testing.T) {
	t.Parallel()
	srv := stdioServer(t, stdioSpec(t, "reads one call"))
	h := upstreamtest.Start(t, srv)
	first := make(chan error)
	go func() {
		_, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("write")})
		first <- err
	}()
	for h.Await(t, "upstream.stderr").Data.(upstream.Stderr).Line != "thinking" { // it has read this call, and reads no further
	}
	second := make(chan error)
	go func() {
		_, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("write")})
		second <- err
	}()
	clocktest.Await(t, func() bool { st, _ := h.Manager.Status("test"); return st.Stats.InFlight == 2 })
	for range 3 { // they take their turn after the call above
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, _ = h.Manager.Call(ctx, tool.Call{Ref: ref("echo")})
		cancel()
	}
	srv.Kill(t)
	if err := <-first; fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("the call it had read: %v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("the call it had not read: %v", err)
	}
}

func TestChildrenOfAProcessEndWithIt(t *testing.T) {
	t.Parallel()
	srv := stdioServer(t, stdioSpec(t, "has children"))
	srv.Options.StopTimeout = 200 * time.Millisecond
	h := upstreamtest.Start(t, srv)
	all := pids{srv.Spec.Env["PID_DIR"]}
	if n := len(all.alive(t)); n != 2 {
		t.Fatalf("%d processes run, want the server and its child", n)
	}
	h.Manager.Close()
	awaitEnded(t, all)
}

// awaitEnded waits until all killed processes have ended.
func awaitEnded(t *testing.T, all pids) {
	t.Helper()
	clocktest.Await(t, func() bool { return len(running(all.all(t))) == 0 })
}

// running returns the processes that are not zombies.
func running(list []int) (alive []int) {
	for _, pid := range list {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil && runtime.GOOS == "linux" {
			continue
		}
		if _, after, ok := bytes.Cut(stat, []byte(") ")); ok && after[0] == 'Z' {
			continue
		}
		if syscall.Kill(pid, 0) == nil {
			alive = append(alive, pid)
		}
	}
	return alive
}

func TestTwoHundredCyclesLeaveNothingBehind(t *testing.T) {
	// Not parallel: it counts goroutines.
	s := newSite(t, modernHandler)
	all := newPids(t)
	o := options(t)
	o.StopTimeout = 100 * time.Millisecond
	cycle := func(m *upstream.Manager, i int) {
		child := stdioSpec(t, "sdk")
		child.Name, child.Env["PID_DIR"] = "child", all.dir
		for _, spec := range []upstream.Spec{{Name: "web", Settings: upstream.Settings{URL: s.url()}}, {Name: "unreachable", Settings: upstream.Settings{URL: "http://127.0.0.1:1"}}} {
			if err := m.Add(spec); err != nil {
				t.Fatal(err)
			}
		}
		if i%4 == 0 {
			if err := m.Add(child); err != nil {
				t.Fatal(err)
			}
		}
		if i%8 == 0 { // sometimes it is used, mostly it is removed before it has started
			if _, err := m.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "child", Name: "cancelled"}}); err != nil && fault.CodeOf(err) != fault.Unavailable {
				t.Error(err)
			}
		}
		for _, name := range []string{"web", "unreachable", "child"} {
			m.Remove(name)
		}
	}
	warm := upstream.New(o)
	cycle(warm, 0)
	warm.Close()
	before := goroutines()
	m := upstream.New(o)
	for i := range 200 {
		cycle(m, i)
	}
	m.Close()
	awaitEnded(t, all)
	clocktest.Await(t, func() bool { return goroutines() <= before })
	if entries, err := os.ReadDir("/proc/self/fd"); err == nil && len(entries) > 200 {
		t.Errorf("%d files are open", len(entries))
	}
}

// goroutines counts those of this package, not those of servers in the test.
func goroutines() int {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("luanette/internal/mcp/upstream."))
}

func TestServerThatDiesMidResponse(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	srv := httpServer(t, func() http.Handler {
		return dying(func() bool { return calls.Add(1) == 1 })
	}, upstream.Spec{})
	h := upstreamtest.Start(t, srv)
	if text := h.Echo(t, "whole"); text != "whole" || calls.Load() != 2 {
		t.Errorf("a reading tool: %q after %d calls", text, calls.Load())
	}
	calls.Store(0)
	_, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("write"), Args: json.RawMessage(`{"text":"x"}`)})
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "outcome is unknown") || calls.Load() != 1 {
		t.Errorf("a writing tool: %v after %d calls", err, calls.Load())
	}
}

// A server that closes its connections without notice, as many do with idle ones,
// causes no error for tools that may be repeated.
func TestServerThatClosesItsConnections(t *testing.T) {
	t.Parallel()
	inner := modernHandler()
	srv := httpServer(t, func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inner.ServeHTTP(w, r)
			if r.Header.Get(wire.HeaderMethod) == wire.MethodToolsCall {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		})
	}, upstream.Spec{})
	h := upstreamtest.Start(t, srv)
	for i := range 20 {
		if text := h.Echo(t, fmt.Sprint(i)); text != fmt.Sprint(i) {
			t.Errorf("echo of %d said %q", i, text)
		}
	}
}

// After a server has given up all idle connections without notice, a call is sent again
// once, on a new connection, not on the next one that the server has given up. A tool
// that writes is not called again, since the server may have acted on the call.
func TestResendUsesANewConnection(t *testing.T) {
	t.Parallel()
	const clients, rounds = 6, 50
	type number struct{}
	var opened, dead, lost atomic.Int64
	var together atomic.Pointer[sync.WaitGroup] // so that each client has a connection of its own
	inner := modernHandler()
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(wire.HeaderMethod) != wire.MethodToolsCall {
			inner.ServeHTTP(w, r)
			return
		}
		if r.Context().Value(number{}).(int64) <= dead.Load() {
			lost.Add(1)
			panic(http.ErrAbortHandler)
		}
		if all := together.Load(); all != nil {
			all.Done()
			all.Wait()
		}
		inner.ServeHTTP(w, r)
	}))
	site.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, number{}, opened.Add(1))
	}
	site.Start()
	t.Cleanup(site.Close)
	h := upstreamtest.Start(t, upstreamtest.Server{Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{URL: site.URL, Wait: duration.Duration(clocktest.Timeout)}}, Options: options(t)})
	// A connection may be idle only after the others were given up. It takes another round
	// then, while a client that tries one after the other loses more than one in all rounds.
	for round := 1; ; round++ {
		dead.Store(0)
		all := &sync.WaitGroup{}
		all.Add(clients)
		together.Store(all)
		var calls sync.WaitGroup
		for i := range clients {
			calls.Go(func() { h.Echo(t, fmt.Sprint(i)) })
		}
		calls.Wait()
		together.Store(nil)
		lost.Store(0)
		dead.Store(opened.Load())
		text := h.Echo(t, "again")
		if text == "again" && lost.Load() == 1 {
			break
		}
		if text != "again" || round == rounds {
			t.Fatalf("%q after %d calls were lost, want 1", text, lost.Load())
		}
	}
	dead.Store(math.MaxInt64) // also those that are opened from now on
	if _, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("write"), Args: json.RawMessage(`{"text":"x"}`)}); fault.CodeOf(err) != fault.Unavailable || lost.Load() != 2 {
		t.Errorf("a tool that writes: %v after %d calls were lost", err, lost.Load())
	}
}

// dying aborts the response to a tool call if now returns true.
func dying(now func() bool) http.Handler {
	inner := modernHandler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(wire.HeaderMethod) == wire.MethodToolsCall && now() {
			w.Header().Set("Content-Type", wire.ContentEvent)
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	})
}

func TestPortTakenBySomethingElse(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"a web site":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>welcome") },
		"nothing useful": func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"an API": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", wire.ContentJSON)
			fmt.Fprint(w, `{"status":"ok"}`)
		},
		"a broken gateway": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := upstreamtest.Open(t, httpServer(t, func() http.Handler { return handler }, upstream.Spec{}))
			e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting)
			if e.Error == "" || e.DelayMS == 0 {
				t.Errorf("event = %+v", e)
			}
		})
	}
	t.Run("no http at all", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, "220 mail ready\r\n")
				conn.Close()
			}
		})
		t.Cleanup(func() { listener.Close(); wg.Wait() })
		srv := upstreamtest.Server{Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{URL: "http://" + listener.Addr().String()}}, Options: options(t)}
		h := upstreamtest.Open(t, srv)
		h.Await(t, "upstream.reconnecting")
	})
	t.Run("an unknown name", func(t *testing.T) {
		t.Parallel()
		h := upstreamtest.Open(t, upstreamtest.Server{Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{URL: "http://unknown.invalid/mcp"}}, Options: options(t)})
		if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); !strings.Contains(e.Error, "unknown.invalid") {
			t.Errorf("event = %+v", e)
		}
	})
}

func TestHungServerDoesNotHoldUpRemoval(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	srv := httpServer(t, func() http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-released:
			}
		})
	}, upstream.Spec{})
	t.Cleanup(func() { close(released) })
	h := upstreamtest.Open(t, srv)
	h.Await(t, "upstream.connecting")
	if !h.Manager.Remove("test") {
		t.Error("it was not there")
	}
	h.Manager.Close() // would block if the attempt were not cancelled
	if _, ok := h.Manager.Status("test"); ok {
		t.Error("it is still there")
	}
}
