package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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

	seq uint64
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
	}
	return stale{}
}

// facts are the members of an event's data, cleaned.
type facts map[string]plain

func (f facts) has(name string) bool { return f[name] != "" }

// inWords says what an event means; not ok when it is not worth a line.
func inWords(e *told) (line, bool) {
	said := line{Time: e.Time, Level: news, seq: e.Seq}
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

// phrase is an event as a sentence; without text when there is none for it.
func phrase(kind plain, f facts) (level, text plain) {
	say := func(level plain, format string, args ...any) (plain, plain) {
		return level, plain(fmt.Sprintf(format, args...)) // of cleaned parts
	}
	switch kind {
	case "upstream.connecting":
		return say(news, "%s: connecting to %s", f["upstream"], f["target"])
	case "upstream.connected":
		return say(good, "%s: connected, %s tools", f["upstream"], f["tool_count"])
	case "upstream.reconnecting":
		return say(bad, "%s: away, try %s in %s ms: %s", f["upstream"], f["attempt"], f["delay_ms"], f["error"])
	case "upstream.needs_auth":
		return say(bad, "%s: wants a login: %s", f["upstream"], f["error"])
	case "upstream.asleep":
		return say(news, "%s: asleep until it is needed", f["upstream"])
	case "upstream.removed":
		return say(news, "%s: removed", f["upstream"])
	case "upstream.tools_refreshed":
		return say(news, "%s: has %s tools now", f["upstream"], f["tool_count"])
	case "upstream.stderr":
		return say(news, "%s: %s", f["upstream"], f["line"])
	case "catalog.changed":
		return say(news, "%s tools are offered now", f["tools"])
	case "job.submitted":
		return say(news, "job %s: submitted", jobCalled(f))
	case "job.started":
		return say(news, "job %s: started", jobCalled(f))
	case "job.paused":
		return say(bad, "job %s: waits for an approval of %s", jobCalled(f), f["subject"])
	case "job.finished":
		return jobFinished(f)
	case "approval.requested":
		return say(bad, "approval wanted: %s", f["subject"])
	case "approval.settled":
		return say(news, "approval of %s: %s", f["subject"], f["status"])
	case "tool.held":
		return say(bad, "%s.%s: held until somebody approves its definition", f["upstream"], f["name"])
	case "tool.changed":
		return say(bad, "%s.%s: held, its definition has changed", f["upstream"], f["name"])
	case "tool.shadowed":
		return say(bad, "%s.%s: refused, its name passes for another's", f["upstream"], f["name"])
	case "pin.decided":
		return say(news, "%s.%s: %s by %s", f["upstream"], f["name"], f["state"], f["by"])
	case "key.created", "key.revoked":
		_, what, _ := strings.Cut(string(kind), ".")
		return say(news, "key %s: %s", f["name"], what)
	case "node.joined":
		return say(news, "node %s: joined", f["name"])
	case "node.gone":
		return say(bad, "node %s: gone", f["name"])
	case "script.published":
		return say(good, "script %s: published", f["name"])
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
