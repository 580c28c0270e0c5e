package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/peterh/liner"
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
var lastWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\w.:]*$`) })

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
