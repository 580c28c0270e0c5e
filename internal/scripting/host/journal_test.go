package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/luanette/luanette/internal/base/fault"
)

// disk stores records until it fails.
type disk struct {
	mu      sync.Mutex
	records [][]byte
	left    int // records until the process dies; below zero it never does
}

var errDied = errors.New("the process died")

func (d *disk) Record(data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return errDied
	}
	d.left--
	d.records = append(d.records, slices.Clone(data))
	return nil
}

// all returns the records so far: a timer of the journal may record more at any time.
func (d *disk) all() [][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.records)
}

// services counts the effects that were executed.
type services struct {
	mu    sync.Mutex
	times map[int64]int
}

// live executes effect e: it returns a value or an error that depends on its number.
func (w *services) live(e Effect) func(context.Context) ([]Value, error) {
	return func(context.Context) ([]Value, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.times[e.Seq]++
		if e.Seq%5 == 4 {
			return nil, fault.New(fault.Upstream, "step %d failed", e.Seq).WithHint("try %d", e.Seq+1).WithDetails(e.Seq)
		}
		return []Value{e.Seq, "\x00\xff" + fmt.Sprint(e.Seq), json.RawMessage(`{"n":1}`), nil, 1.5, true}, nil
	}
}

// anyEffect returns a generator. Parallel tests must not share one.
func anyEffect() *rapid.Generator[Effect] { return rapid.Custom(drawEffect) }

func drawEffect(t *rapid.T) Effect {
	value := rapid.OneOf(
		rapid.Just[Value](nil), rapid.Map(rapid.Bool(), func(v bool) Value { return v }),
		rapid.Map(rapid.Int64(), func(v int64) Value { return v }), rapid.Map(rapid.Float64(), func(v float64) Value { return v }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(v []byte) Value { return string(v) }),
		rapid.Just[Value](strings.Repeat("large ", 4000)), rapid.Just[Value](json.RawMessage(`[1,{"a":null}]`)),
	)
	return Effect{
		Name: rapid.SampledFrom([]string{"mcp.call", "fs.write", "clock.now"}).Draw(t, "name"),
		Kind: rapid.SampledFrom([]Kind{Read, Idempotent, Write, Nondeterministic}).Draw(t, "kind"),
		Args: rapid.SliceOfN(value, 0, 4).Draw(t, "args"),
	}
}

// perform runs effects through a Handler, as a script without conditions does, and
// returns the outcomes until the process dies.
func perform(handler Handler, w *services, effects []Effect) (outcomes []string, err error) {
	for i, e := range effects {
		e.Seq = int64(i + 1)
		values, err := handler.Handle(context.Background(), e, w.live(e))
		if errors.Is(err, errDied) {
			return outcomes, err
		}
		if fault.CodeOf(err) == fault.Conflict {
			return outcomes, err
		}
		text := fmt.Sprintf("%#v", values)
		if err != nil {
			text = fmt.Sprintf("%v / %s / %s", err, fault.HintOf(err), fault.From(err).Details)
		}
		outcomes = append(outcomes, text)
	}
	return outcomes, nil
}

// TestResume checks that a script sees the same outcomes however often the process dies,
// that recorded effects do not run again, and that effects in doubt are reported.
func TestResume(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		effects := rapid.SliceOfN(anyEffect(), 1, 20).Draw(t, "effects")
		want, _ := perform(Live(), &services{times: map[int64]int{}}, effects)
		w, d := &services{times: map[int64]int{}}, &disk{}
		for range 50 {
			d.left = rapid.IntRange(0, 6).Draw(t, "lives")
			past, err := ReadJournal(d.all()...)
			if err != nil {
				t.Fatal(err)
			}
			journal := NewJournal(d, "boot")
			got, err := perform(NewReplay(past, journal), w, effects)
			journal.End() // a dead process records nothing
			if fault.CodeOf(err) == fault.Conflict {
				checkDoubt(t, past, w, err)
				return
			}
			if err == nil {
				if !slices.Equal(got, want) {
					t.Fatalf("outcomes %q, want %q", got, want)
				}
				break
			}
			if !slices.Equal(got, want[:len(got)]) {
				t.Fatalf("before it died: %q, want the beginning of %q", got, want)
			}
		}
		for i, e := range effects {
			if n := w.times[int64(i+1)]; e.Kind == Write && n > 1 {
				t.Fatalf("write %d was made %d times", i+1, n)
			}
		}
	})
}

// checkDoubt checks a refusal: the write was started, and no outcome is recorded.
func checkDoubt(t *rapid.T, past []Step, w *services, err error) {
	i := slices.IndexFunc(past, func(s Step) bool { return !s.Done })
	if i < 0 || past[i].Kind != Write || !strings.Contains(err.Error(), past[i].Call()) {
		t.Fatalf("in doubt without reason: %v of %v", err, past)
	}
	if w.times[past[i].Seq] > 1 {
		t.Fatalf("the call in doubt was made %d times", w.times[past[i].Seq])
	}
}

func TestReplayOffline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		effects := rapid.SliceOfN(anyEffect(), 1, 20).Draw(t, "effects")
		d := &disk{left: -1}
		journal := NewJournal(d, "boot")
		want, err := perform(journal, &services{times: map[int64]int{}}, effects)
		if err != nil {
			t.Fatal(err)
		}
		tail := journal.End() // first: it waits for what is being recorded
		past, err := ReadJournal(append(d.all(), tail)...)
		if err != nil {
			t.Fatal(err)
		}
		w := &services{times: map[int64]int{}}
		replay := NewReplay(past, nil)
		got, err := perform(replay, w, effects)
		if err != nil || !slices.Equal(got, want) || replay.Left() != 0 {
			t.Fatalf("replay %q (%v, %d left), want %q", got, err, replay.Left(), want)
		}
		for seq := range w.times {
			if effects[seq-1].Name != advanceEffect {
				t.Fatalf("the replay carried out step %d", seq)
			}
		}
	})
}

func TestStepsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := anyEffect().Draw(t, "effect")
		step := Step{Seq: rapid.Int64().Draw(t, "seq"), Name: e.Name, Kind: e.Kind, Args: e.Args, Values: e.Args, Boot: "b"}
		got, err := ReadJournal(appendStep(nil, formOutcome, step))
		if err != nil || len(got) != 1 {
			t.Fatalf("read %v (%v)", got, err)
		}
		if !got[0].matches(Effect{Name: e.Name, Args: e.Args}) || got[0].Seq != step.Seq || got[0].Kind != e.Kind ||
			len(got[0].Values) != len(e.Args) || !slices.EqualFunc(got[0].Values, e.Args, same) {
			t.Fatalf("read %v, wrote %v", got[0], step)
		}
	})
}

func FuzzReadJournal(f *testing.F) {
	f.Add(appendStep(appendStep(nil, formIntent, Step{Seq: 1, Name: "a", Args: []Value{"x"}}), formSettled, Step{Seq: 1, Err: fault.New(fault.Limit, "x")}))
	f.Add([]byte{formOutcome, 0xff, 0xff, 0xff})
	f.Fuzz(func(_ *testing.T, record []byte) {
		steps, _ := ReadJournal(record)
		for _, s := range steps {
			_ = s.Call() + s.Kind.String()
		}
	})
}

func TestDivergenceNamesBothSides(t *testing.T) {
	t.Parallel()
	past := []Step{{Seq: 1, Name: "mcp.call", Kind: Write, Args: []Value{"fs", "write", json.RawMessage(`{"a":1}`)}, Done: true}}
	replay := NewReplay(past, Live())
	e := Effect{Seq: 1, Name: "mcp.call", Kind: Write, Args: []Value{"fs", "remove", json.RawMessage(`{"a":2}`)}}
	_, err := replay.Handle(t.Context(), e, nil)
	if err == nil || !strings.Contains(err.Error(), `fs.write({"a":1})`) || !strings.Contains(err.Error(), `fs.remove({"a":2})`) {
		t.Errorf("error %v, want both sides", err)
	}
	e.Seq = 7 // a script that caught the error cannot continue
	if _, again := replay.Handle(t.Context(), e, func(context.Context) ([]Value, error) { t.Error("went live"); return nil, nil }); !errors.Is(again, err) {
		t.Errorf("after the divergence: %v", again)
	}
}

// TestJournalRecordsParallelEffects checks that concurrent effects are recorded in the order of
// their outcomes, several in one record.
func TestJournalRecordsParallelEffects(t *testing.T) {
	t.Parallel()
	const effects = 200
	d, w := &disk{left: -1}, &services{times: map[int64]int{}}
	journal := NewJournal(d, "boot")
	var all sync.WaitGroup
	for i := range effects {
		all.Go(func() {
			e := Effect{Seq: int64(i + 1), Name: "x", Kind: []Kind{Read, Idempotent, Write, Nondeterministic}[i%4]}
			_, _ = journal.Handle(t.Context(), e, w.live(e))
		})
	}
	all.Wait()
	tail := journal.End() // first: it waits for what is being recorded
	steps, err := ReadJournal(append(d.all(), tail)...)
	if err != nil || len(steps) != effects {
		t.Fatalf("%d steps (%v), want %d", len(steps), err, effects)
	}
	seen := map[int64]bool{}
	for _, s := range steps {
		if seen[s.Seq] || !s.Done {
			t.Errorf("step %d: twice %t, done %t", s.Seq, seen[s.Seq], s.Done)
		}
		seen[s.Seq] = true
	}
}

// TestHalt checks that Halt completes a write, ends waiting, and refuses everything else.
func TestHalt(t *testing.T) {
	t.Parallel()
	journal := NewJournal(&disk{left: -1}, "boot")
	stop := fault.New(fault.Unavailable, "stopping")
	var all sync.WaitGroup
	entered, halted := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		values, err := journal.Handle(t.Context(), Effect{Seq: 1, Kind: Write}, func(ctx context.Context) ([]Value, error) {
			close(entered)
			<-halted
			return []Value{true}, ctx.Err()
		})
		if err != nil || !reflect.DeepEqual(values, []Value{true}) {
			t.Errorf("a write in progress: %v, %v", values, err)
		}
	})
	<-entered
	_, err := journal.Handle(t.Context(), Effect{Seq: 2, Kind: Nondeterministic}, func(ctx context.Context) ([]Value, error) {
		journal.Halt(stop)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if !errors.Is(err, stop) {
		t.Errorf("an effect that waits: %v", err)
	}
	close(halted)
	<-journal.Halt(stop)
	all.Wait()
	if _, err := journal.Handle(t.Context(), Effect{Seq: 3, Kind: Write}, nil); !errors.Is(err, stop) {
		t.Errorf("after Halt: %v", err)
	}
	steps, err := ReadJournal(journal.recorder.(*disk).all()...)
	if err != nil || len(steps) != 1 || !steps[0].Done {
		t.Errorf("recorded %v (%v), want the write with its outcome", steps, err)
	}
}

// TestFailedRecordIsReported checks that an effect whose record failed gets the error, even
// if the disk works again.
func TestFailedRecordIsReported(t *testing.T) {
	t.Parallel()
	d, w := &disk{left: 1}, &services{times: map[int64]int{}}
	journal := NewJournal(d, "boot")
	first, second := Effect{Seq: 1, Name: "w", Kind: Write}, Effect{Seq: 2, Name: "w", Kind: Write}
	if _, err := journal.Handle(t.Context(), first, w.live(first)); err != nil {
		t.Fatal(err)
	}
	if err := journal.Flush(); !errors.Is(err, errDied) {
		t.Errorf("a failing disk: %v", err)
	}
	d.left = -1
	if err := journal.Flush(); !errors.Is(err, errDied) {
		t.Errorf("after a failed record: %v", err)
	}
	if _, err := journal.Handle(t.Context(), second, w.live(second)); !errors.Is(err, errDied) || w.times[2] != 0 {
		t.Errorf("the next effect: %v, made %d times", err, w.times[2])
	}
	<-journal.Halt(errDied) // Halt has nothing to wait for
}

// TestOutcomesShareRecords checks that an outcome shares a record with the next effect.
// Alone it is recorded a moment later, and End returns it.
func TestOutcomesShareRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, w := &disk{left: -1}, &services{times: map[int64]int{}}
		journal := NewJournal(d, "boot")
		handle := func(seq int64) {
			e := Effect{Seq: seq, Name: "w", Kind: Write}
			if _, err := journal.Handle(t.Context(), e, w.live(e)); err != nil {
				t.Error(err)
			}
		}
		expect := func(what string, records int, tail []byte, done ...bool) {
			t.Helper()
			steps, err := ReadJournal(append(d.all(), tail)...)
			var got []bool
			for _, step := range steps {
				got = append(got, step.Done)
			}
			if err != nil || len(d.all()) != records || !slices.Equal(got, done) {
				t.Errorf("%s: %d records of %v (%v), want %d of %v", what, len(d.all()), got, err, records, done)
			}
		}
		handle(1)
		handle(2)
		handle(3)
		expect("at once", 3, nil, true, true, false)
		time.Sleep(2 * moment)
		synctest.Wait()
		expect("a moment later", 4, nil, true, true, true)
		handle(5)
		tail := journal.End()
		time.Sleep(2 * moment)
		synctest.Wait()
		expect("after the end", 5, nil, true, true, true, false)
		expect("with the tail", 5, tail, true, true, true, true)
		select {
		case <-journal.Halt(errDied):
		default:
			t.Error("Halt waits for a write that End took over")
		}
	})
}

// TestCancelledEffects checks that a cancellation by the script is an outcome, and
// one of the run is not.
func TestCancelledEffects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause error
		want  int
	}{{nil, 1}, {fault.New(fault.Cancelled, "job cancelled"), 0}} {
		d := &disk{left: -1}
		journal := NewJournal(d, "boot")
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := journal.Handle(ctx, Effect{Seq: 1, Kind: Idempotent}, func(ctx context.Context) ([]Value, error) {
			cancel(c.cause)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		if flushed := journal.Flush(); flushed != nil || err == nil || len(d.all()) != c.want {
			t.Errorf("cause %v: error %v, %d records, want %d", c.cause, err, len(d.all()), c.want)
		}
	}
}

// TestTempAtSurvivesRestart checks that a job's folder and its files survive a restart.
func TestTempAtSurvivesRestart(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "job-1")
	for range 2 {
		temp := NewTempAt(folder, 100)
		path, err := temp.Path("notes")
		if err != nil || path != filepath.Join(folder, "notes") {
			t.Fatalf("path %s, %v", path, err)
		}
		if err := NewFiles(temp, FilesOptions{}).Write(path, []byte("x"), true); err != nil {
			t.Fatal(err)
		}
		if err := temp.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(folder, "notes")); err != nil || string(data) != "xx" {
		t.Errorf("file holds %q (%v)", data, err)
	}
}

func BenchmarkJournalStep(b *testing.B) {
	journal := NewJournal(&disk{left: -1}, "boot")
	e := Effect{Name: "mcp.call", Kind: Idempotent, Args: []Value{"calc", "double", json.RawMessage(`{"n":1}`)}}
	answer := []Value{json.RawMessage(`{"n":2}`)}
	b.ReportAllocs()
	for b.Loop() {
		e.Seq++
		_, _ = journal.Handle(b.Context(), e, func(context.Context) ([]Value, error) { return answer, nil })
	}
}
