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
	"golang.org/x/term"
)

// lineReader is where a conversation comes from.
type lineReader interface {
	// Prompt reads a line without its end; io.EOF when there are no more, and
	// errDropped when the person has thought better of it.
	Prompt(prompt string) (string, error)
	// Remember puts a line among those one can go back to.
	Remember(line string)
	io.Closer
}

var errDropped = errors.New("dropped")

// openLines reads from a person at a terminal, who can edit, go back and
// complete, or else from a pipe. The caller closes it.
func openLines(world *process, complete func(word string) []string) lineReader {
	if file, ok := world.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) && terminalWidth(world.Stdout) > 0 {
		return newTerminal(historyFile(world), complete)
	}
	return piped{bufio.NewReader(world.Stdin)}
}

// piped reads lines nobody is typing.
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
		_, _ = t.ReadHistory(file) // a history nobody can read is an empty one
		_ = file.Close()
	}
	return t
}

// lastWord is what Tab completes.
var lastWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\w.:]*$`) })

func (t *terminal) Prompt(prompt string) (string, error) {
	line, err := t.State.Prompt(prompt)
	if errors.Is(err, liner.ErrPromptAborted) {
		return "", errDropped
	}
	return line, err
}

// Remember keeps several lines as one, which is the same Lua unless a comment
// would swallow what follows.
func (t *terminal) Remember(code string) {
	if !strings.Contains(code, "--") {
		code = strings.ReplaceAll(code, "\n", " ")
	}
	for line := range strings.SplitSeq(code, "\n") {
		t.AppendHistory(line)
	}
}

// Close gives the terminal back and saves the history.
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

// historyFile is where lines are remembered.
func historyFile(world *process) string {
	if dir, ok := world.Env.Lookup("XDG_STATE_HOME"); ok && dir != "" {
		return filepath.Join(dir, "luanette", "history")
	}
	if home, ok := world.Env.Lookup("HOME"); ok && home != "" {
		return filepath.Join(home, ".local", "state", "luanette", "history")
	}
	return ""
}
