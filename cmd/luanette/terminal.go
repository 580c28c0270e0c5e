package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"golang.org/x/term"
)

// table prints rows in columns, cut to the terminal's width.
func table(proc *process, head []string, rows [][]string) error {
	width := terminalWidth(proc.Stdout)
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, strings.Join(head, "\t"))
	for _, row := range rows {
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, " \n")
		if r := []rune(line); width > 0 && len(r) > width {
			line = string(r[:width-1]) + "…"
		}
		fmt.Fprintln(proc.Stdout, line)
	}
	return nil
}

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

// spin shows a spinner on standard error, if it is a terminal, until stop is called.
func spin(proc *process, doing string) (stop func()) {
	if terminalWidth(proc.Stderr) == 0 {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				fmt.Fprintf(proc.Stderr, "\r%c %s", []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[i%10], doing)
			case <-done:
				fmt.Fprintf(proc.Stderr, "\r%*s\r", len(doing)+2, "")
				return
			}
		}
	}()
	return func() { close(done); <-ended }
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
