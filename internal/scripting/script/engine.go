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

// Languages lists all languages, in the order they are offered.
var Languages = []string{Lua, JavaScript}

// engine runs the scripts of one language. It binds the modules; effects go through the
// Handler of the run's environment.
type engine interface {
	// warm prepares the engine, so that no run's time is spent on it.
	warm(ctx context.Context) error
	// run runs a request in a fresh state, or in that of its session's turn, and returns
	// the result as JSON.
	run(ctx context.Context, q Request, limits Limits, env *host.Env) (json.RawMessage, error)
	// compile checks the syntax of the source without running any of it.
	compile(ctx context.Context, q Request) error
	// mayDefine reports whether a source that compiles may define a global of that name.
	mayDefine(q Request, name string) bool
	// explain fills e from an error of run or compile: kind, message, stack, and hints
	// specific to the language.
	explain(ctx context.Context, r *Runner, q Request, err error, e *Error)
	// turn prepares a run in a saved state; nil means a fresh one.
	turn(saved []byte) turn
}

// turn is one run in the state of a session. The engine that made it fills it while it
// runs.
type turn interface {
	// restoreError returns why the saved state could not be restored, or nil.
	restoreError() error
	// stateAfter returns the state to save after a run that ended with failed. changed is
	// false if the session stays as it was; warnings list values that could not be
	// saved.
	stateAfter(ctx context.Context, failed error) (state []byte, changed bool, warnings []string)
}

// required returns the name of the function that the source of a request must define; "" if
// it need not: a turn of a session may call what an earlier one defined.
func (q Request) required() string {
	if entry := q.entryPoint(); entry != nil && !entry.optional && q.turn == nil {
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
	return r.inLanguage(ctx, Request{Hash: ref}).Language
}

// inLanguage sets the language of a request.
func (r *Runner) inLanguage(ctx context.Context, q Request) Request {
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
