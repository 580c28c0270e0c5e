package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

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
