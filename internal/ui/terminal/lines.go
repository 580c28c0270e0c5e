package terminal

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/observe/phrase"
)

// line is something that happened, in words.
type line struct {
	Time  time.Time `json:"time"`
	Level plain     `json:"level"` // of a log line; else news, good or bad
	Text  plain     `json:"text"`
	Facts []plain   `json:"facts,omitempty"` // name=value
	Node  plain     `json:"node,omitempty"`  // when it is another than the one that told us

	seq      uint64
	replaces plain // lines with the same are one, the newest: what comes again and again hides the rest
}

// How news are.
const (
	levelInfo = plain("news")
	levelGood = plain("good")
	levelBad  = plain("bad")
)

// changedLists says which lists change with events of a type.
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

// attrs are the members of an event's data, cleaned.
type eventFields map[string]plain

// encode says what an event means; not ok when it is not worth a line.
func lineOf(e *serverEvent) (line, bool) {
	said := line{Time: e.Time, Level: levelInfo, Node: e.Node, seq: e.Seq}
	switch e.Type {
	case "log.line":
		return logLine(e, said)
	case "beat.tick": // of music: several a second
		return said, false
	}
	var f eventFields
	if err := json.Unmarshal(e.Data, &f); err != nil {
		f = eventFields{}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		said.Facts = append(said.Facts, clean(name)+"="+f[name])
	}
	words := phrase.Of(string(e.Type), e.Data)
	said.Text = clean(words.Text)
	if words.Kind != phrase.Neutral {
		said.Level = plain(words.Kind)
	}
	if e.Type == "upstream.reconnecting" {
		said.replaces = f["upstream"] + at(e.Node)
	}
	if said.Text == "" {
		said.Text = e.Type + " " + plain(strings.Join(texts(said.Facts), " "))
	}
	return said, true
}

func texts(list []plain) []string {
	all := make([]string, len(list))
	for i, p := range list {
		all[i] = string(p)
	}
	return all
}

// logLine is a line of the server's log.
func logLine(e *serverEvent, said line) (line, bool) {
	var log struct {
		Level, Message plain
		Facts          eventFields
	}
	if json.Unmarshal(e.Data, &log) != nil {
		return said, false
	}
	said.Level, said.Text = log.Level, log.Message
	for _, name := range slices.Sorted(maps.Keys(log.Facts)) {
		said.Facts = append(said.Facts, clean(name)+"="+log.Facts[name])
	}
	if len(said.Facts) > 0 {
		said.Text += " " + plain(strings.Join(texts(said.Facts), " "))
	}
	return said, true
}
