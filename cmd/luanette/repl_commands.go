package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

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
