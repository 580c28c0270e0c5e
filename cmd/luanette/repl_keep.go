package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"

	"github.com/luanette/luanette/internal/base/fault"
)

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
