package script

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
)

// The languages of scripts. TypeScript counts as JavaScript: its types are stripped.
const (
	Lua        = "lua"
	JavaScript = "javascript"
)

// MaxSource is the largest script that is run, in bytes.
const MaxSource = 1 << 20

// Languages lists all languages, in the order they are offered.
var Languages = []string{Lua, JavaScript}

// engine runs the scripts of one language. It binds the modules; effects go through the
// Handler of the run's environment.
type engine interface {
	// warm prepares the engine, so that no run's time is spent on it.
	warm(ctx context.Context) error
	// run runs a request in a fresh state, or in the one it names.
	run(ctx context.Context, q Request, limits runLimits, env *host.Env) (ended, error)
	// compile checks the syntax of the source without running any of it.
	compile(ctx context.Context, q Request) error
	// mayDefine reports whether a source that compiles may define a global of that name.
	mayDefine(q Request, name string) bool
	// explain fills e from an error of run or compile: kind, message, stack, and hints
	// specific to the language.
	explain(ctx context.Context, r *Runner, q Request, err error, e *Error)
}

// ended is what an engine returns of a run, also of one that failed.
type ended struct {
	result json.RawMessage // nil if it failed
	silent bool            // it returned no value; the result is null
	absent bool            // the script does not define the optional function to call
	state  State           // what the run left, if it has a State or its script stays loaded; nil if there was no state
}

// SavedState is the state of a session before a run. The zero value is a fresh one.
type SavedState struct {
	Bytes []byte    // made by State.Snapshot; nil is a fresh state
	Live  LiveState // the same in memory; nil means that Bytes are restored
}

// State is the state of a session after a run.
type State interface {
	// Stopped reports whether the run was stopped at a point from which no other run can
	// go on.
	Stopped() bool
	// Snapshot saves the state. Values that cannot be saved are left out and listed.
	Snapshot(ctx context.Context) (saved []byte, omitted []string, err error)
	// Live returns the state for the next run, which must not start before; nil if states
	// of the language do not stay in memory.
	Live() LiveState
}

// LiveState is a state in memory, for one run at a time.
type LiveState interface {
	Fork() (LiveState, error)
}

// restoreError is the error of a run whose state could not be restored.
type restoreError struct{ reason *fault.Error }

func cannotRestore(err error) error {
	return &restoreError{fault.Wrap(fault.Conflict, err, "restore the session").
		WithHint("session_reset makes it usable again; its variables are lost")}
}

func (e *restoreError) Error() string { return e.reason.Error() }

func (e *restoreError) Unwrap() error { return e.reason }

// required returns the name of the function that the source of a request must define; "" if
// it need not: a turn of a session may call what an earlier one defined.
func (q Request) required() string {
	if entry := q.entryPoint(); !entry.optional && q.State == nil {
		return entry.name
	}
	return ""
}

// missingMain is the failure of a script without main. Where the source shows it, it fails
// before anything of it runs.
func missingMain(advice []string) *Error {
	return &Error{Kind: MissingMain, Message: "the script has no global function main(params)", Troubleshooting: advice}
}

// LanguageOf returns the language of a file by its extension, or of a source by its MIME
// type; "" if it is unknown.
func LanguageOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".lua":
		return Lua
	case ".js", ".ts", ".mjs", ".mts":
		return JavaScript
	}
	switch mime, _, _ := strings.Cut(name, ";"); mime {
	case "text/x-lua":
		return Lua
	case "text/javascript", "application/javascript", "text/typescript", "application/typescript":
		return JavaScript
	default:
		return ""
	}
}

// LanguageOf returns the language of a stored script.
func (r *Runner) LanguageOf(ctx context.Context, ref cas.Ref) string {
	return r.WithLanguage(ctx, Request{Hash: ref}).Language
}

// WithLanguage sets the language of a request.
func (r *Runner) WithLanguage(ctx context.Context, q Request) Request {
	if q.Language == "" && !q.Hash.IsZero() && r.options.Language != nil {
		q.Language = r.options.Language(ctx, q.Hash)
	}
	q.Language = q.language()
	return q
}

// language returns the language that the request names, otherwise that of its name,
// otherwise Lua.
func (q Request) language() string {
	if q.Language != "" {
		return q.Language
	}
	if language := LanguageOf(q.Name); language != "" {
		return language
	}
	return Lua
}

// CheckLanguage returns an error if there are no scripts in that language.
func (r *Runner) CheckLanguage(language string) error {
	_, err := r.engineFor(Request{Language: language})
	return err
}

// Fits reports whether the saved state of a session can be used by this build.
func (r *Runner) Fits(ctx context.Context, language string, saved []byte) (bool, error) {
	if language != JavaScript || saved == nil || r.options.JavaScript == nil {
		return true, nil
	}
	return r.options.JavaScript.engine.Fits(ctx, saved)
}

// engineFor returns the engine of the request's language.
func (r *Runner) engineFor(q Request) (engine, error) {
	switch language := q.language(); {
	case language == Lua:
		return r.lua, nil
	case language == JavaScript && r.options.JavaScript != nil:
		return r.options.JavaScript, nil
	case language == JavaScript:
		return nil, fault.New(fault.Unavailable, "JavaScript is switched off on this server").WithHint("write it in Lua")
	default:
		return nil, fault.New(fault.InvalidParams, "scripts cannot be written in %q", language).
			WithHint("the languages are %s", strings.Join(Languages, " and "))
	}
}

// recent caches what was used recently. It has two generations: a value that is used moves
// to the younger one, and when that is full, the older one is dropped. It is safe for
// concurrent use; the zero value is ready to use.
type recent[K comparable, V any] struct {
	mu         sync.Mutex
	young, old map[K]V
	weight     int // of young
}

// generation is the weight of a full generation, in bytes.
const generation = 4 << 20

// find returns a value that was kept. weight is its approximate size in memory.
func (r *recent[K, V]) find(key K, weight int) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.young[key]; ok {
		return found, true
	}
	found, ok := r.old[key]
	if ok {
		r.put(key, found, weight)
	}
	return found, ok
}

// keep keeps a value, unless it would displace many others.
func (r *recent[K, V]) keep(key K, value V, weight int) {
	if weight > generation/8 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(key, value, weight)
}

// put puts a value into the younger generation; mu is held.
func (r *recent[K, V]) put(key K, value V, weight int) {
	if r.young == nil || r.weight+weight > generation {
		r.young, r.old, r.weight = map[K]V{}, r.young, 0
	}
	if _, ok := r.young[key]; !ok { // another goroutine may have added it
		r.weight += weight
	}
	r.young[key] = value
}
