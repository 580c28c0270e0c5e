package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/js"
	"github.com/luanette/luanette/lua"
)

// jsFailure is the error that ended a script, with the error of the host function that
// caused it, if any.
type jsFailure struct{ err, cause error }

func (f *jsFailure) Error() string { return f.err.Error() }

func (f *jsFailure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.err}
	}
	return []error{f.err, f.cause}
}

// explain classifies an error of JavaScript.
func (e *JavaScriptEngine) explain(ctx context.Context, r *Runner, q Request, err error, to *Error) {
	var thrown *js.Error
	var stopped *js.Stopped
	if errors.As(err, &thrown) {
		to.Stack = jsFrames(thrown.Stack)
		to.Message = jsMessage(thrown)
	}
	if errors.As(err, &stopped) {
		to.Stack = jsFrames(stopped.Stack)
	}
	to.place(q)
	var memory *js.OutOfMemory
	var result *js.Unconvertible
	switch {
	case errors.As(err, &memory):
		to.Kind, to.Message = OutOfMemory, outOfMemoryText(q.Limits.OrDefault(r.options.Limits).Memory)
	case stopped != nil:
		to.explainStop(stopped, err)
	case errors.As(err, &result):
		to.Kind, to.Message = ResultError, "the result cannot be returned: "+to.Message
	case thrown == nil:
		to.explainFault(fault.From(err), false)
	case thrown.Static:
		to.Kind = SyntaxError
		to.hint(thrown.Hint)
		to.suggestLua(ctx, q)
	default:
		to.explainThrown(ctx, r, q, thrown, err)
	}
}

// suggestLua helps with Lua that was read as JavaScript. It reports whether it did.
func (e *Error) suggestLua(ctx context.Context, q Request) bool {
	_, err := lua.New(lua.Options{}).CompileContext(context.WithoutCancel(ctx), q.Source, q.name())
	if err != nil && !likeLua().MatchString(q.Source) {
		return false
	}
	e.hint(`This looks like Lua but was read as JavaScript: set language to "lua"`)
	return true
}

// likeLua matches what most Lua sources and no JavaScript sources contain.
var likeLua = lazyregexp.New(`(?m)^\s*(local\s|--[^>]|end\b|elseif\b|repeat\b)|\b(then|do)\s*$|\bthen\b.*\bend\b|` +
	`[^.]\.\.[^.]|~=|\bmcp\.\w+(\.\w+)?\s*\{|\bfunction\b[^{]*\bend\b`)

// jsMessage returns the text of what was thrown. The name of a plain Error is omitted.
func jsMessage(thrown *js.Error) string {
	if thrown.Name == "" || thrown.Name == "Error" {
		return thrown.Message
	}
	return thrown.Name + ": " + thrown.Message
}

// jsFrames converts a stack, without frames of code made by eval.
func jsFrames(stack []js.Frame) []Frame {
	var frames []Frame
	for _, f := range stack {
		if !strings.HasPrefix(f.File, "<") {
			frames = append(frames, Frame{Source: f.File, Line: f.Line, Column: f.Column, Function: f.Function})
		}
	}
	return frames
}

// place takes the position from the innermost frame in this source: functions of a
// session may come from other sources.
func (e *Error) place(q Request) {
	if i := slices.IndexFunc(e.Stack, func(f Frame) bool { return f.Source == q.name() }); i >= 0 {
		e.Line, e.Column = e.Stack[i].Line, e.Stack[i].Column
	}
	e.locate(q)
}

// explainStop describes errors that a script cannot catch.
func (e *Error) explainStop(stopped *js.Stopped, err error) {
	var timeout *timeoutError
	var inner *fault.Error
	switch {
	case errors.As(stopped.Cause, &timeout):
		e.Kind, e.Message = Timeout, timeout.Error()
	case fault.CodeOf(err) == fault.Limit:
		e.Kind, e.Message = LimitError, strings.TrimSuffix(firstLine(err), ": "+stopped.Error())
	case fault.CodeOf(err) == fault.Timeout:
		e.Kind, e.Message = Timeout, strings.TrimSuffix(firstLine(err), ": "+stopped.Error())
	case errors.As(stopped.Cause, &inner): // an effect ended the run
		e.Message = inner.Error()
		e.explainFault(inner, false)
	default:
		e.Kind, e.Message = Cancelled, "the run was cancelled"
	}
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func outOfMemoryText(limit int64) string {
	return fmt.Sprintf("the script needed more than %d MiB of memory and was stopped", limit>>20)
}

func (e *Error) hint(text string) {
	if text != "" {
		e.Suggestions = append(e.Suggestions, text)
	}
}

var (
	notDefined = lazyregexp.New(`^ReferenceError: (.+) is not defined$`)
	noProperty = lazyregexp.New(`^TypeError: cannot (?:read|set) property`)
)

// explainThrown classifies an exception by its cause and message.
func (e *Error) explainThrown(ctx context.Context, r *Runner, q Request, thrown *js.Error, err error) {
	if thrown.Func != "" {
		cause, ofTool := fault.New(fault.Code(thrown.Code), "%s", thrown.Message).WithHint("%s", thrown.Hint), false
		if known := (*jsFailure)(nil); errors.As(err, &known) && known.cause != nil {
			var tool toolFault
			ofTool = errors.As(known.cause, &tool)
			cause = fault.From(known.cause)
		}
		if ofTool && cause.Code == fault.ToolNotFound {
			cause = fault.New(cause.Code, "%s", cause.Error()) // its hint is not written as in scripts
			e.suggestTool(ctx, r, thrown.Func[strings.LastIndex(thrown.Func, ".")+1:])
		}
		e.explainFault(cause, ofTool)
		e.suggestNamesake(ctx, r, thrown.Func)
		return
	}
	switch message := e.Message; {
	case notDefined().MatchString(message):
		e.explainUndefined(ctx, r, q, strings.Trim(notDefined().FindStringSubmatch(message)[1], "'"), thrown.Hint)
	case message == "TypeError: not a function":
		e.Kind = NilCall
		if called := calledAt(e.SourceLine, e.Column); called != "" {
			e.Message = "TypeError: " + called + " is not a function"
			e.suggestMember(r, called)
		}
	case noProperty().MatchString(message):
		e.Kind = IndexError
	case thrown.Name == "TypeError":
		e.Kind = TypeError
	}
}

// explainUndefined helps with an undefined global.
func (e *Error) explainUndefined(ctx context.Context, r *Runner, q Request, name, hint string) {
	if strings.Contains(e.SourceLine, name+"(") {
		e.Kind = NilCall
	}
	if e.hint(hint); hint != "" || onlyLua(e.SourceLine, name) && e.suggestLua(ctx, q) {
		return
	}
	e.suggestName(ctx, r, name)
}

// onlyLua tells whether an undefined name on a line is one that Lua has, or part of a comment
// of Lua.
func onlyLua(line, name string) bool {
	return name == "nil" || slices.Contains(luaGlobals, name) || slices.Contains(luaLibraries, name) || strings.HasPrefix(strings.TrimSpace(line), "--")
}

// suggestAwait helps when a script used the promise of a call instead of its result. It
// reports whether it did.
func (e *Error) suggestAwait(ctx context.Context, r *Runner, q Request) bool {
	if q.language() != JavaScript || e.Kind != IndexError && e.Kind != NilCall {
		return false
	}
	calls := []string{`mcp\.[\w$.]+`, `mcp(?:\.[\w$]+)?\[[^\]]*\]`}
	for _, ref := range r.toolsIn(ctx, q) {
		calls = append(calls, regexp.QuoteMeta(identifier(ref.Name)))
	}
	call := `(?:` + strings.Join(calls, "|") + `)`
	line := lineAt(q.Source, e.Line)
	for _, m := range regexp.MustCompile(`\b([\w$]+)\s*=\s*(`+call+`)\(`).FindAllStringSubmatch(q.Source, -1) {
		if regexp.MustCompile(`(?:^|[^\w$.])` + regexp.QuoteMeta(m[1]) + `\s*[.\[]`).MatchString(line) {
			e.hint(fmt.Sprintf("%s is a promise: write %s = await %s(…)", m[1], m[1], m[2]))
			return true
		}
	}
	if m := regexp.MustCompile(`(` + call + `)\(.*\)\s*\.`).FindStringSubmatch(line); m != nil && !strings.Contains(line, "await") {
		e.hint(fmt.Sprintf("A call returns a promise: write (await %s(…))", m[1]))
		return true
	}
	if strings.HasSuffix(e.Message, " of a promise") {
		e.hint("Write await before the call that returned it")
		return true
	}
	return false
}

// suggestName helps with an undefined global: it suggests similar names, or the tools
// that may be meant.
func (e *Error) suggestName(ctx context.Context, r *Runner, name string) {
	tools := r.toolNames(ctx)
	if e.suggestQuoted(tools) {
		return
	}
	if meant := tools.spelled(name); len(meant) > 1 {
		e.hint("Several tools have that name; write " + strings.Join(meant, " or "))
		return
	}
	if absent := absentInJavaScript[name]; absent != "" {
		e.hint(absent)
		return
	}
	known := documentedInJavaScript(r.Modules())
	if e.suggestSpace(tools, name) || e.suggestIndexed(known, name) || e.suggestModuleOf(name, known) {
		return
	}
	all := tools.names()
	for module := range known {
		if module != "" {
			all = append(all, module)
		}
	}
	e.didYouMean(name, append(all, known[""]...))
}

// suggestNamesake names tools that are hidden by a function of ours with the same name.
func (e *Error) suggestNamesake(ctx context.Context, r *Runner, function string) {
	for _, one := range r.toolNames(ctx) {
		if one.space != "" && identifier(one.name) == function {
			e.hint("The tool of that name is " + one.path())
		}
	}
}

// suggestMember helps with an undefined function of a module.
func (e *Error) suggestMember(r *Runner, called string) {
	module, name, ok := strings.Cut(called, ".")
	if !ok {
		return
	}
	if known := documentedInJavaScript(r.Modules())[module]; known != nil {
		e.suggestMemberOf(module, name, known)
	}
}

// absentInJavaScript maps names of modules that only Lua has to advice.
var absentInJavaScript = map[string]string{
	"base64":   "Use bytes.toBase64() and Uint8Array.fromBase64(text), or btoa and atob",
	"map":      "Use list.map(fn)",
	"filter":   "Use list.filter(fn)",
	"reduce":   "Use list.reduce(fn, first)",
	"json":     "Use JSON.stringify and JSON.parse",
	"parallel": "Calls run in parallel with await Promise.all([ ... ])",
	"spawn":    "Calls run in parallel with await Promise.all([ ... ])",
}

// documentedInJavaScript is documented for the modules that JavaScript has.
func documentedInJavaScript(modules []host.Module) map[string][]string {
	return documented(slices.DeleteFunc(slices.Clone(modules), func(m host.Module) bool { return m.LuaOnly }))
}

var (
	pathBefore = lazyregexp.New(`[\w$.\]\['"?]*$`)
	wordAfter  = lazyregexp.New(`^[\w$]*`)
)

// calledAt returns the expression that ends at a column of a line: "midi.raed".
func calledAt(line string, column int) string {
	if column < 1 || column > len(line) {
		return ""
	}
	before, after := line[:column-1], line[column-1:]
	return strings.TrimLeft(pathBefore().FindString(before), ".?])'\"") + wordAfter().FindString(after)
}

// globals returns the tools that can be called by their plain names, of those that the
// source mentions. The tools depend on the outside, so the query passes the Handler; if it is
// refused, only mcp.<namespace>.<tool> works.
func (h *jsHost) globals(ctx context.Context, source string) []js.Func {
	words, fields := wordsOf(source)
	if len(words)+len(fields) == 0 {
		return nil
	}
	find := func(ctx context.Context, w *host.Services) map[string]string {
		return h.engine.plainNames(ctx, w.Tools, words, fields)
	}
	look := &host.Func{Name: "globals", Kind: host.Nondeterministic, Inspectable: true, Effect: host.Bind(find)}
	values, err := h.env.Call(ctx, "mcp", look, nil)
	if err != nil || len(values) != 1 {
		return nil
	}
	raw, _ := values[0].(json.RawMessage)
	var found map[string]string
	if json.Unmarshal(raw, &found) != nil || len(found) == 0 {
		return nil
	}
	h.spelled = found
	var funcs []js.Func
	for _, word := range words {
		if path := found[word]; path != "" {
			funcs = append(funcs, js.Func{Name: word, Target: "mcp." + path})
		}
	}
	return funcs
}

// plainIndex maps identifiers made from tool names to the tools; "" if several tools
// have the same.
type plainIndex struct {
	of    []tool.Info // the listing it was made from
	paths map[string]string
	// spelled are the tools whose names are not identifiers, by those identifiers.
	spelled map[string][]tool.Ref
}

// plainNames finds tools by words. The index is reused until the listing changes.
func (e *JavaScriptEngine) plainNames(ctx context.Context, source tool.Source, words, fields []string) map[string]string {
	found := map[string]string{}
	if source == nil {
		return found
	}
	infos, err := source.Tools(ctx)
	if err != nil || len(infos) == 0 {
		return found
	}
	index := e.plain.Load()
	if index == nil || len(index.of) != len(infos) || &index.of[0] != &infos[0] {
		index = newPlainIndex(infos)
		e.plain.Store(index)
	}
	for _, word := range words {
		if path := index.paths[word]; path != "" {
			found[word] = path
		}
	}
	index.addSpelled(found, fields)
	return found
}

// addSpelled adds the tools whose names are written as one of the fields.
func (x *plainIndex) addSpelled(found map[string]string, fields []string) {
	for _, word := range fields {
		for _, ref := range x.spelled[word] {
			key := ref.Space + "." + word
			if _, again := found[key]; again {
				found[key] = "" // several tools are written so
			} else {
				found[key] = ref.String()
			}
		}
	}
}

func newPlainIndex(infos []tool.Info) *plainIndex {
	index := &plainIndex{of: infos, paths: make(map[string]string, len(infos)), spelled: map[string][]tool.Ref{}}
	exact := make(map[tool.Ref]bool, len(infos))
	for i := range infos {
		exact[infos[i].Ref] = true
	}
	for i := range infos {
		name, path := identifier(infos[i].Name), infos[i].Name
		if infos[i].Space != "" {
			path = infos[i].Space + "." + path
		}
		if _, again := index.paths[name]; again {
			path = ""
		}
		index.paths[name] = path
		if name != infos[i].Name && infos[i].Space != "" && !exact[tool.Ref{Space: infos[i].Space, Name: name}] {
			index.spelled[name] = append(index.spelled[name], infos[i].Ref)
		}
	}
	return index
}

// identifier returns a tool's name as an identifier.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if isWordRune(r) {
			return r
		}
		return '_'
	}, name)
}

func isWordRune(r rune) bool {
	return r == '_' || r == '$' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// wordsOf returns the words of a source that may be names of globals, without duplicates
// and keywords, and the names after a dot that may stand for names with other characters.
func wordsOf(source string) (words, fields []string) {
	seen := map[string]bool{}
	for i := 0; i < len(source); i++ {
		if !isWordRune(rune(source[i])) {
			continue
		}
		end := i
		for end < len(source) && isWordRune(rune(source[end])) {
			end++
		}
		word := source[i:end]
		field := afterDot(source[:i])
		switch {
		case isDigit(word[0]):
		case field && strings.Contains(word, "_") && !seen["."+word]:
			seen["."+word] = true
			fields = append(fields, word)
		case !field && !seen[word] && !jsKeywords[word]:
			seen[word] = true
			words = append(words, word)
		}
		i = end
	}
	return words, fields
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// afterDot reports whether the text ends in a dot that is not part of three dots.
func afterDot(text string) bool {
	return strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "...")
}

var jsKeywords = wordSet(`await async break case catch class const continue default delete do else extends false finally for function if in
	instanceof let new null of return static super switch this throw true try typeof undefined var void while yield
	Array JSON Math Object Promise Date console length mcp params main describe`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}
