// Package phrase puts events into words for people, once for everybody who shows
// them: the web page, the dashboard in the terminal. It knows events by their types
// and JSON, as readers elsewhere do.
package phrase

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Kind is how the news is.
type Kind string

// Moods.
const (
	Neutral Kind = "plain"
	Good    Kind = "good"
	Bad     Kind = "bad"
)

// Line is an event in words. One without text has none of its own.
type Line struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// attrs are what an event says.
type fields map[string]any

// text is one of them as it is read, times by the length that suits them.
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

// duration says a number of milliseconds.
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

// templates are events as sentences, with the names of facts in braces.
var templates = map[string]Line{
	"upstream.connecting":      {Neutral, "{upstream}: connecting to {target}"},
	"upstream.connected":       {Good, "{upstream}: connected, {tool_count} tools"},
	"upstream.reconnecting":    {Bad, "{upstream}: away, try {attempt} in {delay_ms}: {error}"},
	"upstream.needs_auth":      {Bad, "{upstream}: wants a login: {error}"},
	"upstream.asleep":          {Neutral, "{upstream}: asleep until it is needed"},
	"upstream.removed":         {Neutral, "{upstream}: removed"},
	"upstream.tools_refreshed": {Neutral, "{upstream}: has {tool_count} tools now"},
	"upstream.stderr":          {Neutral, "{upstream}: {line}"},
	"upstream.garbage":         {Bad, "{upstream}: sent what is no message: {excerpt}"},
	"upstream.dropped":         {Bad, "{upstream}: {count} of its tools left out: {reasons}"},
	"catalog.changed":          {Neutral, "{tools} tools are offered now"},
	"approval.requested":       {Bad, "approval wanted: {subject}"},
	"approval.settled":         {Neutral, "approval of {subject}: {status}"},
	"tool.held":                {Bad, "{upstream}.{name}: held until somebody approves its definition"},
	"tool.changed":             {Bad, "{upstream}.{name}: held, its definition has changed"},
	"tool.shadowed":            {Bad, "{upstream}.{name}: refused, its name passes for another's"},
	"pin.decided":              {Neutral, "{upstream}.{name}: {state} by {by}"},
	"hook.failed":              {Bad, "hook {hook} of startup.lua: {error}"},
	"node.joined":              {Neutral, "node {name}: joined"},
	"node.gone":                {Bad, "node {name}: gone"},
	"script.published":         {Good, "script {name}: published"},
	"script.invalidate":        {Neutral, "script {hash}: replaced"},
	"artifact.created":         {Neutral, "artifact {name}: made"},
	"key.created":              {Neutral, "key {name}: made"},
	"key.revoked":              {Neutral, "key {name}: revoked"},
	"chat.turn_started":        {Neutral, "chat of {person}{user}: asked"},
}

// functions are those that take more than filling in.
var functions = map[string]func(fields) Line{
	"tool.call_ended": callEnded,
	"tool.flagged":    flagged,
	"job.progress":    func(f fields) Line { return Line{Neutral, job(f) + ": " + percent(f) + " " + f.text("message")} },
	"job.paused": func(f fields) Line {
		return Line{Bad, job(f) + ": waits for an approval of " + f.text("subject")}
	},
	"job.finished":       jobFinished,
	"event.missed":       missed,
	"config.update":      configUpdated,
	"chat.turn_finished": turnEnded,
	"chat.turn_ended":    turnEnded,
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// Of puts an event of a type with its data into words.
func Of(kind string, data []byte) Line {
	f := fields{}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if decoder.Decode(&f) != nil {
		f = fields{}
	}
	if p, ok := templates[kind]; ok {
		p.Text = placeholder.ReplaceAllStringFunc(p.Text, func(name string) string { return f.text(strings.Trim(name, "{}")) })
		return p
	}
	if tell, ok := functions[kind]; ok {
		return tell(f)
	}
	family, what, _ := strings.Cut(kind, ".")
	switch family {
	case "job":
		return Line{Neutral, job(f) + ": " + what}
	case "session":
		return Line{Neutral, "session " + f.text("session") + ": " + what}
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
	return Line{Neutral, name + ": answered after " + f.text("duration_ms")}
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

// missed says how many, where somebody could count them.
func missed(f fields) Line {
	if count := f.text("count"); count != "0" {
		return Line{Bad, count + " events missed"}
	}
	return Line{Bad, "events missed, nobody knows how many"}
}

// flagged says what is odd about a tool.
func flagged(f fields) Line {
	var odd []string
	flags, _ := f["flags"].([]any)
	for _, flag := range flags {
		if about, ok := flag.(map[string]any); ok {
			odd = append(odd, fields(about).text("text"))
		}
	}
	return Line{Neutral, f.text("upstream") + "." + f.text("name") + ": " + strings.Join(odd, "; ")}
}

func configUpdated(f fields) Line {
	if f["restart_needed"] == true {
		return Line{Bad, "setting " + f.text("key") + ": changed, takes effect after a restart"}
	}
	return Line{Neutral, "setting " + f.text("key") + ": changed"}
}

func turnEnded(f fields) Line {
	s := Line{Neutral, "chat of " + f.text("person") + f.text("user") + ": answered after " + f.text("duration_ms")}
	if why := f.text("error") + f.text("error_type"); why != "" {
		s = Line{Bad, "chat of " + f.text("person") + f.text("user") + ": " + why}
	}
	return s
}
