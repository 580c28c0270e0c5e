package host

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// Recorder stores records in order. Record returns when data is stored durably. Calls do
// not overlap.
type Recorder interface {
	Record(data []byte) error
}

// Journal is a Handler that carries out every effect and records it, so that a Replay
// can answer the same script without repeating any effect.
//
// - A Write is recorded before it begins and again with its outcome. If only the first
// record is found later, it is unknown whether the write happened.
// - A long sleep is recorded when it begins, so that a resumed run sleeps only what was
// left.
// - An Idempotent effect is recorded with its outcome.
// - An outcome is recorded together with the script's next effect if that follows at
// once, otherwise by itself. No effect begins before the outcomes of earlier ones are
// recorded.
// - A Read or Nondeterministic effect that was quick stays in memory until something
// else is recorded, at the latest before the next change. Until then nothing depends on
// it, and repeating it is as good.
// - A call that runs another script is recorded with its outcome, after the effects of
// that script.
// - An observation is not recorded.
//
// It is safe for concurrent use. Effects that run in parallel are recorded in the order
// of their outcomes.
type Journal struct {
	recorder Recorder
	boot     string

	mu       sync.Mutex
	pending  []byte                            // steps not recorded yet
	settling int                               // outcomes of writes among them
	added    int64                             // number of steps ever put into pending
	written  int64                             // number of them recorded
	wanted   int64                             // number that must be recorded soon
	since    time.Time                         // when the first of those was added
	waking   bool                              // a timer runs for them
	over     bool                              // End has returned the rest
	broken   error                             // error of the recorder, after which nothing is recorded
	err      error                             // why effects are refused
	cancels  map[int64]context.CancelCauseFunc // effects that Halt cancels
	writes   int                               // writes whose outcome is not recorded, which Halt waits for
	settled  chan struct{}                     // closed when effects are refused and no write is in progress

	writing sync.Mutex // held while the recorder works; locked before mu
}

// NewJournal records with recorder. boot names this process in the records.
func NewJournal(recorder Recorder, boot string) *Journal {
	return &Journal{recorder: recorder, boot: boot, cancels: map[int64]context.CancelCauseFunc{}, settled: make(chan struct{})}
}

const (
	// slow is the duration from which a read is worth a record of its own.
	slow = 10 * time.Millisecond
	// most is the number of bytes held in memory without being recorded.
	most = 256 << 10
	// moment is how long an outcome waits for the script's next effect, to share a
	// record with it.
	moment = 2 * time.Millisecond
)

// urgency is when a step is recorded.
type urgency int

const (
	later urgency = iota // with the next record
	soon                 // within a moment
	now                  // before add returns
)

// Handle does the effect and records it.
func (j *Journal) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Kind == Observe {
		return live(ctx)
	}
	if ctx.Err() != nil { // the script caught the error that ended it
		return nil, context.Cause(ctx)
	}
	if e.Kind == Nested {
		return j.nested(ctx, e, live)
	}
	if e.Kind == Write {
		if err := j.enter(); err != nil {
			return nil, err
		}
	}
	step := Step{Seq: e.Seq, Name: e.Name, Kind: e.Kind, Args: e.Args, At: time.Now()}
	form := byte(formOutcome)
	if err := j.before(ctx, &step, &form); err != nil {
		j.leave(e.Kind)
		return nil, err
	}
	values, over, err := j.run(ctx, e, live)
	if over {
		j.leave(e.Kind)
		return nil, err // the run has ended and the outcome is unknown
	}
	step.Values = values
	if err != nil {
		step.Err = fault.From(err)
	}
	at := time.Now()
	when := urgencyOf(e.Kind, at.Sub(step.At))
	step.At = at
	if recordErr := j.add(form, step, when); recordErr != nil {
		return nil, recordErr
	}
	return values, err
}

// urgencyOf returns how soon an outcome must be recorded. A quick read can be repeated,
// so it can wait.
func urgencyOf(kind Kind, took time.Duration) urgency {
	if took < slow && (kind == Read || kind == Nondeterministic) {
		return later
	}
	return soon
}

// nested runs a nested script, whose effects are handled one by one. Only its answer is
// recorded as the outcome of the call; without that record, the nested script runs
// again.
func (j *Journal) nested(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if err := j.Err(); err != nil {
		return nil, err
	}
	values, err := live(ctx)
	switch {
	case j.Err() != nil:
		return nil, j.Err()
	case err != nil && ended(ctx):
		return nil, context.Cause(ctx)
	case errors.Is(err, errPaused):
		return nil, err
	}
	step := Step{Seq: e.Seq, Name: e.Name, Kind: e.Kind, Args: e.Args, At: time.Now(), Values: values}
	if err != nil {
		step.Err = fault.From(err)
	}
	if recordErr := j.add(formOutcome, step, later); recordErr != nil {
		return nil, recordErr
	}
	return values, err
}

// before records what must be stored before the effect begins.
func (j *Journal) before(ctx context.Context, step *Step, form *byte) error {
	switch {
	case step.Kind == Write:
		step.Boot = j.boot
		*form = formSettled
		return j.add(formIntent, *step, now)
	case isLongSleep(step):
		if err := j.Err(); err != nil {
			return err
		}
		*form = formSettled
		if !Began(ctx).IsZero() { // it is recorded already
			return nil
		}
		return j.add(formIntent, *step, soon)
	case step.Kind == Idempotent:
		if err := j.Err(); err != nil {
			return err
		}
		return j.Flush()
	default:
		return j.Err()
	}
}

// run runs the effect so that Halt can cancel it, unless it is a write. over means that
// the run ended, not the effect.
func (j *Journal) run(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) (values []Value, over bool, err error) {
	if e.Kind != Write {
		nested, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if err := j.begin(e.Seq, cancel); err != nil {
			return nil, true, err
		}
		defer j.finish(e.Seq)
		ctx = nested
	}
	values, err = live(ctx)
	if err != nil && ended(ctx) {
		return nil, true, context.Cause(ctx)
	}
	return values, false, err
}

func (j *Journal) begin(seq int64, cancel context.CancelCauseFunc) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.cancels[seq] = cancel
	}
	return j.err
}

func (j *Journal) finish(seq int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.cancels, seq)
}

// ended reports whether the run as a whole was stopped. That cancels with a cause; a
// script that cancels one of its parallel calls gives none, and then the cancellation is
// the effect's outcome.
func ended(ctx context.Context) bool {
	return ctx.Err() != nil && context.Cause(ctx) != context.Canceled //nolint:errorlint // asks for the bare one, not one within a cause
}

// add appends a step to the journal.
func (j *Journal) add(form byte, step Step, when urgency) error {
	j.mu.Lock()
	j.pending = appendStep(j.pending, form, step)
	j.added++
	number := j.added
	if form == formSettled && step.Kind == Write {
		j.settling++
	}
	if len(j.pending) > most || when == soon && j.err != nil {
		when = now
	}
	if when == soon {
		if j.wanted <= j.written {
			j.since = time.Now()
		}
		j.wanted = number
		j.wake(moment)
	}
	j.mu.Unlock()
	if when != now {
		return nil
	}
	return j.record(number)
}

// wake starts a timer that records the wanted steps; mu is held.
func (j *Journal) wake(after time.Duration) {
	if j.waking || j.over {
		return
	}
	j.waking = true
	time.AfterFunc(after, func() {
		j.mu.Lock()
		j.waking = false
		number, rest := j.wanted, moment-time.Since(j.since)
		if j.written >= number {
			number = 0
		} else if rest > 0 { // they were recorded meanwhile
			number = 0
			j.wake(rest)
		}
		j.mu.Unlock()
		_ = j.record(number) // the next caller gets the error
	})
}

// Flush records all pending steps.
func (j *Journal) Flush() error {
	j.mu.Lock()
	number := j.added
	j.mu.Unlock()
	return j.record(number)
}

// record makes sure that the first number steps are recorded. A caller that arrives
// while the recorder works waits, and then records for all that arrived meanwhile. After
// an error of the recorder nothing is recorded, because a step would be missing.
func (j *Journal) record(number int64) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	if j.written >= number || j.over {
		j.mu.Unlock()
		return nil
	}
	batch, upTo, settling, err := j.pending, j.added, j.settling, j.broken
	j.pending, j.settling = nil, 0
	j.mu.Unlock()
	if err == nil {
		err = j.recorder.Record(batch)
	}
	if err != nil {
		j.Halt(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = err
	if err == nil {
		j.written = upTo
	}
	j.settle(settling)
	return err
}

// Halt refuses further effects with err and cancels those in progress with it as the
// cause, except writes, which run to their end. The channel is closed when the last
// write is recorded.
func (j *Journal) Halt(err error) (settled <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
		for _, cancel := range j.cancels {
			cancel(err)
		}
		if j.writes == 0 {
			close(j.settled)
		}
	}
	return j.settled
}

// While calls wait, which belongs to an effect and is not recorded, with a context that Halt
// cancels too.
func (j *Journal) While(ctx context.Context, e Effect, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := j.begin(e.Seq, cancel); err != nil {
		return err
	}
	defer j.finish(e.Seq)
	return wait(ctx)
}

// enter begins a write.
func (j *Journal) enter() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.writes++
	}
	return j.err
}

// leave ends an effect without an outcome.
func (j *Journal) leave(kind Kind) {
	if kind != Write {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.settle(1)
}

// settle counts writes that have ended; mu is held.
func (j *Journal) settle(writes int) {
	j.writes -= writes
	if j.err != nil && j.writes == 0 && writes > 0 {
		close(j.settled)
	}
}

// Err returns why effects are refused, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Tail returns the steps that are not recorded yet.
func (j *Journal) Tail() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pending
}

// End is called when the script has ended: nothing is recorded afterwards. It returns
// the pending steps, which the caller stores as the last record together with the
// outcome of the run.
func (j *Journal) End() []byte {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	settling := j.settling
	j.settling = 0
	j.settle(settling)
	return j.pending
}

var _ Handler = (*Journal)(nil)

// CallOf returns the effect of calling a tool.
func CallOf(ref tool.Ref, arguments json.RawMessage) Effect {
	return Effect{Name: callEffect, Kind: Write, Args: []Value{ref.Space, ref.Name, arguments}}
}

// Called reports whether the step is a call of a tool.
func (s Step) Called() bool { return s.Name == callEffect }

// Changed reports whether the step changed something, or may have. The changes of nested
// runs are steps of their own.
func (s Step) Changed() bool {
	return (s.Kind == Write || s.Kind == Idempotent) && s.Err == nil
}

// Calls returns the tool that the step called, with the arguments and the result; each is
// nil if it is not known. ok is false if the step is no call.
func (s Step) Calls() (ref tool.Ref, arguments, result json.RawMessage, ok bool) {
	if !s.Called() {
		return ref, nil, nil, false
	}
	args := Args{Values: s.Args}
	ref, arguments, relayed := RelayedCall(args)
	if !relayed {
		ref = CalledTool(args)
		switch given := args.At(3).(type) {
		case json.RawMessage:
			arguments = given
		case nil:
			arguments = json.RawMessage("{}")
		}
	}
	if len(s.Values) > 0 {
		result, _ = s.Values[0].(json.RawMessage)
	}
	return ref, arguments, result, true
}

// sleepEffect only waits.
const sleepEffect = "clock.sleep"

// longSleep is the duration from which the beginning of a sleep is worth a record.
const longSleep = time.Second

// isLongSleep reports whether a step waits so long that a resumed run should not wait
// again from the beginning.
func isLongSleep(s *Step) bool {
	if s.Name != sleepEffect || len(s.Args) == 0 {
		return false
	}
	switch milliseconds := s.Args[0].(type) {
	case int64:
		return milliseconds >= longSleep.Milliseconds()
	case float64:
		return milliseconds >= float64(longSleep.Milliseconds())
	default:
		return false
	}
}

// beganKey is the context key of the time at which an earlier process began the effect.
type beganKey struct{}

// Began returns when an effect began in the process that stopped during it; the zero time
// for an effect that begins now.
func Began(ctx context.Context) time.Time {
	began, _ := ctx.Value(beganKey{}).(time.Time)
	return began
}
