package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/lua"
)

// replCommand is `luanette repl`.
type replCommand struct {
	clientFlags
	languageFlag
	Session string `placeholder:"ID|NAME" help:"Continue the session with this id or name, or create one with this name; without a name if omitted."`
}

// Help is shown by `luanette repl --help`.
func (replCommand) Help() string {
	return `Type Lua, or JavaScript with --language javascript, and see what it returns.
Variables and functions persist between lines, and with --session between runs.
Incomplete code continues on the next line; Tab completes globals and tools. ` + replHelp
}

const replHelp = `Commands:
  /reset          start again without the session's globals; also /lua reset
  /preview CODE   show what CODE would do, in a copy of the session; alone, the next lines
  /save NAME      store the function NAME, or main, as a script that runs by itself
  /fork           continue in a copy of the session; the original does not change
  /tools [WORDS]  list all tools, or those that match WORDS
  /help           show this text
  /quit           exit, as Ctrl-D does; the session is stored
Ctrl-C stops running code, or discards the typed line.`

// Run reads, runs and prints until the input ends.
func (c *replCommand) Run(ctx context.Context, proc *process) error {
	ctx = context.WithoutCancel(ctx) // an interrupt ends a turn, not the command
	return c.withClient(ctx, proc, func(api client.Client) error {
		r := &repl{flags: &c.clientFlags, proc: proc, api: api, session: c.Session, asked: c.Language, language: cmp.Or(c.Language, script.Lua)}
		if err := r.begin(ctx); err != nil {
			return err
		}
		lines := openLines(proc, func(word string) []string { return r.complete(ctx, word) })
		defer lines.Close()
		r.lines = lines
		r.printBanner()
		if err := r.loop(ctx, lines); err != nil {
			return err
		}
		return r.leave(ctx)
	})
}

// repl is one interactive run of the command.
type repl struct {
	flags    *clientFlags
	proc     *process
	api      client.Client
	session  string
	asked    string // the language of --language; "" if it was not given
	language string
	fresh    bool     // the session was created here and has run no code
	tools    []string // paths of all tools; loaded on first use

	lines      lineReader
	previewing bool // the next code is only previewed
}

// begin creates a session unless --session names one.
func (r *repl) begin(ctx context.Context) error {
	if r.session != "" {
		return r.findSession(ctx)
	}
	return r.create(ctx, "repl")
}

func (r *repl) create(ctx context.Context, name string) error {
	id, err := r.sessionFrom(ctx, "session_create", map[string]any{"name": name, "language": r.language})
	r.session, r.fresh = id, true
	return err
}

// findSession finds the session that --session names, and its language.
func (r *repl) findSession(ctx context.Context) error {
	view, err := callTool(ctx, r.proc, r.api, "session_list", map[string]any{})
	if err != nil {
		return err
	}
	var list struct {
		Sessions []struct {
			ID       string `json:"session_id"`
			Name     string `json:"name"`
			Language string `json:"language"`
		}
	}
	if err := json.Unmarshal(view.Structured, &list); err != nil {
		return fault.Wrap(fault.Upstream, err, "read result of session_list")
	}
	for _, one := range list.Sessions {
		if one.ID != r.session && one.Name != r.session {
			continue
		}
		if asked := r.asked; asked != "" && asked != one.Language {
			return fault.New(fault.InvalidParams, "the session %s is in %s", r.session, languageNames[one.Language]).
				WithHint("leave --language out to continue it, or give another --session")
		}
		r.session, r.language = one.ID, one.Language
		return nil
	}
	if !strings.HasPrefix(r.session, "s-") {
		return r.create(ctx, r.session)
	}
	return fault.New(fault.NotFound, "you have no session %s", r.session).
		WithHint("luanette repl creates one and prints at its end how to continue it; unused sessions expire")
}

// sessionFrom calls a tool that returns a session, and returns its id.
func (r *repl) sessionFrom(ctx context.Context, name string, args map[string]any) (string, error) {
	view, err := callTool(ctx, r.proc, r.api, name, args)
	if err != nil {
		return "", err
	}
	var made struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal(view.Structured, &made); err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read result of %s", name)
	}
	return made.ID, nil
}

func (r *repl) printBanner() {
	if terminalWidth(r.proc.Stdout) > 0 {
		fmt.Fprintf(r.proc.Stderr, "Luanette %s, %s. /help lists commands, Ctrl-D exits.\n", version, languageNames[r.language])
	}
}

// leave closes a session that has run no code. For another it prints how to continue
// it.
func (r *repl) leave(ctx context.Context) error {
	if r.fresh {
		_, err := callTool(ctx, r.proc, r.api, "session_close", map[string]any{"session_id": r.session})
		return err
	}
	where := ""
	if r.flags.Server != "" {
		where = " --server " + r.flags.Server
	}
	fmt.Fprintf(r.proc.Stderr, "session stored; `luanette repl --session %s%s` continues it\n", r.session, where)
	return nil
}

const (
	prompt     = "> "
	promptMore = ">> "
)

// loop reads lines until the input ends.
func (r *repl) loop(ctx context.Context, lines lineReader) error {
	var code string
	for {
		ask := prompt
		if code != "" {
			ask = promptMore
		}
		line, err := lines.Prompt(ask)
		switch {
		case errors.Is(err, errInterrupted):
			code = ""
			continue
		case errors.Is(err, io.EOF) && code != "":
			return r.run(ctx, code) // its error says what is missing
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if code == "" && r.isCommand(line) {
			lines.Remember(line)
			if r.runCommand(ctx, line) {
				return nil
			}
			continue
		}
		code = strings.TrimLeft(code+"\n"+line, "\n")
		if strings.TrimSpace(code) == "" || r.incomplete(code) {
			continue
		}
		lines.Remember(code)
		if err := r.runOrPreview(ctx, code); err != nil {
			return err
		}
		code = ""
	}
}

// runCommand runs a command and reports whether it was /quit.
func (r *repl) runCommand(ctx context.Context, line string) (quit bool) {
	err := r.command(ctx, line)
	quit = errors.Is(err, errQuit)
	if err != nil && !quit {
		printError(r.proc, err)
	}
	return quit
}

// commandWord matches the beginning of a command. A slash alone is not enough, since
// a line of JavaScript may begin with a regular expression.
var commandWord = lazyregexp.New(`^/[a-z]+(\s|$)`)

func (r *repl) isCommand(line string) bool {
	if r.language == script.JavaScript {
		return commandWord().MatchString(line)
	}
	return strings.HasPrefix(line, "/")
}

var languageNames = map[string]string{script.Lua: "Lua 5.4", script.JavaScript: "JavaScript"}

// incomplete reports whether code may be completed by another line.
func (r *repl) incomplete(code string) bool {
	if r.language == script.JavaScript {
		return openJavaScript(code)
	}
	return incompleteLua(code)
}

// incompleteLua asks the compiler. A quoted string cannot continue on another line.
func incompleteLua(code string) bool {
	state := lua.New(lua.Options{})
	if _, err := state.Load("return "+code, "=repl"); err == nil {
		return false
	}
	_, err := state.Load(code, "=repl")
	return err != nil && strings.HasSuffix(err.Error(), "<eof>") && !strings.Contains(err.Error(), "unfinished string")
}

// runOrPreview runs code, or previews it after /preview.
func (r *repl) runOrPreview(ctx context.Context, code string) error {
	if !r.previewing {
		return r.run(ctx, code)
	}
	r.previewing = false
	if err := r.preview(ctx, code); err != nil {
		printError(r.proc, err)
	}
	return nil
}

// run runs code in the session and shows its output and result. It prints the error
// of failed code and returns nil.
func (r *repl) run(ctx context.Context, code string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	shown := newLive(r.proc)
	shown.none = map[string]string{script.Lua: "nil", script.JavaScript: "null"}[r.language]
	if r.lines != nil {
		shown.prompt = r.lines.Prompt
	}
	caller := shown.caller()
	if !r.flags.JSON {
		caller.Log = shown.log
	}
	view, err := r.eval(ctx, code, caller)
	shown.end()
	switch {
	case err != nil:
		printError(r.proc, err)
		return nil
	case view.IsError:
		fmt.Fprintln(r.proc.Stderr, shown.errorText(view))
		return nil
	case r.flags.JSON:
		return printJSON(r.proc.Stdout, view.Structured)
	}
	r.warn(view)
	if err := shown.printResult(view.Structured); err != nil {
		return err
	}
	if waits(view) {
		fmt.Fprintln(r.proc.Stderr, view.Text())
	}
	return nil
}

func (r *repl) eval(ctx context.Context, code string, caller *tool.Caller) (tool.View, error) {
	r.fresh = false
	return r.api.Call(ctx, "lua_eval", map[string]any{"code": code, "session_id": r.session}, caller)
}

// warn prints which variables of a turn could not be stored.
func (r *repl) warn(view tool.View) {
	var answer struct{ Warnings []string }
	if json.Unmarshal(view.Structured, &answer) != nil {
		return
	}
	for _, warning := range answer.Warnings {
		fmt.Fprintln(r.proc.Stderr, "warning:", warning)
	}
}

// errQuit ends the loop.
var errQuit = errors.New("quit")

// command runs a line that begins with a slash.
func (r *repl) command(ctx context.Context, line string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if isLuaReset(line) {
		word = "/reset"
	}
	switch word {
	case "/reset":
		_, err := r.sessionFrom(ctx, "session_reset", map[string]any{"session_id": r.session})
		return err
	case "/fork":
		id, err := r.sessionFrom(ctx, "session_fork", map[string]any{"session_id": r.session})
		if err != nil {
			return err
		}
		fmt.Fprintf(r.proc.Stderr, "now in %s, a copy of %s\n", id, r.session)
		r.session, r.fresh = id, false
		return nil
	case "/preview":
		if strings.TrimSpace(rest) == "" {
			r.previewing = true
			fmt.Fprintln(r.proc.Stderr, "the next code is previewed")
			return nil
		}
		return r.preview(ctx, rest)
	case "/save":
		return r.save(ctx, strings.TrimSpace(rest))
	case "/tools":
		return r.listTools(ctx, strings.TrimSpace(rest))
	case "/help":
		_, err := fmt.Fprintln(r.proc.Stdout, replHelp)
		return err
	case "/quit", "/exit":
		return errQuit
	default:
		return fault.New(fault.InvalidParams, "no command %s", word).WithHint("/help lists them")
	}
}

// listTools shows all tools, or the results of a search.
func (r *repl) listTools(ctx context.Context, words string) error {
	if words != "" {
		view, err := callTool(ctx, r.proc, r.api, "search_tools", map[string]any{"query": words})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(r.proc.Stdout, view.Text())
		return err
	}
	paths, err := r.toolPaths(ctx)
	for _, path := range paths {
		fmt.Fprintln(r.proc.Stdout, path)
	}
	return err
}

// preview shows what code would do in the session. It does not change the session.
func (r *repl) preview(ctx context.Context, code string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	view, err := callTool(ctx, r.proc, r.api, "lua_preview", map[string]any{"code": code, "session_id": r.session})
	if err != nil {
		return err
	}
	if r.flags.JSON {
		return printJSON(r.proc.Stdout, view.Structured)
	}
	_, err = fmt.Fprintln(r.proc.Stdout, view.Text())
	return err
}

// save stores a function of the session as a script, with the variables it uses.
func (r *repl) save(ctx context.Context, name string) error {
	if name == "" {
		return fault.New(fault.InvalidParams, "/save needs a name").WithHint("such as /save tidy_up, for the function tidy_up")
	}
	view, err := callTool(ctx, r.proc, r.api, "session_script", map[string]any{"session_id": r.session, "name": name})
	if err != nil {
		return err
	}
	var written struct {
		Source   string
		Warnings []string
	}
	if err := json.Unmarshal(view.Structured, &written); err != nil {
		return fault.Wrap(fault.Upstream, err, "read result of session_script")
	}
	for _, warning := range written.Warnings {
		fmt.Fprintln(r.proc.Stderr, "warning:", warning)
	}
	view, err = callTool(ctx, r.proc, r.api, "script_store", map[string]any{"content": written.Source})
	if err != nil {
		return err
	}
	fmt.Fprintln(r.proc.Stdout, view.Text())
	return nil
}
