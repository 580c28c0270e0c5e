package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/scripting/script"
)

// live shows the output of a call while it runs: its lines, and on a terminal a
// progress bar below them.
type live struct {
	proc   *process
	prompt func(question string) (string, error) // asks the person if another reader owns the terminal; may be nil
	none   string                                // how a REPL shows that the value is nil; "" shows nothing

	mu    sync.Mutex
	shown map[int64]bool // numbers of the lines that were printed
}

func newLive(proc *process) *live {
	return &live{proc: proc, shown: map[int64]bool{}}
}

// caller returns the caller that receives the progress of a call.
func (l *live) caller() *tool.Caller {
	c := &tool.Caller{ID: "cli", Agent: "luanette"}
	if terminalWidth(l.proc.Stderr) > 0 {
		c.Progress = l.progress
	}
	l.enableQuestions(c)
	return c
}

// log receives the lines that a script logs.
func (l *live) log(entry tool.Log) {
	var message script.LogMessage
	if entry.Logger != "script" || json.Unmarshal(entry.Data, &message) != nil || message.Number == 0 {
		return // a message of a tool, not of the script
	}
	l.line(message)
}

// line prints a line once.
func (l *live) line(message script.LogMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown[message.Number] {
		return
	}
	l.shown[message.Number] = true
	out := l.proc.Stderr
	if message.Stream == "stdout" {
		out = l.proc.Stdout
	}
	l.proc.status.print(l.proc.Stderr, func() { fmt.Fprintln(out, message.Text) })
}

func (l *live) progress(p tool.Progress) {
	bar := progressBar(p, max(terminalWidth(l.proc.Stderr), 40))
	l.proc.status.set(l.proc.Stderr, func(s *statusLine) { s.bar = bar })
}

// end removes the bar.
func (l *live) end() {
	l.proc.status.set(l.proc.Stderr, func(s *statusLine) { s.bar = "" })
}

// progressBar returns a progress bar that fits the terminal's width.
func progressBar(p tool.Progress, width int) string {
	bar := fmt.Sprintf("%v %s", p.Progress, p.Message)
	if p.Total > 0 {
		const cells = 20
		share := min(max(p.Progress/p.Total, 0), 1)
		full := int(share * cells)
		bar = fmt.Sprintf("%s%s %3.0f%% %s", strings.Repeat("█", full), strings.Repeat("░", cells-full), 100*share, p.Message)
	}
	if r := []rune(bar); len(r) >= width {
		bar = string(r[:width-1])
	}
	return bar
}

// printResult prints the lines that were not printed yet, and the result.
func (l *live) printResult(structured json.RawMessage) error {
	lines, answer, err := readAnswer(structured)
	if err != nil {
		return err
	}
	l.lines(lines)
	if answer.Result != nil && string(answer.Result) != "null" {
		return printScriptResult(l.proc, answer.Result)
	}
	if l.none != "" && !answer.Silent {
		_, err = fmt.Fprintln(l.proc.Stdout, l.none)
	}
	return err
}

// printScriptResult prints what a script returned: JSON, or a text of several lines, such as that
// of help, as it is.
func printScriptResult(proc *process, result json.RawMessage) error {
	var text string
	if json.Unmarshal(result, &text) != nil || !strings.Contains(text, "\n") {
		return printJSON(proc.Stdout, result)
	}
	if terminalWidth(proc.Stdout) > 0 {
		text = plainText(text)
	}
	_, err := fmt.Fprintln(proc.Stdout, strings.TrimSuffix(text, "\n"))
	return err
}

// errorText returns the error text of a script. The text ends with the script's output,
// of which failure prints the lines that were not printed yet.
func (l *live) errorText(view tool.View) string {
	var meta map[string]json.RawMessage
	var output []script.LogMessage
	if json.Unmarshal(view.Meta, &meta) != nil || json.Unmarshal(meta[script.OutputKey], &output) != nil {
		return view.Text()
	}
	for i := range output {
		output[i].Number = int64(i) + 1
	}
	l.lines(output)
	text := view.Text()
	if at := strings.LastIndex(text, script.OutputHeading); at >= 0 {
		text = text[:at]
	}
	return text
}

// scriptAnswer is the result of a tool that runs a script.
type scriptAnswer struct {
	Result json.RawMessage
	Silent bool // it returned no value
	Output []struct{ Stream, Text string }
}

// readAnswer reads the result of a tool that runs a script, and the script's output.
func readAnswer(structured json.RawMessage) (lines []script.LogMessage, answer scriptAnswer, err error) {
	if err := json.Unmarshal(structured, &answer); err != nil {
		return nil, answer, fault.Wrap(fault.Upstream, err, "read result")
	}
	for i, line := range answer.Output {
		lines = append(lines, script.LogMessage{Number: int64(i) + 1, Stream: line.Stream, Text: line.Text})
	}
	return lines, answer, nil
}

// lines prints the lines that were not printed yet.
func (l *live) lines(lines []script.LogMessage) {
	for _, line := range lines {
		l.line(line)
	}
}

// enableQuestions lets the server ask a person at a terminal to approve what a script wants to
// do. Other questions are cancelled.
func (l *live) enableQuestions(c *tool.Caller) {
	file, ok := l.proc.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || terminalWidth(l.proc.Stderr) == 0 {
		return
	}
	c.Capabilities = json.RawMessage(`{"elicitation":{"form":{}}}`)
	c.Ask = func(ctx context.Context, questions []tool.Question) ([]json.RawMessage, error) {
		l.end()
		answers := make([]json.RawMessage, len(questions))
		for i, q := range questions {
			answer, err := l.ask(ctx, q, file)
			if err != nil {
				return nil, err
			}
			answers[i] = answer
		}
		return answers, nil
	}
}

// ask asks one question. An input other than yes, always or no leaves it open.
func (l *live) ask(ctx context.Context, q tool.Question, from *os.File) (json.RawMessage, error) {
	var asked struct {
		Message string
		Meta    map[string]string                               `json:"_meta"`
		Schema  struct{ Properties map[string]json.RawMessage } `json:"requestedSchema"`
	}
	if err := json.Unmarshal(q.Params, &asked); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read question")
	}
	if _, ok := asked.Schema.Properties["decision"]; !ok {
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	fmt.Fprintln(l.proc.Stderr, asked.Message)
	whole := asked.Meta[script.PlanKey]
	line, err := l.read(ctx, from)
	if err == nil && whole != "" && (line == "w" || line == "whole") {
		fmt.Fprintln(l.proc.Stderr, whole)
		line, err = l.read(ctx, from)
	}
	if err != nil {
		return nil, err
	}
	return decisionOf(line), nil
}

// read reads a line of the terminal.
func (l *live) read(ctx context.Context, from *os.File) (string, error) {
	const choice = "Allow it? [y]es, [a]lways this tool, [n]o, [w]hole plan, or Enter to leave it open: "
	typed := make(chan string, 1)
	go func() { // reading a line cannot be cancelled; it ends when the person types one
		var line string
		if l.prompt != nil {
			line, _ = l.prompt(choice)
		} else {
			fmt.Fprint(l.proc.Stderr, choice)
			line, _ = bufio.NewReader(from).ReadString('\n')
		}
		typed <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-typed:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func decisionOf(line string) json.RawMessage {
	switch line {
	case "y", "yes":
		return json.RawMessage(`{"action":"accept","content":{"decision":"allow"}}`)
	case "a", "always":
		return json.RawMessage(`{"action":"accept","content":{"decision":"allow","remember":"tool"}}`)
	case "n", "no":
		return json.RawMessage(`{"action":"accept","content":{"decision":"deny"}}`)
	default:
		return json.RawMessage(`{"action":"cancel"}`)
	}
}

// statusLine is the last line of standard error, below the output of a command: a
// progress bar, or what the command waits for.
type statusLine struct {
	mu      sync.Mutex
	bar     string // the progress of a call
	waiting string // what it waits for; shown instead of the bar
	drawn   string
}

// draw replaces the line on the terminal, or removes it. The caller holds mu.
func (s *statusLine) draw(w io.Writer, text string) {
	if s.drawn != text {
		_, _ = io.WriteString(w, "\r\x1b[K"+text)
	}
	s.drawn = text
}

func (s *statusLine) text() string {
	if s.waiting != "" {
		return s.waiting
	}
	return s.bar
}

// set changes the line.
func (s *statusLine) set(w io.Writer, change func(s *statusLine)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
	s.draw(w, s.text())
}

// print prints above the line.
func (s *statusLine) print(w io.Writer, print func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draw(w, "")
	print()
	s.draw(w, s.text())
}

// When a waiting command says so on a pipe: first after a while, then more and more
// seldom. On a terminal the line changes every second.
var pipeReports = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second}

const (
	firstShown     = 300 * time.Millisecond // on a terminal
	lastPipeReport = time.Minute            // between the further ones
)

// reportWaiting says on standard error what a command waits for and since when, until
// stop is called.
func reportWaiting(proc *process, pending func() []client.Waiting) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	width := terminalWidth(proc.Stderr)
	go func() {
		defer close(ended)
		tick := time.NewTicker(firstShown)
		defer tick.Stop()
		var since time.Time // when the wait began
		reported := 0
		for {
			select {
			case <-tick.C:
			case <-done:
				proc.status.set(proc.Stderr, func(s *statusLine) { s.waiting = "" })
				return
			}
			list := pending()
			switch {
			case len(list) == 0:
				since, reported = time.Time{}, 0
			case since.IsZero():
				since = oldest(list)
			}
			switch {
			case width > 0:
				proc.status.set(proc.Stderr, func(s *statusLine) { s.waiting = short(waitingText(list), width-2) })
			case len(list) > 0 && time.Since(since) >= reportAfter(reported):
				for time.Since(since) >= reportAfter(reported) {
					reported++
				}
				fmt.Fprintln(proc.Stderr, waitingText(list))
			}
		}
	}()
	return func() { close(done); <-ended }
}

// reportAfter returns when the nth report is due.
func reportAfter(n int) time.Duration {
	if n < len(pipeReports) {
		return pipeReports[n]
	}
	return time.Duration(n-len(pipeReports)+1) * lastPipeReport
}

func oldest(list []client.Waiting) time.Time {
	return slices.MinFunc(list, func(a, b client.Waiting) int { return a.Since.Compare(b.Since) }).Since
}

// mostWaiting is the number of names in a report.
const mostWaiting = 3

// waitingText says what a command waits for, and since when; "" if for nothing.
func waitingText(list []client.Waiting) string {
	if len(list) == 0 {
		return ""
	}
	var names []string
	for _, w := range list[:min(len(list), mostWaiting)] {
		names = append(names, fmt.Sprintf("%s (%s, %d s)", w.Name, w.State, int(time.Since(w.Since).Seconds())))
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "waiting for " + strings.Join(names, ", ") + " …"
}

// followConnection is what a command waits for that connects to one server in this process: doing
// is told what is done meanwhile.
func followConnection(name string) (doing func(upstream.Status), waiting func() []client.Waiting) {
	var mu sync.Mutex
	now := client.Waiting{Name: name, State: "connecting", Since: time.Now()}
	doing = func(s upstream.Status) {
		mu.Lock()
		defer mu.Unlock()
		now.State, now.Since = string(s.State), s.Since
		if s.State == upstream.StateInstalling {
			now.State = s.LastLine
		}
	}
	return doing, func() []client.Waiting {
		mu.Lock()
		defer mu.Unlock()
		return []client.Waiting{now}
	}
}

// waitingForConnection is what a command waits for that connects to one server.
func waitingForConnection(name string) func() []client.Waiting {
	began := time.Now()
	return func() []client.Waiting {
		return []client.Waiting{{Name: name, State: "connecting", Since: began}}
	}
}
