package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/luanette/luanette/internal/observe/phrase"
)

// logView lists events and log records, the newest first. What the programs of servers
// write is shown only in the log of one server and in :log all.
type logView struct{}

func (logView) name() string { return "log" }

func (logView) columns() []column {
	return []column{{title: "Time", width: 8}, {title: "Level", width: 5}, {title: "Message"}}
}

// key identifies the line. The repetitions of an event are one line.
func (l *line) key() string {
	if l.replaces != "" {
		return string(l.replaces)
	}
	return strconv.FormatUint(l.seq, 10) + " " + l.Time.String()
}

func (logView) rows(b *state, of scope, now time.Time) (rows []row) {
	colours := map[plain]style{levelGood: green, levelBad: red, "WARN": yellow, "ERROR": red}
	for i := len(b.Log) - 1; i >= max(0, len(b.Log)-maxLines); i-- {
		l := &b.Log[i]
		if of.server != "" && l.server != of.server || of == (scope{}) && l.isStderr {
			continue
		}
		level := l.Level
		if level == levelInfo {
			level = "info"
		}
		rows = append(rows, row{l.key(), []cell{moment(l.Time, now), {text: level, style: colours[l.Level]}, {text: l.repeated() + l.Text + at(l.Node)}}})
	}
	return rows
}

// repeated says how often the line was repeated.
func (l *line) repeated() plain {
	if l.Count < 2 {
		return ""
	}
	return plain(fmt.Sprintf("%d× ", l.Count))
}

// open shows one line with its fields.
func (logView) open(m *model, _ scope, row string) tea.Cmd {
	for i := range m.shown().Log {
		if l := &m.shown().Log[i]; l.key() == row {
			return m.push(&document{name: l.Level, body: fixed(l.facts(m.now())), row: row, does: logActions(l)})
		}
	}
	return nil
}

// logActions are the actions of a line about a server.
func logActions(l *line) []action {
	if l.server == "" {
		return nil
	}
	name := string(l.server)
	return []action{
		{key: "i", does: "server", do: func(m *model, _ string) tea.Cmd { return m.serverDetails(name) }},
		{key: "l", does: "stderr", do: func(m *model, _ string) tea.Cmd { return m.showStderr(name) }},
	}
}

func (l *line) facts(now time.Time) []styled {
	all := slices.Concat(field("time", clockTime(l.Time, now)), field("level", l.Level), field("node", l.Node), []styled{{}, {l.Text, normal}})
	if l.Count > 1 {
		all = append(all, styled{plain(fmt.Sprintf("%d times, first at %s", l.Count, clockTime(l.First, now))), faint})
	}
	return slices.Concat(all, []styled{{}}, unstyled(l.Facts))
}

func (logView) newestFirst() {}

func (logView) actions(scope) []action { return nil }

func (logView) empty(of scope) plain {
	if of.server != "" {
		return "no events of " + of.server + " yet"
	}
	return "no events yet"
}
func (logView) needs() lists { return lists{} }

// texts converts texts for the standard library.
func texts(list []plain) []string {
	all := make([]string, len(list))
	for i, p := range list {
		all[i] = string(p)
	}
	return all
}

// joined joins texts with spaces.
func joined(list []plain) plain { return plain(strings.Join(texts(list), " ")) }

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
