package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
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
