package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Recorder keeps records in order. Record returns when data is where it survives
// the process; it is never called twice at once.
type Recorder interface {
	Record(data []byte) error
}

// Journal is a door that does everything for real and records it, so that a
// Replay can answer the same script again without doing anything twice.
//
//   - A Write is recorded before it is made and again with its outcome. When only
//     the first is found later, nobody can tell whether it happened.
//   - A Repeat is recorded with its outcome.
//   - An outcome is recorded together with what the script wants next, if that
//     comes at once, else by itself: no effect is made before the outcomes of
//     those before it are recorded.
//   - A Read or a Moment that was quick is kept until something else is recorded,
//     at the latest before the next change of the world: until then nothing
//     outside depends on it, and looking again is as good.
//   - A call that runs another script is recorded with its outcome, after the
//     effects of that script.
//   - An observation is not recorded.
//
// It is safe for concurrent use. Effects that run at once are recorded in the
// order of their outcomes.
type Journal struct {
	recorder Recorder
	boot     string

	mu       sync.Mutex
	pending  []byte                            // steps not yet recorded
	settling int                               // outcomes of writes among them
	added    int64                             // how many steps were ever put into pending
	written  int64                             // and how many of them are recorded
	wanted   int64                             // how many are to be recorded in a moment
	since    time.Time                         // when the first of them came that is not
	waking   bool                              // a timer runs for them
	over     bool                              // End has taken what is left
	broken   error                             // why nothing more can be recorded
	err      error                             // why nothing more passes
	flying   map[int64]context.CancelCauseFunc // what Halt ends
	writes   int                               // what it waits for: writes whose outcome is not recorded
	settled  chan struct{}                     // closed when nothing passes and no write is under way

	writing sync.Mutex // held while the recorder works; taken before mu
}

// NewJournal records with recorder. boot names this process in what it begins.
func NewJournal(recorder Recorder, boot string) *Journal {
	return &Journal{recorder: recorder, boot: boot, flying: map[int64]context.CancelCauseFunc{}, settled: make(chan struct{})}
}

const (
	// slow is how long an answer must have taken to be worth a record of its own.
	slow = 10 * time.Millisecond
	// most is how many bytes are kept without being recorded.
	most = 256 << 10
	// moment is how long an outcome waits for the script's next effect, to share a
	// record with it.
	moment = 2 * time.Millisecond
)

// urgency is when a step is recorded.
type urgency int

const (
	later urgency = iota // with whatever is recorded next
	soon                 // within a moment
	now                  // before add returns
)

// Handle does the effect and records it.
func (j *Journal) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if e.Kind == Observe {
		return live(ctx)
	}
	if ctx.Err() != nil { // a script that caught its end does nothing more
		return nil, context.Cause(ctx)
	}
	if e.Kind == Nested {
		return j.within(ctx, e, live)
	}
	if e.Kind == Write {
		if err := j.enter(); err != nil {
			return nil, err
		}
	}
	step := Step{Seq: e.Seq, Name: e.Name, Kind: e.Kind, Args: e.Args, At: time.Now()}
	form := byte(formOutcome)
	if err := j.before(&step, &form); err != nil {
		j.leave(e.Kind)
		return nil, err
	}
	values, over, err := j.make(ctx, e, live)
	if over {
		j.leave(e.Kind)
		return nil, err // the run is over and the outcome unknown
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

// urgencyOf is how soon an outcome must be on disk: what can be read again, and
// quickly, has time.
func urgencyOf(kind Kind, took time.Duration) urgency {
	if took < slow && (kind == Read || kind == Nondeterministic) {
		return later
	}
	return soon
}

// within runs another script, whose effects come here one by one. Only its answer
// is recorded as the call's: until then the script is run again.
func (j *Journal) within(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
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

// before records what must be on disk before the world is changed.
func (j *Journal) before(step *Step, form *byte) error {
	switch step.Kind {
	case Write:
		step.Boot = j.boot
		*form = formSettled
		return j.add(formIntent, *step, now)
	case Idempotent:
		if err := j.Err(); err != nil {
			return err
		}
		return j.Flush()
	default:
		return j.Err()
	}
}

// make runs the effect so that Halt can end it, unless it is one that must not
// be left in doubt. over tells that it was the run that ended, not the effect.
func (j *Journal) make(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) (values []Value, over bool, err error) {
	if e.Kind != Write {
		within, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if err := j.launch(e.Seq, cancel); err != nil {
			return nil, true, err
		}
		defer j.land(e.Seq)
		ctx = within
	}
	values, err = live(ctx)
	if err != nil && ended(ctx) {
		return nil, true, context.Cause(ctx)
	}
	return values, false, err
}

func (j *Journal) launch(seq int64, cancel context.CancelCauseFunc) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.flying[seq] = cancel
	}
	return j.err
}

func (j *Journal) land(seq int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.flying, seq)
}

// ended tells whether the run as a whole was stopped. What stops a run gives a
// cause; a script that calls off one of several things it does at once gives
// none, and then the cancellation is the outcome.
func ended(ctx context.Context) bool {
	return ctx.Err() != nil && context.Cause(ctx) != context.Canceled //nolint:errorlint // asks for the bare one, not one within a cause
}

// add puts a step into the journal.
func (j *Journal) add(form byte, step Step, when urgency) error {
	j.mu.Lock()
	j.pending = appendStep(j.pending, form, step)
	j.added++
	number := j.added
	if form == formSettled {
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

// wake has what is wanted recorded when it has waited for a moment; mu is held.
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
		} else if rest > 0 { // what this was for is recorded
			number = 0
			j.wake(rest)
		}
		j.mu.Unlock()
		_ = j.record(number) // whoever comes next is told
	})
}

// Flush records what is kept, if there is anything.
func (j *Journal) Flush() error {
	j.mu.Lock()
	number := j.added
	j.mu.Unlock()
	return j.record(number)
}

// record sees to it that the first number steps are recorded. Whoever comes
// while the recorder works waits, and then records for all who came meanwhile.
// When the recorder failed once, nothing is recorded any more: a step is missing.
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

// Halt lets no further effect pass: err is the answer, and the cause that ends
// what is only being waited for. Writes under way are seen through; when the last
// of them is recorded, the channel is closed.
func (j *Journal) Halt(err error) (settled <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
		for _, cancel := range j.flying {
			cancel(err)
		}
		if j.writes == 0 {
			close(j.settled)
		}
	}
	return j.settled
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

// settle notes that so many writes are over; mu is held.
func (j *Journal) settle(writes int) {
	j.writes -= writes
	if j.err != nil && j.writes == 0 && writes > 0 {
		close(j.settled)
	}
}

// Err is why nothing passes any more, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Tail is what was kept and not recorded so far.
func (j *Journal) Tail() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pending
}

// End is called when the script is over: nothing is recorded from here on. It
// returns what was kept; whoever stores the end of the run stores it as the last
// record.
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
