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
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

// The test binary is also a backend that leaves marks in a file.
func TestMain(m *testing.M) {
	if folder := os.Getenv("LUANETTE_TEST_MARKS"); folder != "" {
		if err := serveMarks(folder, os.Getenv("LUANETTE_TEST_LISTEN")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// marks has a tool that changes the world and one that only looks.
type marks struct{ file *os.File }

func (s marks) Tools(context.Context) ([]tool.Info, error) {
	input := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	return []tool.Info{
		{Ref: tool.Ref{Name: "look"}, Input: input, Hints: tool.Hints{ReadOnly: true}},
		{Ref: tool.Ref{Name: "mark"}, Input: input},
	}, nil
}

func (s marks) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	var in struct{ N int }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	if call.Ref.Name == "mark" {
		if _, err := fmt.Fprintln(s.file, in.N); err != nil { // one write of a file opened to append
			return tool.Result{}, err
		}
	}
	return tool.Output(strconv.Itoa(in.N), in)
}

func serveMarks(folder, listen string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	file, err := os.OpenFile(filepath.Join(folder, "marks"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	b, err := hootserver.Listen(ctx, hootserver.Options{
		Name: "marks", Listen: listen, Source: marks{file}, Grace: clocktest.Timeout, DisconnectWait: clocktest.Timeout,
	})
	if err != nil {
		return err
	}
	fmt.Println(b.Addr())
	return b.Serve(ctx)
}

// scribe is a marks backend as a process of its own, which can be ended and
// started again at the same address.
type scribe struct {
	*testing.T
	folder, listen string
	cmd            *exec.Cmd
}

func (s *scribe) start() {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	s.cmd = exec.Command(self)
	s.cmd.Env = append(os.Environ(), "LUANETTE_TEST_MARKS="+s.folder, "LUANETTE_TEST_LISTEN="+s.listen)
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

func (s *scribe) end(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig) // it may be gone already
	_ = s.cmd.Wait()              // killed is how it ends
}

// left counts the marks by number.
func (s *scribe) left() map[int]int {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.folder, "marks"))
	if err != nil {
		s.Fatal(err)
	}
	count := map[int]int{}
	for word := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			s.Fatalf("a mark that is none: %q", word)
		}
		count[n]++
	}
	return count
}

// kills is how often a backend is killed; LUANETTE_TEST_KILLS says otherwise.
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

// load calls the backend without pause until told to stop, and accounts for every
// call: what was answered, what was not made, and what nobody can know.
type load struct {
	*testing.T
	manager *upstream.Manager
	next    atomic.Int64
	good    chan struct{} // an answer, for who waits for one

	mu      sync.Mutex
	done    []int // marks that were answered
	undone  []int // that were said not to have been made
	unknown []int
}

func (l *load) run(ctx context.Context) {
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for ctx.Err() == nil {
				l.call("mark")
				l.call("look")
			}
		})
	}
	work.Wait()
}

// call makes one call, which must have the answer to itself or an error that says
// how things stand.
func (l *load) call(name string) {
	n := int(l.next.Add(1))
	result, err := l.manager.Call(l.Context(), tool.Call{
		Ref: tool.Ref{Space: "marks", Name: name}, Args: json.RawMessage(`{"n":` + strconv.Itoa(n) + `}`),
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
	if name == "look" {
		if err != nil {
			l.Errorf("look %d only looks, and may be tried again: %v", n, err)
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

// until waits for so many more answers.
func (l *load) until(more int) {
	l.Helper()
	enough := time.After(time.Minute)
	for range more {
		select {
		case <-l.good:
		case <-enough:
			l.Fatal("no more answers come")
		}
	}
}

// check holds what was said against what was done.
func (l *load) check(left map[int]int) {
	l.Helper()
	for n, times := range left {
		if times > 1 {
			l.Errorf("mark %d was made %d times", n, times)
		}
	}
	for _, n := range l.done {
		if left[n] != 1 {
			l.Errorf("mark %d was answered and made %d times", n, left[n])
		}
	}
	for _, n := range l.undone {
		if left[n] != 0 {
			l.Errorf("mark %d was said not to be made, and was", n)
		}
	}
	l.Logf("%d marks answered, %d not made, %d unknown", len(l.done), len(l.undone), len(l.unknown))
}

func newLoad(t *testing.T) (*load, *scribe) {
	t.Helper()
	s := &scribe{T: t, folder: t.TempDir(), listen: "tcp://" + netguardtest.ReservedAddress()}
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	bus := event.New(event.BusOptions{})
	sub := bus.Subscribe(event.Options{Types: []string{"upstream.connected"}})
	defer sub.Close()
	l := &load{T: t, good: make(chan struct{}), manager: upstream.New(upstream.Options{Events: bus})}
	t.Cleanup(l.manager.Close)
	if err := l.manager.Add(upstream.Spec{Name: "marks", URL: "zmq+" + s.listen, Wait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l, s
}

// A backend is killed again and again while calls are made of it. No answer is
// lost or goes to another call; what only looks always succeeds; what changes the
// world is done once, or not at all, or nobody claims to know.
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
	l.check(s.left())
	if len(l.unknown) == 0 {
		t.Error("no call was under way at any of the kills: the test shows nothing")
	}
}

// One that is told to end and started again costs nobody anything: every call is
// made once and answered.
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
	l.check(s.left())
	if n := len(l.undone) + len(l.unknown); n > 0 {
		t.Errorf("%d calls were not answered", n)
	}
}
