package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/commandline"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

// runCommand is `luanette run`.
type runCommand struct {
	clientFlags
	languageFlag
	File  string   `arg:"" complete:"file" help:"The script; - reads it from standard input."`
	Param []string `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"A parameter for main(params); KEY:=JSON passes JSON unchanged."`
}

// Help is shown by `luanette run --help`.
func (runCommand) Help() string {
	return `The script is Lua, or JavaScript or TypeScript if its name ends in .js or .ts. It
runs in the sandbox and can call every connected tool. If it defines main(params),
main is called with the parameters; otherwise the value of the file is the result.
Its output goes to standard output and standard error; the result comes last, as
JSON, or as it is if it is a text of several lines.

  luanette run report.lua -p name=Ada`
}

// Run runs the script in this process or on a running server.
func (c *runCommand) Run(ctx context.Context, proc *process) error {
	source, err := readSource(proc, c.File)
	if err != nil {
		return err
	}
	params, err := readParams(c.Param)
	if err != nil {
		return err
	}
	c.Notes = scriptNotes(c.File, c.Param)
	return c.evaluate(ctx, proc, c.of(c.File, sourceArgs(source, params)))
}

// scriptNotes returns the name of a script's file and its params as they were typed,
// since only the script's describe() knows which of them are text.
func scriptNotes(file string, pairs []string) map[string]any {
	notes := map[string]any{}
	if file != "" && file != "-" {
		notes[scripttools.FileKey] = filepath.Base(file)
	}
	typed := map[string]string{}
	for _, pair := range pairs {
		if key, text, ok := strings.Cut(pair, "="); ok && !strings.HasSuffix(key, ":") {
			typed[key] = text
		}
	}
	if len(typed) > 0 {
		notes[scripttools.TypedKey] = typed
	}
	return notes
}

// readParams reads KEY=VALUE pairs.
func readParams(pairs []string) (map[string]json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	for _, pair := range pairs {
		key, value, err := commandline.Pair(pair, anyType)
		if err != nil {
			return nil, err
		}
		params[key] = value
	}
	return params, nil
}

// sourceArgs returns the arguments of a tool that runs a script file. The tool calls
// main if it gets params, so they are added only if the file defines main.
func sourceArgs(source string, params map[string]json.RawMessage) map[string]any {
	args := map[string]any{"code": source}
	if len(params) > 0 || definesMain().MatchString(source) {
		args["params"] = params
	}
	return args
}

// definesMain matches the definition of the global function main.
var definesMain = lazyregexp.New(`(?m)^\s*((async\s+)?function\s+main\s*[(<]|((const|let|var)\s+)?main\s*=)`)

// anyType reads a parameter as JSON if it is valid JSON. The server checks it against
// the script's describe().
func anyType(string) string { return "any" }

func readSource(proc *process, file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(proc.Stdin)
		return string(text), err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fault.Wrap(fault.NotFound, err, "read script")
	}
	return string(text), nil
}

// evalCommand is `luanette eval`.
type evalCommand struct {
	clientFlags
	languageFlag
	Code string `arg:"" help:"An expression, or statements with a return; - reads standard input."`
}

// Help is shown by `luanette eval --help`.
func (evalCommand) Help() string {
	return `The code runs in the sandbox and can call every connected tool.

  luanette eval '1 + 1'
  luanette eval 'return mcp.everything.get_sum{ a = 2, b = 40 }'
  luanette eval --language javascript 'mcp.everything.get_sum({ a: 2, b: 40 })'`
}

// Run evaluates the code in this process or on a running server.
func (c *evalCommand) Run(ctx context.Context, proc *process) error {
	code := c.Code
	if code == "-" {
		text, err := io.ReadAll(proc.Stdin)
		if err != nil {
			return err
		}
		code = string(text)
	}
	return c.evaluate(ctx, proc, c.of("", map[string]any{"code": code}))
}

// evaluate runs a script with lua_eval and shows its output while it runs, then its
// result.
func (f *clientFlags) evaluate(ctx context.Context, proc *process, args map[string]any) error {
	var view tool.View
	shown := newLive(proc)
	err := f.withClient(ctx, proc, func(api client.Client) (err error) {
		caller := shown.caller()
		if !f.JSON {
			caller.Log = shown.log
		}
		view, err = api.Call(ctx, "lua_eval", args, caller)
		return err
	})
	shown.end()
	if err != nil {
		return err
	}
	if view.IsError {
		fmt.Fprintln(proc.Stderr, shown.errorText(view))
		return exitStatus(exitFailure)
	}
	if f.JSON {
		return printJSON(proc.Stdout, view.Structured)
	}
	if err := shown.printResult(view.Structured); err != nil {
		return err
	}
	if waits(view) {
		fmt.Fprintln(proc.Stderr, view.Text())
		return exitStatus(exitWaiting)
	}
	return nil
}

// waits reports whether a script waits for approval.
func waits(view tool.View) bool {
	_, waiting := view.PendingApproval()
	return waiting
}

// jobRunCommand is `luanette job run`.
type jobRunCommand struct {
	runningFlags
	scriptArg
}

// Help is shown by `luanette job run --help`.
func (jobRunCommand) Help() string {
	return `Starts the job and follows it: its output and progress go to standard error, its
result comes last, on standard output, as that of run. The exit code is 1 if the job fails.
Ctrl-C asks whether to cancel the job; otherwise it continues on the server. If the
server ends meanwhile, the command waits a minute for it, and then exits with 4.

  luanette job run report.lua -p name=Ada
  luanette job run report -p name=Ada`
}

// Run starts the job and follows it.
func (c *jobRunCommand) Run(ctx context.Context, proc *process) error {
	c.Notes = c.notes()
	return c.withClient(context.WithoutCancel(ctx), proc, func(api client.Client) error {
		args, err := c.args(ctx, proc, api)
		if err != nil {
			return err
		}
		view, err := callTool(context.WithoutCancel(ctx), proc, api, "lua_execute", args)
		if err != nil {
			return err
		}
		var started jobtools.Execution
		if err := json.Unmarshal(view.Structured, &started); err != nil {
			return fault.Wrap(fault.Upstream, err, "read result of lua_execute")
		}
		fmt.Fprintf(proc.Stderr, "job %s started\n", shortID(started.JobID))
		return c.follow(ctx, proc, api, started.JobID)
	})
}

// jobFollowCommand is `luanette job follow`.
type jobFollowCommand struct{ jobArg }

// Help is shown by `luanette job follow --help`.
func (jobFollowCommand) Help() string {
	return `Prints what the job has written so far and what it writes until its end to standard
error, then its result to standard output. The exit code is 1 if the job fails.`
}

// Run follows the job.
func (c *jobFollowCommand) Run(ctx context.Context, proc *process) error {
	return c.withClient(context.WithoutCancel(ctx), proc, func(api client.Client) error {
		id, err := jobID(ctx, proc, api, c.ID)
		if err != nil {
			return err
		}
		return c.follow(ctx, proc, api, id)
	})
}

// shortID returns the beginning of an id, which is enough to name a job.
func shortID(id string) string { return id[:min(8, len(id))] }

// follow follows a job until its end and prints its result. If ctx ends before, it asks
// what to do with the job.
func (f *runningFlags) follow(ctx context.Context, proc *process, api client.Client, id string) error {
	follower := jobFollower{proc: proc, api: api, id: id, flags: f, live: newLive(proc)}
	job, err := follower.untilEnd(ctx)
	follower.live.end()
	switch {
	case err != nil && ctx.Err() != nil:
		return follower.interrupted(context.WithoutCancel(ctx))
	case errors.Is(err, errServerGone):
		short := shortID(id)
		fmt.Fprintf(proc.Stderr, "job %s continues when the server is back: `%s`\n", short, f.command("job follow "+short))
		return exitStatus(exitServerGone)
	case err != nil:
		return err
	case f.JSON:
		if err := printJSON(proc.Stdout, job.raw); err != nil {
			return err
		}
	default:
		if err := job.printEnd(proc); err != nil {
			return err
		}
	}
	return job.exit()
}

// errServerGone means that the server of a job did not come back while it was awaited.
var errServerGone = errors.New("the server does not answer")

// jobFollower shows a job while it runs.
type jobFollower struct {
	proc  *process
	api   client.Client
	id    string
	flags *runningFlags
	live  *live

	next     int    // number of the first line that was not shown yet
	reported string // the last progress that was shown on a pipe
	asked    bool   // whether the wait for approval was shown
}

// followedJob is a job and the server's own text about it.
type followedJob struct {
	jobInfo
	raw json.RawMessage
}

// pollTime is how long the server waits for the end of a job, in milliseconds. Output and
// progress are shown in between.
const pollTime = 500

// untilEnd shows the job's output and progress until it has ended.
func (f *jobFollower) untilEnd(ctx context.Context) (followedJob, error) {
	for {
		if _, err := f.call(ctx, "job_poll", map[string]any{"job_ids": []string{f.id}, "timeout_ms": pollTime}); err != nil {
			return followedJob{}, err
		}
		view, err := f.call(ctx, "job_status", map[string]any{"job_id": f.id})
		if err != nil {
			return followedJob{}, err
		}
		current := followedJob{raw: view.Structured}
		if err := json.Unmarshal(view.Structured, &current.jobInfo); err != nil {
			return followedJob{}, fault.Wrap(fault.Upstream, err, "read job")
		}
		if err := f.showOutput(ctx); err != nil {
			return followedJob{}, err
		}
		if current.ended() {
			return current, nil
		}
		f.showProgress(&current.jobInfo)
	}
}

// A job continues when its server is back. How long that is awaited, and how often it is tried.
const (
	serverWait  = time.Minute
	serverRetry = time.Second
)

// call calls a tool that may be called again. It waits for a server that was stopped or killed.
func (f *jobFollower) call(ctx context.Context, name string, args map[string]any) (tool.View, error) {
	var since time.Time
	for {
		view, err := f.api.Call(ctx, name, args, nil)
		switch {
		case err == nil && view.IsError:
			return view, fault.New(fault.Upstream, "%s", view.Text())
		case fault.CodeOf(err) != fault.Unavailable || ctx.Err() != nil:
			return view, err
		case since.IsZero():
			since = time.Now()
			f.print("the server does not answer; waiting for it")
		case time.Since(since) > serverWait:
			return view, errServerGone
		}
		_ = clock.Real().Sleep(ctx, serverRetry) // a cancelled context fails the next call
	}
}

// showOutput prints the lines that the job wrote since the last time.
func (f *jobFollower) showOutput(ctx context.Context) error {
	view, err := f.call(ctx, "job_logs", map[string]any{"job_id": f.id, "from": f.next})
	if err != nil {
		return err
	}
	var logs jobtools.JobLogs
	if err := json.Unmarshal(view.Structured, &logs); err != nil {
		return fault.Wrap(fault.Upstream, err, "read output of the job")
	}
	f.next = logs.Next
	for _, line := range logs.Lines {
		f.print(line.Text)
	}
	return nil
}

func (f *jobFollower) print(line string) {
	f.proc.status.print(f.proc.Stderr, func() { fmt.Fprintln(f.proc.Stderr, plainText(line)) })
}

// showProgress shows a bar on a terminal, and a line for each change elsewhere.
func (f *jobFollower) showProgress(j *jobInfo) {
	if j.Status == string(job.Waiting) && j.waitsFor() == "" && !f.asked {
		f.asked = true
		f.print("the job waits for approval; decide with `" + f.flags.command("approval list") + "`")
	}
	if j.Progress == 0 && j.Message == "" {
		return
	}
	if terminalWidth(f.proc.Stderr) > 0 {
		f.live.progress(tool.Progress{Progress: j.Progress, Total: 1, Message: j.Message})
		return
	}
	if text := strings.TrimSpace(fmt.Sprintf("%.0f %% %s", j.Progress*100, j.Message)); text != f.reported {
		f.reported = text
		f.print(text)
	}
}

// interrupted asks a person whether the job should end too. Without a person the job
// continues.
func (f *jobFollower) interrupted(ctx context.Context) error {
	short := shortID(f.id)
	if isTerminal(f.proc.Stdin) && isTerminal(f.proc.Stderr) {
		fmt.Fprintf(f.proc.Stderr, "\ncancel job %s? [y]es, or Enter to leave it running: ", short)
		answer, _ := bufio.NewReader(f.proc.Stdin).ReadString('\n')
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
			view, err := f.call(ctx, "job_cancel", map[string]any{"job_id": f.id})
			if err != nil {
				return err
			}
			fmt.Fprintln(f.proc.Stderr, view.Text())
			return exitStatus(exitInterrupted)
		}
	}
	fmt.Fprintf(f.proc.Stderr, "job %s continues; follow it with `%s`, stop it with `%s`\n",
		short, f.flags.command("job follow "+short), f.flags.command("job cancel "+short))
	return exitStatus(exitInterrupted)
}

// command returns a command line for the same server.
func (f *runningFlags) command(words string) string {
	line := "luanette " + words
	if f.Config != "" {
		line += " --config " + f.Config
	}
	if f.Data != nil {
		line += " --data " + *f.Data
	}
	if f.Server != "" {
		line += " --server " + f.Server
	}
	return line
}

// printEnd prints how the job ended: the result to standard output, everything else to
// standard error.
func (j *followedJob) printEnd(proc *process) error {
	style := proc.style(proc.Stderr)
	fmt.Fprintf(proc.Stderr, "job %s %s after %s\n", shortID(j.JobID), style.state(j.Status), j.duration(timeOf(j.CompletedAt)))
	if j.Error != nil {
		fmt.Fprintf(proc.Stderr, "%s %s\n", style.bad("error:"), plainText(j.Error.Message))
		if j.Error.Hint != "" {
			fmt.Fprintf(proc.Stderr, "  %s\n", plainText(j.Error.Hint))
		}
	}
	if len(j.Result) == 0 || string(j.Result) == "null" {
		return nil
	}
	return printScriptResult(proc, j.Result)
}

// exit returns the exit status of a command that followed the job.
func (j *followedJob) exit() error {
	if j.Status == string(job.Complete) {
		return nil
	}
	return exitStatus(exitFailure)
}

// previewCommand is `luanette preview`.
type previewCommand struct {
	clientFlags
	languageFlag
	File  string   `arg:"" complete:"file" help:"The script; - reads it from standard input."`
	Param []string `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"A parameter for main(params); KEY:=JSON passes JSON unchanged."`
	Mock  []string `sep:"none" placeholder:"TOOL:=JSON" help:"The result of a tool, such as github.create_issue:={\"number\":7}."`
	Full  bool     `help:"Show all arguments."`
}

// Help is shown by `luanette preview --help`.
func (previewCommand) Help() string {
	return `Runs the script without changing anything. Tools that are declared read-only are
called. Every other call, write and command is recorded; it returns the value of
--mock, or a generated value that fits the tool's schema. The recorded effects are
printed as a numbered plan.`
}

// Run shows the script's plan, made in this process or on a running server.
func (c *previewCommand) Run(ctx context.Context, proc *process) error {
	source, err := readSource(proc, c.File)
	if err != nil {
		return err
	}
	params, err := readParams(c.Param)
	if err != nil {
		return err
	}
	c.Notes = scriptNotes(c.File, c.Param)
	args := c.of(c.File, sourceArgs(source, params))
	if len(c.Mock) > 0 {
		if args["mocks"], err = readParams(c.Mock); err != nil {
			return err
		}
	}
	view, err := c.call(ctx, proc, "lua_preview", args)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(proc.Stdout, view.Structured)
	} else if _, err = fmt.Fprintln(proc.Stdout, view.Text()); err == nil && c.Full {
		err = printWhole(proc, view)
	}
	if err != nil {
		return err
	}
	var previewed struct{ Error *struct{ Message string } }
	if err := json.Unmarshal(view.Structured, &previewed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read result")
	}
	if previewed.Error != nil {
		return exitStatus(exitFailure)
	}
	return nil
}

// printWhole prints the plan in a result with all arguments.
func printWhole(proc *process, view tool.View) error {
	var shown struct{ Plan []host.Planned }
	if err := json.Unmarshal(view.Structured, &shown); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the plan")
	}
	_, err := fmt.Fprintf(proc.Stdout, "\nWith all arguments:\n%s\n", host.PlanWhole(shown.Plan))
	return err
}

// languageFlag is the language of a script.
type languageFlag struct {
	Language string `enum:",lua,javascript" default:"" placeholder:"LANGUAGE" help:"Language of the script: lua or javascript; if omitted, the file's extension decides, otherwise lua."`
}

// of adds the language of a file to the arguments of a tool that runs it.
func (f languageFlag) of(file string, args map[string]any) map[string]any {
	if language := cmp.Or(f.Language, script.LanguageOf(file)); language != "" {
		args["language"] = language
	}
	return args
}

// storedLanguage returns the language of a file to store, which distinguishes
// TypeScript from JavaScript. It returns "" if the extension is unknown.
func storedLanguage(file string) string {
	if ext := strings.ToLower(filepath.Ext(file)); ext == ".ts" || ext == ".mts" {
		return "typescript"
	}
	return script.LanguageOf(file)
}

// openJavaScript reports whether code continues on the next line: a bracket, a
// template or a comment is open.
func openJavaScript(code string) bool {
	var open []byte
	for i := 0; i < len(code); i++ {
		rest := code[i:]
		switch c := code[i]; {
		case strings.HasPrefix(rest, "//"):
			i += max(0, strings.IndexByte(rest+"\n", '\n')-1)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return true
			}
			i += end + 3
		case c == '"' || c == '\'':
			i += quotedLength(rest, c)
		case c == '`':
			end := quotedLength(rest, c)
			if end >= len(rest)-1 && !strings.HasSuffix(rest[1:], "`") {
				return true
			}
			i += end
		case strings.IndexByte("([{", c) >= 0:
			open = append(open, c)
		case strings.IndexByte(")]}", c) >= 0 && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	return len(open) > 0
}

// quotedLength returns the distance to the closing quote, or to the end of the line or text.
func quotedLength(text string, quote byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == quote, text[i] == '\n' && quote != '`':
			return i
		}
	}
	return len(text) - 1
}
