package terminal

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/observe/phrase"
)

// line is one line of the log.
type line struct {
	Time  time.Time `json:"time"`
	Level plain     `json:"level"` // of a log record; otherwise news, good or bad
	Text  plain     `json:"text"`
	Facts []plain   `json:"facts,omitempty"` // name=value
	Node  plain     `json:"node,omitempty"`  // if it is not the node that we read from
	Count int       `json:"count,omitempty"` // how often it was repeated, if several times
	First time.Time `json:"first,omitzero"`  // when it was repeated for the first time

	seq      uint64
	server   plain // that it is about
	isStderr bool  // a program wrote it to standard error
	replaces plain // a line replaces an earlier one with the same value, so that repeated lines do not hide others
}

// Levels of lines that are not log records.
const (
	levelInfo = plain("news")
	levelGood = plain("good")
	levelBad  = plain("bad")
)

// eventFields are the members of an event's data.
type eventFields map[string]plain

// lineOf describes an event; not ok if the event is not shown.
func lineOf(e *serverEvent) (line, bool) {
	l := line{Time: e.Time, Level: levelInfo, Node: e.Node, seq: e.Seq}
	switch e.Type {
	case "log.line":
		return logLine(e, l)
	case "beat.tick": // music: several per second
		return l, false
	}
	var f eventFields
	if err := json.Unmarshal(e.Data, &f); err != nil {
		f = eventFields{}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		l.Facts = append(l.Facts, clean(name)+"="+f[name])
	}
	described := phrase.Of(string(e.Type), e.Data)
	l.Text = clean(described.Text)
	if described.Kind != phrase.Neutral {
		l.Level = plain(described.Kind)
	}
	l.server, l.isStderr = cmp.Or(f["upstream"], f["namespace"]), e.Type == "upstream.stderr"
	if e.Type == "upstream.reconnecting" {
		l.replaces = "retry " + l.server + at(e.Node)
	}
	if l.Text == "" {
		l.Text = e.Type + " " + joined(l.Facts)
	}
	return l, true
}

// logLine is the line of a log record.
func logLine(e *serverEvent, l line) (line, bool) {
	var log struct {
		Level, Message plain
		Facts          eventFields
	}
	if json.Unmarshal(e.Data, &log) != nil {
		return l, false
	}
	l.Level, l.Text = log.Level, log.Message
	for _, name := range slices.Sorted(maps.Keys(log.Facts)) {
		l.Facts = append(l.Facts, clean(name)+"="+log.Facts[name])
	}
	if len(l.Facts) > 0 {
		l.Text += " " + joined(l.Facts)
	}
	l.server = log.Facts["upstream"]
	if log.Facts["attempt"] != "" {
		l.replaces = "log " + log.Message + " " + l.server + at(e.Node)
	}
	return l, true
}
