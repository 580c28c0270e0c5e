package main

import (
	"io"
	"strings"
)

// style colours texts for a terminal. The zero value leaves them as they are.
type style struct{ on bool }

// style returns the style for a stream: colours only on a terminal that has them, and
// never if the person switched them off.
func (p *process) style(w io.Writer) style {
	on := !p.noColor && p.Env["NO_COLOR"] == "" && p.Env["TERM"] != "dumb" && isTerminal(w)
	return style{on}
}

// SGR codes.
const (
	sgrBold   = "1"
	sgrDim    = "2"
	sgrRed    = "31"
	sgrGreen  = "32"
	sgrYellow = "33"
)

func (s style) paint(code, text string) string {
	if !s.on || text == "" || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) heading(text string) string { return s.paint(sgrDim, text) }
func (s style) bad(text string) string     { return s.paint(sgrRed, text) }

// cell colours a cell, or a line of it, by its column and whole text.
func (s style) cell(heading, whole, line string) string {
	switch {
	case isProblem(heading):
		return s.bad(line)
	case heading == "STATE" || heading == "STATUS" || heading == "DECISION" || heading == "FAILED":
		return s.paint(stateColour(whole), line)
	}
	return line
}

// state colours the name of a state.
func (s style) state(name string) string { return s.paint(stateColour(name), name) }

// stateColours are the colours of the states of upstreams, jobs, approvals, pins and
// keys.
var stateColours = map[string]string{
	"connected": sgrGreen, "complete": sgrGreen, "ok": sgrGreen, "active": sgrGreen, "approved": sgrGreen, "allowed": sgrGreen, "allow": sgrGreen,
	"starting": sgrYellow, "connecting": sgrYellow, "reconnecting": sgrYellow, "running": sgrYellow, "pending": sgrYellow,
	"waiting": sgrYellow, "held": sgrYellow, "changed": sgrYellow, "paused": sgrYellow, "warning": sgrYellow, "untrusted": sgrYellow,
	"failed": sgrRed, "needs_auth": sgrRed, "denied": sgrRed, "deny": sgrRed, "refused": sgrRed, "revoked": sgrRed, "error": sgrRed, "problem": sgrRed, "unreadable": sgrRed,
	"asleep": sgrDim, "note": sgrDim, "cancelled": sgrDim, "expired": sgrDim, "withdrawn": sgrDim, "removed": sgrDim,
}

// stateColour returns the colour of a state, which may be followed by details.
func stateColour(state string) string {
	first, _, _ := strings.Cut(state, " ")
	return stateColours[strings.TrimRight(first, ",:")]
}
