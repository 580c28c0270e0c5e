package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"golang.org/x/term"
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
