package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// line is something that happened, in words.
type line struct {
	Time  time.Time `json:"time"`
	Level plain     `json:"level"` // of a log line; else news, good or bad
	Text  plain     `json:"text"`
	Facts []plain   `json:"facts,omitempty"` // name=value
	Node  plain     `json:"node,omitempty"`  // when it is another than the one that told us

	seq   uint64
	again plain // lines with the same are one, the newest: what comes again and again hides the rest
}

// How news are.
const (
	news = plain("news")
	good = plain("good")
	bad  = plain("bad")
)

// outdated says which lists change with events of a type.
func outdated(kind plain) stale {
	family, _, _ := strings.Cut(string(kind), ".")
	switch family {
	case "upstream":
		return stale{upstreams: kind != "upstream.stderr" && kind != "upstream.garbage"}
	case "job":
		return stale{jobs: true}
	case "approval":
		return stale{approvals: true, jobs: true}
	case "node":
		return stale{nodes: true}
	case "config":
		return stale{settings: true}
	}
	return stale{}
}

// facts are the members of an event's data, cleaned.
type facts map[string]plain

func (f facts) has(name string) bool { return f[name] != "" }

// inWords says what an event means; not ok when it is not worth a line.
func inWords(e *told) (line, bool) {
	said := line{Time: e.Time, Level: news, Node: e.Node, seq: e.Seq}
	switch e.Type {
	case "log.line":
		return logged(e, said)
	case "beat.tick": // of music: several a second
		return said, false
	}
	var f facts
	if err := json.Unmarshal(e.Data, &f); err != nil {
		f = facts{}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		said.Facts = append(said.Facts, clean(name)+"="+f[name])
	}
	said.Level, said.Text = phrase(e.Type, f)
	if e.Type == "upstream.reconnecting" {
		said.again = f["upstream"] + at(e.Node)
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

// logged is a line of the server's log.
func logged(e *told, said line) (line, bool) {
	var log struct {
		Level, Message plain
		Facts          facts
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

// phrases are events as sentences, with the names of facts in braces.
var phrases = map[plain]struct{ level, text plain }{
	"upstream.connecting":      {news, "{upstream}: connecting to {target}"},
	"upstream.connected":       {good, "{upstream}: connected, {tool_count} tools"},
	"upstream.reconnecting":    {bad, "{upstream}: away, try {attempt} in {delay_ms} ms: {error}"},
	"upstream.needs_auth":      {bad, "{upstream}: wants a login: {error}"},
	"upstream.asleep":          {news, "{upstream}: asleep until it is needed"},
	"upstream.removed":         {news, "{upstream}: removed"},
	"upstream.tools_refreshed": {news, "{upstream}: has {tool_count} tools now"},
	"upstream.stderr":          {news, "{upstream}: {line}"},
	"catalog.changed":          {news, "{tools} tools are offered now"},
	"approval.requested":       {bad, "approval wanted: {subject}"},
	"approval.settled":         {news, "approval of {subject}: {status}"},
	"tool.held":                {bad, "{upstream}.{name}: held until somebody approves its definition"},
	"tool.changed":             {bad, "{upstream}.{name}: held, its definition has changed"},
	"tool.shadowed":            {bad, "{upstream}.{name}: refused, its name passes for another's"},
	"pin.decided":              {news, "{upstream}.{name}: {state} by {by}"},
	"node.joined":              {news, "node {name}: joined"},
	"node.gone":                {bad, "node {name}: gone"},
	"script.published":         {good, "script {name}: published"},
}

var blank = regexp.MustCompile(`\{\w+\}`)

// phrase is an event as a sentence; without text when there is none for it.
func phrase(kind plain, f facts) (level, text plain) {
	if p, ok := phrases[kind]; ok {
		return p.level, plain(blank.ReplaceAllStringFunc(string(p.text), func(name string) string { return string(f[strings.Trim(name, "{}")]) }))
	}
	say := func(level plain, format string, args ...any) (plain, plain) {
		return level, plain(fmt.Sprintf(format, args...)) // of cleaned parts
	}
	switch kind {
	case "job.submitted":
		return say(news, "job %s: submitted", jobCalled(f))
	case "job.started":
		return say(news, "job %s: started", jobCalled(f))
	case "job.paused":
		return say(bad, "job %s: waits for an approval of %s", jobCalled(f), f["subject"])
	case "job.finished":
		return jobFinished(f)
	case "key.created", "key.revoked":
		_, what, _ := strings.Cut(string(kind), ".")
		return say(news, "key %s: %s", f["name"], what)
	case "session.created", "session.forked", "session.used", "session.reset", "session.closed":
		_, what, _ := strings.Cut(string(kind), ".")
		return say(news, "session %s: %s", f["session"], what)
	case "chat.turn_finished":
		return say(news, "chat of %s: answered after %s ms, %s", f["person"], f["duration_ms"], cmp.Or(f["error"], "ok"))
	}
	return news, ""
}

func jobCalled(f facts) plain {
	if f.has("name") {
		return f["name"]
	}
	return f["job_id"]
}

func jobFinished(f facts) (level, text plain) {
	level = good
	if f["status"] != "complete" {
		level = bad
	}
	text = plain(fmt.Sprintf("job %s: %s after %s ms", jobCalled(f), f["status"], f["took_ms"]))
	if f.has("error") {
		text += ": " + f["error"]
	}
	return level, text
}
