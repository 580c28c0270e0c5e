package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/luanette/luanette/internal/base/fault"
)

// terminalWidth returns 0 if w is not a terminal.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 { // the terminal does not report it
		return 80
	}
	return width
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(from any) bool {
	file, ok := from.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// printError prints an error and its hint.
func printError(proc *process, err error) {
	fmt.Fprintln(proc.Stderr, err)
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintln(proc.Stderr, " ", hint)
	}
}

// short returns the beginning of a text, as one line.
func short(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}

// plainText removes control characters, so that a text of another program cannot
// control the terminal.
func plainText(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || c >= ' ' && c != 0x7f && (c < 0x80 || c > 0x9f) {
			return c
		}
		return -1
	}, text)
}

// prompter asks a person at a terminal.
type prompter struct {
	proc  *process
	lines *bufio.Reader
}

// newPrompter returns nil if nobody can be asked.
func newPrompter(proc *process) *prompter {
	if !isTerminal(proc.Stdin) || !isTerminal(proc.Stderr) {
		return nil
	}
	return &prompter{proc, bufio.NewReader(proc.Stdin)}
}

// line asks for a line of text.
func (p *prompter) line(question string) (string, error) {
	fmt.Fprint(p.proc.Stderr, question)
	text, err := p.lines.ReadString('\n')
	if err == io.EOF && text != "" {
		err = nil
	}
	return strings.TrimSpace(text), err
}

// secret asks for a line that is not shown.
func (p *prompter) secret(question string) (string, error) {
	fmt.Fprint(p.proc.Stderr, question)
	text, err := term.ReadPassword(int(p.proc.Stdin.(*os.File).Fd()))
	fmt.Fprintln(p.proc.Stderr)
	return strings.TrimSpace(string(text)), err
}

// yes asks a question; Enter means no.
func (p *prompter) yes(question string) (bool, error) {
	answer, err := p.line(question + " [y/N] ")
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes"), err
}
