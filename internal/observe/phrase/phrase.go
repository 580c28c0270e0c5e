// Package phrase describes events in one line of text. The web page and the terminal
// dashboard use it, so that both show the same text. It reads an event's type and JSON
// data, as clients outside the process do.
package phrase

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/plural"
)

// Kind says whether an event is good news, a problem or neither.
type Kind string

// The kinds of events.
const (
	Neutral Kind = "plain"
	Good    Kind = "good"
	Bad     Kind = "bad"
)

// Line is the description of an event. Text is empty for event types without one.
type Line struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// fields are the members of an event's JSON data.
type fields map[string]any

// text formats one field. Numbers whose name ends in _ms are formatted as durations.
func (f fields) text(name string) string {
	switch v := f[name].(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		if strings.HasSuffix(name, "_ms") {
			return duration(v)
		}
		return v.String()
	default:
		raw, _ := json.Marshal(v) // it came from JSON
		return string(raw)
	}
}

// placed returns what stands for a placeholder: a field, or the number in it with a noun.
func (f fields) placed(form string) string {
	parts := placeholder().FindStringSubmatch(form)
	text := f.text(parts[1])
	if n, err := strconv.Atoi(text); err == nil && parts[2] != "" {
		return plural.Count(n, parts[2])
	}
	return text
}

// duration formats a number of milliseconds.
func duration(number json.Number) string {
	ms, _ := number.Float64()
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}

// templates are the lines of event types, with the names of fields in braces.
var templates = map[string]Line{
	"upstream.connecting":        {Neutral, "{upstream}: connecting to {target}"},
	"upstream.connected":         {Good, "{upstream}: connected, {tool_count tool}"},
	"upstream.installing":        {Neutral, "{upstream}: {doing}"},
	"upstream.installed":         {Good, "{upstream}: installed {package} {version}"},
	"upstream.upgraded":          {Good, "{upstream}: {package} {from} is now {to}"},
	"upstream.slow_start":        {Bad, "{upstream}: still starting after {seconds} s: {last_line}"},
	"upstream.failed":            {Bad, "{upstream}: did not start {attempt} times in a row, next attempt in {delay_ms}: {error}"},
	"upstream.reconnecting":      {Bad, "{upstream}: disconnected, attempt {attempt} in {delay_ms}: {error}"},
	"upstream.lost":              {Bad, "{upstream}: connection lost: {error}"},
	"upstream.needs_auth":        {Bad, "{upstream}: login required: {error}"},
	"upstream.asleep":            {Neutral, "{upstream}: not started, connects on the first call"},
	"upstream.removed":           {Neutral, "{upstream}: removed"},
	"upstream.tools_refreshed":   {Neutral, "{upstream}: tool list updated, {tool_count tool}"},
	"upstream.lists_refreshed":   {Neutral, "{upstream}: {resources resource}, {templates template}, {prompts prompt}"},
	"upstream.stderr":            {Neutral, "{upstream}: {line}"},
	"upstream.garbage":           {Bad, "{upstream}: sent invalid output: {excerpt}"},
	"sandbox.refused":            {Bad, "{name} was refused {action} of {object}"},
	"sandbox.connection_refused": {Bad, "{server} was refused a connection to {host}:{port}: {reason}"},
	"upstream.dropped":           {Bad, "{upstream}: {count} invalid tools ignored: {reasons}"},
	"catalog.changed":            {Neutral, "tool list changed: {tools tool}"},
	"approval.requested":         {Bad, "approval requested: {subject}"},
	"approval.agreed":            {Neutral, "approval of {subject}: {agreed} of {needed} agreed"},
	"approval.settled":           {Neutral, "approval of {subject}: {status}"},
	"tool.held":                  {Bad, "{upstream}.{name}: new definition awaits review"},
	"tool.changed":               {Bad, "{upstream}.{name}: changed definition awaits review"},
	"tool.shadowed":              {Bad, "{upstream}.{name}: refused, its name imitates another tool"},
	"pin.decided":                {Neutral, "{upstream}.{name}: {state} by {by}"},
	"hook.failed":                {Bad, "hook {hook} of startup.lua: {error}"},
	"node.joined":                {Neutral, "node {name}: joined"},
	"node.gone":                  {Bad, "node {name}: unreachable"},
	"script.published":           {Good, "script {name}: published"},
	"script.invalidate":          {Neutral, "script {hash}: replaced"},
	"webhook.received":           {Neutral, "webhook {hook}: job {job_id}"},
	"webhook.refused":            {Bad, "webhook {hook}: refused, {reason}"},
	"key.created":                {Neutral, "key {name}: created"},
	"key.revoked":                {Neutral, "key {name}: revoked"},
	"share.created":              {Neutral, "{kind} {thing} of {owner}: shared with {to_name}, who may {may} it"},
	"share.removed":              {Neutral, "{kind} {thing} of {owner}: not shared with {to_name} any more"},
	"chat.turn_started":          {Neutral, "chat of {user}: message received"},
}

// functions write the lines that a template cannot express.
var functions = map[string]func(fields) Line{
	"tool.call_ended": callEnded,
	"tool.flagged":    flagged,
	"artifact.created": func(f fields) Line {
		return Line{Neutral, "artifact " + cmp.Or(f.text("name"), strings.TrimPrefix(f.text("artifact_id"), "artifact_")) + ": created"}
	},
	"artifact.deleted": func(f fields) Line {
		end := ": deleted"
		if f["restored"] == true {
			end = ": restored"
		}
		return Line{Neutral, "artifact " + strings.TrimPrefix(f.text("artifact_id"), "artifact_") + end}
	},
	"job.progress": func(f fields) Line { return Line{Neutral, job(f) + ": " + percent(f) + " " + f.text("message")} },
	"job.paused": func(f fields) Line {
		return Line{Bad, job(f) + ": waiting for approval of " + f.text("subject")}
	},
	"job.needs_auth": func(f fields) Line {
		return Line{Bad, job(f) + ": waiting for a login. " + f.text("reason") + "; " + f.text("hint")}
	},
	"job.finished":       jobFinished,
	"event.missed":       missed,
	"config.update":      configUpdated,
	"chat.turn_finished": turnEnded,
	"chat.turn_ended":    turnEnded,
}

var placeholder = lazyregexp.New(`\{(\w+)(?: (\w+))?\}`)

// Of describes an event, given its type and its data as JSON.
func Of(kind string, data []byte) Line {
	f := fields{}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if decoder.Decode(&f) != nil {
		f = fields{}
	}
	if p, ok := templates[kind]; ok {
		p.Text = placeholder().ReplaceAllStringFunc(p.Text, f.placed)
		return p
	}
	if describe, ok := functions[kind]; ok {
		return describe(f)
	}
	family, action, _ := strings.Cut(kind, ".")
	switch family {
	case "job":
		return Line{Neutral, job(f) + ": " + action}
	case "session":
		return Line{Neutral, "session " + f.text("session") + ": " + action}
	}
	return Line{Kind: Neutral}
}

func job(f fields) string {
	if name := f.text("name"); name != "" {
		return "job " + name
	}
	id := f.text("job_id")
	return "job " + id[:min(8, len(id))]
}

func percent(f fields) string {
	number, _ := f["fraction"].(json.Number)
	fraction, _ := number.Float64()
	return fmt.Sprintf("%.0f %%", fraction*100)
}

func callEnded(f fields) Line {
	name := strings.TrimPrefix(f.text("namespace")+"."+f.text("tool"), ".")
	if why := f.text("error"); why != "" {
		return Line{Bad, name + ": " + why}
	}
	return Line{Neutral, name + ": done in " + f.text("duration_ms")}
}

func jobFinished(f fields) Line {
	s := Line{Good, job(f) + ": " + f.text("status") + " after " + f.text("took_ms")}
	if f.text("status") != "complete" {
		s.Kind = Bad
	}
	if why := f.text("error"); why != "" {
		s.Text += ": " + why
	}
	return s
}

// missed says how many events were missed; a count of 0 means unknown.
func missed(f fields) Line {
	if f.text("count") != "0" {
		return Line{Bad, f.placed("{count event}") + " missed"}
	}
	return Line{Bad, "events missed, number unknown"}
}

// flagged lists the findings about a tool definition.
func flagged(f fields) Line {
	var findings []string
	flags, _ := f["flags"].([]any)
	for _, flag := range flags {
		if finding, ok := flag.(map[string]any); ok {
			findings = append(findings, fields(finding).text("text"))
		}
	}
	return Line{Neutral, f.text("upstream") + "." + f.text("name") + ": " + strings.Join(findings, "; ")}
}

func configUpdated(f fields) Line {
	if f["restart_needed"] == true {
		return Line{Bad, "setting " + f.text("key") + ": changed, takes effect after a restart"}
	}
	return Line{Neutral, "setting " + f.text("key") + ": changed"}
}

func turnEnded(f fields) Line {
	s := Line{Neutral, "chat of " + f.text("user") + ": done in " + f.text("duration_ms")}
	if why := f.text("error") + f.text("error_type"); why != "" {
		s = Line{Bad, "chat of " + f.text("user") + ": " + why}
	}
	return s
}
