package js

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// run is the execution of one script on one instance.
type run struct {
	in         *instance
	program    *Program
	host       Host
	limits     Limits
	watch      watch
	wrote      bool // a line to the console
	calls      *calls
	maps       sourceMaps  // of all sources whose frames can appear in a stack
	redeclare  bool        // top-level variables may be declared again, as in a session
	rejections []rejection // promises rejected without a handler, oldest first
	absent     bool        // the program's entry is not defined
	checking   bool        // only compile
}

// rejection is a promise and its reason. The run holds a reference to both.
type rejection struct{ promise, reason value }

// most rejections that are remembered: one is reported.
const maxRejections = 16

// States of a promise.
const (
	promisePending = iota
	promiseFulfilled
	promiseRejected
)

// execute runs the program to its end: jobs until none is left, answers while calls are in
// flight. It returns the result when the script and every call it started are done.
func (r *run) execute(ctx context.Context) (json.RawMessage, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	if r.checking {
		code, err := r.compile(ctx)
		if err != nil {
			return nil, err
		}
		return nil, r.in.freeValue(ctx, code)
	}
	main, err := r.start(ctx)
	if err != nil {
		return nil, err
	}
	completion, err := r.complete(ctx, main, true)
	if err != nil {
		return nil, err
	}
	if r.program.Entry != nil {
		if err := r.in.freeValue(ctx, completion); err != nil {
			return nil, err
		}
		if completion, err = r.enter(ctx, r.program.Entry); err != nil {
			return nil, err
		}
	}
	return r.finish(ctx, completion)
}

// enter calls a function that the script has defined, in whichever way it defined it.
func (r *run) enter(ctx context.Context, entry *Entry) (value, error) {
	fn, err := r.in.compileAndRun(ctx, "typeof "+entry.Name+" === 'function' ? "+entry.Name+" : undefined", preludeName)
	if err != nil {
		return 0, err
	}
	if fn.isException() { // a let that was not initialized
		return 0, r.thrown(ctx)
	}
	if fn == undefined {
		r.absent = true
		return undefined, nil
	}
	argument, err := r.in.newString(ctx, encodeAnswer(entry.Argument, nil))
	if err != nil {
		return 0, err
	}
	promise, err := r.in.invoke(ctx, r.in.enter, fn, argument)
	if err != nil {
		return 0, err
	}
	if err := r.in.freeValue(ctx, fn, argument); err != nil {
		return 0, err
	}
	if promise.isException() {
		return 0, r.thrown(ctx)
	}
	return r.complete(ctx, promise, false)
}

// complete awaits a promise, frees it, and returns its value. If the value is a promise,
// complete awaits that too.
func (r *run) complete(ctx context.Context, promise value, ofScript bool) (value, error) {
	for {
		state, err := r.await(ctx, promise)
		if err != nil {
			return 0, err
		}
		if state == promiseRejected {
			return 0, errors.Join(r.rejected(ctx, promise), r.in.freeValue(ctx, promise))
		}
		v, err := r.fulfilled(ctx, promise, ofScript)
		if err != nil {
			return 0, err
		}
		if err := r.in.freeValue(ctx, promise); err != nil {
			return 0, err
		}
		if again, err := r.in.call(ctx, fnIsPromise, uint64(v)); err != nil || again == 0 {
			return v, err
		}
		promise, ofScript = v, false
	}
}

// await runs jobs and waits for answers until a promise is rejected, or is fulfilled and
// every started call is done.
func (r *run) await(ctx context.Context, promise value) (state uint64, err error) {
	for {
		if err := r.runJobs(ctx); err != nil {
			return 0, err
		}
		state, err := r.in.call(ctx, fnPromiseState, r.in.context, uint64(promise))
		if err != nil || state == promiseRejected {
			return state, err
		}
		if !r.calls.idle() {
			if err := r.settleNext(ctx); err != nil {
				return 0, err
			}
			continue
		}
		if state == promisePending {
			return 0, r.stalled()
		}
		return state, nil
	}
}

// begin passes the script's environment to the prelude.
func (r *run) begin(ctx context.Context) error {
	settings, err := r.program.settings()
	if err != nil {
		return err
	}
	return r.callPrelude(ctx, r.in.begin, settings)
}

// callPrelude calls a function of the prelude with strings.
func (r *run) callPrelude(ctx context.Context, fn value, texts ...string) error {
	args := make([]value, len(texts))
	for i, s := range texts {
		var err error
		if args[i], err = r.in.newString(ctx, s); err != nil {
			return err
		}
	}
	v, err := r.in.invoke(ctx, fn, args...)
	if err != nil {
		return err
	}
	if v.isException() {
		return r.thrown(ctx)
	}
	return r.in.freeValue(ctx, append(args, v)...)
}

// runJobs runs the pending promise jobs.
func (r *run) runJobs(ctx context.Context) error {
	for {
		if r.watch.stop(ctx, false) {
			return r.stopped(ctx, nil)
		}
		n, err := r.in.call(ctx, fnExecutePendingJob, r.in.runtime, uint64(r.in.scratch+8))
		switch {
		case err != nil:
			return err
		case int32(n) == 0:
			return nil
		case int32(n) < 0:
			return r.thrown(ctx)
		}
	}
}

// settleNext waits for an answer and passes it to the prelude. It takes one at a time: a
// script must depend only on the order of answers, not on how many arrive together.
func (r *run) settleNext(ctx context.Context) error {
	a, err := r.calls.next(ctx)
	if err != nil && ctx.Err() != nil {
		r.watch.stop(ctx, false)
		return r.stopped(ctx, nil)
	}
	if err != nil {
		return err
	}
	return r.settle(ctx, a)
}

func (r *run) settle(ctx context.Context, a answer) error {
	text, err := r.in.newString(ctx, a.text)
	if err != nil {
		return err
	}
	v, err := r.in.invoke(ctx, r.in.settle, value(uint32(a.id)), text)
	if err != nil {
		return err
	}
	if v.isException() {
		return r.thrown(ctx)
	}
	return r.in.freeValue(ctx, text, v)
}

// fulfilled takes the value of a fulfilled promise. The promise of a script holds an
// object with the value, because the value may be a promise itself.
func (r *run) fulfilled(ctx context.Context, promise value, ofScript bool) (value, error) {
	v, err := r.in.call(ctx, fnPromiseResult, r.in.context, uint64(promise))
	if err != nil || !ofScript {
		return value(v), err
	}
	inner, err := r.in.property(ctx, value(v), "value")
	return inner, errors.Join(err, r.in.freeValue(ctx, value(v)))
}

// finish reports unhandled rejections, or returns the result.
func (r *run) finish(ctx context.Context, completion value) (json.RawMessage, error) {
	if len(r.rejections) > 0 {
		return nil, r.failure(ctx, r.rejections[0].reason)
	}
	lexical, err := r.in.property(ctx, r.in.lexicals, "__result__")
	if err != nil {
		return nil, err
	}
	inSession := undefined
	if r.redeclare {
		inSession = value(1)
	}
	v, err := r.in.invoke(ctx, r.in.finish, lexical, completion, inSession)
	if err != nil {
		return nil, err
	}
	if v.isException() {
		return nil, r.unconvertible(ctx)
	}
	text, tooLong := "", error(nil)
	if v != undefined {
		text, tooLong = r.in.text(ctx, v, r.limits.Output)
	}
	if err := r.in.freeValue(ctx, v, lexical, completion); err != nil {
		return nil, err
	}
	switch {
	case tooLong != nil || v == undefined:
		return nil, tooLong
	case !json.Valid([]byte(text)):
		return nil, errTooDeep
	default:
		return json.RawMessage(text), nil
	}
}

// errTooDeep is the only case in which Go cannot read JSON that the engine wrote.
var errTooDeep = fault.New(fault.Script, "convert a value to JSON: it nests more than 10,000 levels deep").
	WithHint("return and pass flatter data")

// serve calls one of the host functions that the prelude uses.
func (r *run) serve(ctx context.Context, magic uint32, args []value) value {
	switch magic {
	case magicCall:
		err := r.calls.start(ctx, args[0].integer(), r.argument(ctx, args[1]), json.RawMessage(r.argument(ctx, args[2])))
		if err != nil {
			return r.reply(ctx, encodeAnswer(nil, err))
		}
	case magicSync:
		return r.reply(ctx, r.calls.sync(ctx, r.argument(ctx, args[0]), json.RawMessage(r.argument(ctx, args[1]))))
	case magicLog:
		r.wrote = true
		if r.program.OnLine != nil {
			r.program.OnLine(Line{Level: r.argument(ctx, args[0]), Text: r.argument(ctx, args[1])})
		}
	case magicSeed:
		seed := r.host.Seed(ctx)
		binary.LittleEndian.PutUint64(r.in.view(r.in.seed, 8), max(1, seed)) // zero would stay zero
	}
	return undefined
}

// argument reads a string that the prelude passed. Errors become a trap: a host function
// cannot continue without its arguments.
func (r *run) argument(ctx context.Context, v value) string {
	s, err := r.in.text(ctx, v, int(r.limits.Memory))
	if err != nil {
		panic(err)
	}
	return s
}

func (r *run) reply(ctx context.Context, text string) value {
	v, err := r.in.newString(ctx, text)
	if err != nil {
		panic(err)
	}
	return v
}

// trackRejection records promises that are rejected without a handler, and removes those
// that get a handler later.
func (r *run) trackRejection(ctx context.Context, promise, reason value, handled bool) {
	if handled {
		for i, known := range r.rejections {
			if known.promise == promise {
				r.rejections = append(r.rejections[:i], r.rejections[i+1:]...)
				r.release(ctx, known)
				return
			}
		}
		return
	}
	if len(r.rejections) >= maxRejections {
		return
	}
	for _, v := range []value{promise, reason} {
		if _, err := r.in.call(ctx, fnDupValue, r.in.context, uint64(v)); err != nil {
			panic(err)
		}
	}
	r.rejections = append(r.rejections, rejection{promise, reason})
}

// releaseRejections frees the recorded rejections. A trap leaves the instance dead.
func (r *run) releaseRejections(ctx context.Context) {
	for _, known := range r.rejections {
		if r.in.freeValue(ctx, known.promise, known.reason) != nil {
			break
		}
	}
	r.rejections = nil
}

func (r *run) release(ctx context.Context, j rejection) {
	if err := r.in.freeValue(ctx, j.promise, j.reason); err != nil {
		panic(err)
	}
}

// grace is the time that native code gets between the soft stop, which the instance
// survives, and the trap, which it does not.
const grace = 100 * time.Millisecond

// errTime is the cause of a run's context that ended because of Limits.Time.
var errTime = errors.New("the script ran too long")

// watch decides when a run must stop. Only the script's goroutine calls it.
type watch struct {
	allowed  time.Duration // from the start to the deadline of the context, which may move
	softened time.Time     // when the script was first ordered to stop; zero before

	steps int64 // what is left of Limits.Steps
	spent bool  // the steps are used up

	meter Meter // may be nil
}

// newWatch watches over a run, with the deadline of ctx.
func newWatch(ctx context.Context, limits Limits) watch {
	deadline, _ := ctx.Deadline()
	steps := limits.Steps
	if steps == 0 {
		steps = math.MaxInt64
	}
	return watch{allowed: max(0, time.Until(deadline)), steps: steps, meter: limits.Meter}
}

// pollSteps is how many branches of a script pass between two polls.
const pollSteps = 10_000

// poll is stop, called by the guest; it counts the steps.
func (w *watch) poll(ctx context.Context, native bool) bool {
	if w.meter != nil {
		w.meter.Tick()
	}
	if w.steps -= pollSteps; w.steps < 0 && !w.stopped() {
		w.spent, w.softened = true, time.Now()
	}
	return w.stop(ctx, native)
}

// stop reports whether the guest must stop now. Scripts stop at once with an exception that
// they cannot catch; native code traps after the grace period. stop reads the clock too,
// because a busy guest can delay the timers of the process.
func (w *watch) stop(ctx context.Context, native bool) bool {
	if w.softened.IsZero() {
		if deadline, ok := ctx.Deadline(); ctx.Err() == nil && (!ok || time.Now().Before(deadline)) {
			return false
		}
		w.softened = time.Now()
	}
	return !native || time.Since(w.softened) > grace
}

// stopped reports whether the run was ordered to stop.
func (w *watch) stopped() bool { return !w.softened.IsZero() }
