package script

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/cas"
)

// The languages of scripts. TypeScript counts as JavaScript: its types are
// stripped.
const (
	Lua        = "lua"
	JavaScript = "javascript"
)

// Languages are all languages, in the order they are offered.
var Languages = []string{Lua, JavaScript}

// engine runs the scripts of one language. It binds the modules; what a script
// does with them goes through the door of the run's environment.
type engine interface {
	// warm makes the engine ready, so that no run's time is spent on it.
	warm(ctx context.Context) error
	// run runs a request in a fresh realm, or in that of its session's turn. What
	// it returns is JSON.
	run(ctx context.Context, q Request, limits Limits, env *host.Env) (json.RawMessage, error)
	// compile tells whether the source is of the language at all, without running
	// any of it.
	compile(ctx context.Context, q Request) error
	// explain fills e from what run or compile returned: kind, message, stack, and
	// what of it only this language knows.
	explain(ctx context.Context, r *Runner, q Request, err error, e *Error)
	// advice is what usually helps with failures of a kind.
	advice(kind Kind) []string
	// turn is for a run in a state that was saved before; nil is a fresh one.
	turn(saved []byte) turn
}

// turn is one run in the state of a session. The engine that made it fills it
// while it runs.
type turn interface {
	// lost is why the saved state could not be brought back, or nil.
	lost() error
	// leave is the state to be saved after a run that ended with failed. changed is
	// false when the session stays as it was; warnings tell what could not be kept.
	leave(ctx context.Context, failed error) (state []byte, changed bool, warnings []string)
}

// LanguageOf is the language of a file by its extension, or of a source by its
// MIME type; "" when neither tells.
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

// LanguageOf is the language of a stored script.
func (r *Runner) LanguageOf(ctx context.Context, ref cas.Ref) string {
	return r.inLanguage(ctx, Request{Hash: ref}).Language
}

// inLanguage is a request that names its language.
func (r *Runner) inLanguage(ctx context.Context, q Request) Request {
	if q.Language == "" && !q.Hash.IsZero() && r.options.Language != nil {
		q.Language = r.options.Language(ctx, q.Hash)
	}
	q.Language = q.language()
	return q
}

// language is the one the request names, else that of its name, else Lua.
func (q Request) language() string {
	if q.Language != "" {
		return q.Language
	}
	if language := LanguageOf(q.Name); language != "" {
		return language
	}
	return Lua
}

// engineFor is the engine of a request's language.
func (r *Runner) engineFor(q Request) (engine, error) {
	switch language := q.language(); {
	case language == Lua:
		return r.lua, nil
	case language == JavaScript && r.options.JavaScript != nil:
		return r.options.JavaScript, nil
	case language == JavaScript:
		return nil, fault.New(fault.Unavailable, "scripts in JavaScript are switched off here").WithHint("write it in Lua")
	default:
		return nil, fault.New(fault.InvalidParams, "scripts cannot be written in %q", language).
			WithHint("the languages are %s", strings.Join(Languages, " and "))
	}
}
