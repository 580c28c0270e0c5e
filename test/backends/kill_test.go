package backends_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

// The test binary is also a backend that writes numbers to a file.
func TestMain(m *testing.M) {
	if folder := os.Getenv("LUANETTE_TEST_NUMBERS"); folder != "" {
		if err := serveNumbers(folder, os.Getenv("LUANETTE_TEST_LISTEN")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// numbers has a tool that appends a number to a file, and one that only reads.
type numbers struct{ file *os.File }

func (s numbers) Tools(context.Context) ([]tool.Info, error) {
	input := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	return []tool.Info{
		{Ref: tool.Ref{Name: "read"}, Input: input, Hints: tool.Hints{ReadOnly: true}},
		{Ref: tool.Ref{Name: "append"}, Input: input},
		{Ref: tool.Ref{Name: "slow"}, Input: input},
	}, nil
}

func (s numbers) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	var in struct{ N int }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	if call.Ref.Name == "slow" {
		time.Sleep(200 * time.Millisecond)
	}
	if call.Ref.Name == "append" {
		if _, err := fmt.Fprintln(s.file, in.N); err != nil { // one write of a file opened to append
			return tool.Result{}, err
		}
	}
	return tool.Output(strconv.Itoa(in.N), in)
}

func serveNumbers(folder, listen string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	file, err := os.OpenFile(filepath.Join(folder, "numbers"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	b, err := hootserver.Listen(ctx, hootserver.Options{
		Name: "numbers", Listen: listen, Source: numbers{file}, Grace: clocktest.Timeout, DisconnectWait: clocktest.Timeout,
	})
	if err != nil {
		return err
	}
	fmt.Println(b.Addr())
	return b.Serve(ctx)
}

// backendProcess is the backend numbers as a process of its own, which can be ended and
// started again at the same address.
type backendProcess struct {
	*testing.T
	folder, listen string
	cmd            *exec.Cmd
}

func (s *backendProcess) start() {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	s.cmd = exec.Command(self)
	s.cmd.Env = append(os.Environ(), "LUANETTE_TEST_NUMBERS="+s.folder, "LUANETTE_TEST_LISTEN="+s.listen)
	s.cmd.Stderr = s.Output()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.Fatalf("the backend ended before it listened: %v", err)
	}
	s.listen = strings.TrimSpace(line)
}

func (s *backendProcess) end(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig) // it may have ended already
	_ = s.cmd.Wait()              // the error says that it was killed
}

// written counts how often each number is in the file.
func (s *backendProcess) written() map[int]int {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.folder, "numbers"))
	if err != nil {
		s.Fatal(err)
	}
	count := map[int]int{}
	for word := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			s.Fatalf("not a number: %q", word)
		}
		count[n]++
	}
	return count
}

// kills is how often a backend is killed: 50 times, or as often as LUANETTE_TEST_KILLS says.
func kills(t *testing.T) int {
	n := 50
	if text := os.Getenv("LUANETTE_TEST_KILLS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// load calls the backend without pause until it is stopped, and records the outcome of
// every call that appends.
type load struct {
	*testing.T
	manager *upstream.Manager
	next    atomic.Int64
	good    chan struct{} // receives a value for an answer if until waits for one

	mu      sync.Mutex
	done    []int // answered
	undone  []int // failed with ErrNotSent, so not executed
	unknown []int // failed otherwise
}

func (l *load) run(ctx context.Context) {
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for ctx.Err() == nil {
				l.call("append")
				l.call("read")
			}
		})
	}
	work.Wait()
}

// call makes one call. An answer must be that to this call.
func (l *load) call(name string) {
	n := int(l.next.Add(1))
	result, err := l.manager.Call(l.Context(), tool.Call{
		Ref: tool.Ref{Space: "numbers", Name: name}, Args: json.RawMessage(`{"n":` + strconv.Itoa(n) + `}`),
	})
	view, _ := result.View()
	if err == nil && (view.IsError || view.Text() != strconv.Itoa(n) || string(view.Structured) != fmt.Sprintf(`{"N":%d}`, n)) {
		l.Errorf("%s %d was answered by %s", name, n, result.Raw)
	}
	if err == nil {
		select {
		case l.good <- struct{}{}:
		default:
		}
	}
	if name == "read" {
		if err != nil {
			l.Errorf("read %d may be repeated, but failed: %v", n, err)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.done = append(l.done, n)
	case errors.Is(err, upstream.ErrNotSent):
		l.undone = append(l.undone, n)
	default:
		l.unknown = append(l.unknown, n)
	}
}

// until waits for that many more answers.
func (l *load) until(more int) {
	l.Helper()
	timeout := time.After(clocktest.Timeout)
	for range more {
		select {
		case <-l.good:
		case <-timeout:
			l.Fatal("no more answers arrived")
		}
	}
}

// check compares the outcomes with the numbers that were written.
func (l *load) check(written map[int]int) {
	l.Helper()
	for n, times := range written {
		if times > 1 {
			l.Errorf("%d was written %d times", n, times)
		}
	}
	for _, n := range l.done {
		if written[n] != 1 {
			l.Errorf("%d was answered and written %d times", n, written[n])
		}
	}
	for _, n := range l.undone {
		if written[n] != 0 {
			l.Errorf("%d failed with ErrNotSent, and was written", n)
		}
	}
	l.Logf("%d answered, %d not executed, %d unknown", len(l.done), len(l.undone), len(l.unknown))
}

func newLoad(t *testing.T) (*load, *backendProcess) {
	t.Helper()
	s := &backendProcess{T: t, folder: t.TempDir(), listen: "tcp://" + netguardtest.ReservedAddress()}
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	bus := event.New(event.BusOptions{})
	sub := bus.Subscribe(event.Options{Types: []string{"upstream.connected"}})
	defer sub.Close()
	l := &load{T: t, good: make(chan struct{}), manager: upstream.New(upstream.Options{Events: bus})}
	t.Cleanup(l.manager.Close)
	if err := l.manager.Add(upstream.Spec{Name: "numbers", Settings: upstream.Settings{URL: "zmq+" + s.listen, Wait: duration.Duration(time.Minute)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l, s
}

// A backend is killed again and again under load. No answer is lost or goes to another
// call, and calls that only read always succeed. Other calls are executed at most once,
// and those that fail with ErrNotSent never.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	l, s := newLoad(t)
	ctx, stop := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() { l.run(ctx) })
	for range kills(t) {
		l.until(50)
		s.end(syscall.SIGKILL)
		s.start()
	}
	l.until(50)
	stop()
	calling.Wait()
	l.check(s.written())
	if len(l.unknown) == 0 {
		t.Error("no call was running at any of the kills, so the test checked nothing")
	}
}

// A backend that is terminated and started again under load answers every call, and
// executes it once.
func TestRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	l, s := newLoad(t)
	ctx, stop := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() { l.run(ctx) })
	for range 10 {
		l.until(50)
		s.end(syscall.SIGTERM)
		s.start()
	}
	l.until(50)
	stop()
	calling.Wait()
	l.check(s.written())
	if n := len(l.undone) + len(l.unknown); n > 0 {
		t.Errorf("%d calls were not answered", n)
	}
}
