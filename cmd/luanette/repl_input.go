package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

// lineReader reads the lines that a person types, or those of a pipe.
type lineReader interface {
	// Prompt reads a line without its newline. It returns io.EOF at the end of the
	// input, and errDropped if the person interrupted the line.
	Prompt(prompt string) (string, error)
	// Remember adds a line to the history.
	Remember(line string)
	io.Closer
}

var errInterrupted = errors.New("interrupted")

// openLines reads from a terminal, with editing, history and completion, or from a
// pipe. The caller closes it.
func openLines(proc *process, complete func(word string) []string) lineReader {
	if isTerminal(proc.Stdin) && terminalWidth(proc.Stdout) > 0 {
		return newTerminal(historyFile(proc), complete)
	}
	return piped{bufio.NewReader(proc.Stdin)}
}

// piped reads lines from a pipe or a file.
type piped struct{ from *bufio.Reader }

func (p piped) Prompt(string) (string, error) {
	line, err := p.from.ReadString('\n')
	if errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

func (piped) Remember(string) {}
func (piped) Close() error    { return nil }

// terminal reads what a person types.
type terminal struct {
	*liner.State
	history string // the file; "" keeps none
}

func newTerminal(history string, complete func(word string) []string) *terminal {
	t := &terminal{liner.NewLiner(), history}
	t.SetCtrlCAborts(true)
	t.SetMultiLineMode(true)
	t.SetTabCompletionStyle(liner.TabPrints)
	t.SetWordCompleter(func(line string, pos int) (head string, words []string, tail string) {
		runes := []rune(line)
		head, tail = string(runes[:pos]), string(runes[pos:])
		word := lastWord().FindString(head)
		return strings.TrimSuffix(head, word), complete(word), tail
	})
	if file, err := os.Open(history); err == nil {
		_, _ = t.ReadHistory(file) // an unreadable history counts as empty
		_ = file.Close()
	}
	return t
}

// lastWord returns the word that Tab completes.
var lastWord = lazyregexp.New(`[\w.:]*$`)

func (t *terminal) Prompt(prompt string) (string, error) {
	line, err := t.State.Prompt(prompt)
	if errors.Is(err, liner.ErrPromptAborted) {
		return "", errInterrupted
	}
	return line, err
}

// Remember joins several lines into one. Lua reads both alike, unless a comment ends
// one of the lines.
func (t *terminal) Remember(code string) {
	if !strings.Contains(code, "--") {
		code = strings.ReplaceAll(code, "\n", " ")
	}
	for line := range strings.SplitSeq(code, "\n") {
		t.AppendHistory(line)
	}
}

// Close restores the terminal and saves the history.
func (t *terminal) Close() error {
	err := t.State.Close()
	if t.history == "" {
		return err
	}
	if problem := os.MkdirAll(filepath.Dir(t.history), 0o700); problem != nil {
		return errors.Join(err, problem)
	}
	file, problem := os.OpenFile(t.history, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if problem != nil {
		return errors.Join(err, problem)
	}
	_, problem = t.WriteHistory(file)
	return errors.Join(err, problem, file.Close())
}

// historyFile returns the path of the history file.
func historyFile(proc *process) string {
	if dir, ok := proc.Env.Lookup("XDG_STATE_HOME"); ok && dir != "" {
		return filepath.Join(dir, "luanette", "history")
	}
	if home, ok := proc.Env.Lookup("HOME"); ok && home != "" {
		return filepath.Join(home, ".local", "state", "luanette", "history")
	}
	return ""
}

// complete returns the completions of a word: tools, globals of the session and
// their fields. It returns none after an error.
func (r *repl) complete(ctx context.Context, word string) []string {
	if strings.HasPrefix(word, "mcp.") {
		paths, err := r.toolPaths(ctx)
		if err != nil {
			return nil
		}
		return pathsWithPrefix(paths, word)
	}
	at := strings.LastIndexAny(word, ".:") + 1
	question := namesBeginning
	if r.language == script.JavaScript {
		question = propertiesBeginning
	}
	view, err := r.eval(ctx, fmt.Sprintf(question, word[:at], word[at:]), &tool.Caller{ID: "cli"})
	if err != nil || view.IsError {
		return nil
	}
	var answer struct{ Result []string }
	if json.Unmarshal(view.Structured, &answer) != nil {
		return nil
	}
	for i, name := range answer.Result {
		answer.Result[i] = word[:at] + name
	}
	return answer.Result
}

// namesBeginning lists the fields of a table, given by its path, that begin with a
// prefix. It uses rawget, so that no metatable of the session is called.
const namesBeginning = `
local path, start = %q, %q
local t = _G
for part in path:gmatch("[^.:]+") do t = type(t) == "table" and rawget(t, part) or nil end
local names = json.array{}
if type(t) == "table" then
  for name in next, t do
    if type(name) == "string" and name:sub(1, #start) == start and name:match("^[%%a_][%%w_]*$") then names[#names + 1] = name end
  end
end
table.sort(names)
return names`

// propertiesBeginning is namesBeginning in JavaScript. Getters are not called.
const propertiesBeginning = `((path, start) => {
  let t = globalThis;
  for (const part of path.split(/[.:]/)) {
    if (part !== '') t = t === undefined || t === null ? undefined : Object.getOwnPropertyDescriptor(t, part)?.value;
  }
  if (t === undefined || t === null) return [];
  return Object.getOwnPropertyNames(t).filter((name) => name.startsWith(start) && /^[A-Za-z_$][\w$]*$/.test(name)).sort();
})(%q, %q)`

// pathsWithPrefix returns the paths that begin with word, each up to its next dot, so
// that a namespace is offered before its tools.
func pathsWithPrefix(paths []string, word string) []string {
	var found []string
	for _, path := range paths {
		if !strings.HasPrefix(path, word) {
			continue
		}
		if i := strings.IndexAny(path[len(word):], ".["); i > 0 {
			path = path[:len(word)+i]
		}
		if len(found) == 0 || found[len(found)-1] != path {
			found = append(found, path)
		}
	}
	return found
}

// toolPaths returns the names by which scripts call tools.
func (r *repl) toolPaths(ctx context.Context) ([]string, error) {
	if r.tools != nil {
		return r.tools, nil
	}
	text, err := r.api.Read(ctx, "lua://tools")
	if err != nil {
		return nil, err
	}
	var listed struct {
		Tools []struct {
			Path string `json:"lua_path"`
		}
	}
	if err := json.Unmarshal([]byte(text), &listed); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read list of tools")
	}
	for _, t := range listed.Tools {
		r.tools = append(r.tools, t.Path)
	}
	return r.tools, nil
}
