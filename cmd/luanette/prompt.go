package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

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
