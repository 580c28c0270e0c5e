package terminal

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/observe/phrase"
)

// line is one line of the log pane.
type line struct {
	Time  time.Time `json:"time"`
	Level plain     `json:"level"` // of a log record; otherwise news, good or bad
	Text  plain     `json:"text"`
	Facts []plain   `json:"facts,omitempty"` // name=value
	Node  plain     `json:"node,omitempty"`  // if it is not the node that we read from

	seq      uint64
	replaces plain // a line replaces an earlier one with the same value, so that repeated lines do not hide others
}

// Levels of lines that are not log records.
const (
	levelInfo = plain("news")
	levelGood = plain("good")
	levelBad  = plain("bad")
)

// changedLists returns the lists that events of a type change.
func changedLists(kind plain) lists {
	family, _, _ := strings.Cut(string(kind), ".")
	switch family {
	case "upstream":
		return lists{upstreams: kind != "upstream.stderr" && kind != "upstream.garbage"}
	case "job":
		return lists{jobs: true}
	case "approval":
		return lists{approvals: true, jobs: true}
	case "node":
		return lists{nodes: true}
	case "config":
		return lists{settings: true}
	}
	return lists{}
}

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
	if e.Type == "upstream.reconnecting" {
		l.replaces = f["upstream"] + at(e.Node)
	}
	if l.Text == "" {
		l.Text = e.Type + " " + plain(strings.Join(texts(l.Facts), " "))
	}
	return l, true
}

func texts(list []plain) []string {
	all := make([]string, len(list))
	for i, p := range list {
		all[i] = string(p)
	}
	return all
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
		l.Text += " " + plain(strings.Join(texts(l.Facts), " "))
	}
	return l, true
}
