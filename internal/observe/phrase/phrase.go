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

// Mood is how the news is.
type Mood string

// Moods.
const (
	Plain Mood = "plain"
	Good  Mood = "good"
	Bad   Mood = "bad"
)

// Sentence is an event in words. One without text has none of its own.
type Sentence struct {
	Mood Mood   `json:"kind"`
	Text string `json:"text"`
}

// facts are what an event says.
type facts map[string]any

// text is one of them as it is read, times by the length that suits them.
func (f facts) text(name string) string {
	switch v := f[name].(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		if strings.HasSuffix(name, "_ms") {
			return took(v)
		}
		return v.String()
	default:
		raw, _ := json.Marshal(v) // it came from JSON
		return string(raw)
	}
}

// took says a number of milliseconds.
func took(number json.Number) string {
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

// phrases are events as sentences, with the names of facts in braces.
var phrases = map[string]Sentence{
	"upstream.connecting":      {Plain, "{upstream}: connecting to {target}"},
	"upstream.connected":       {Good, "{upstream}: connected, {tool_count} tools"},
	"upstream.reconnecting":    {Bad, "{upstream}: away, try {attempt} in {delay_ms}: {error}"},
	"upstream.needs_auth":      {Bad, "{upstream}: wants a login: {error}"},
	"upstream.asleep":          {Plain, "{upstream}: asleep until it is needed"},
	"upstream.removed":         {Plain, "{upstream}: removed"},
	"upstream.tools_refreshed": {Plain, "{upstream}: has {tool_count} tools now"},
	"upstream.stderr":          {Plain, "{upstream}: {line}"},
	"upstream.garbage":         {Bad, "{upstream}: sent what is no message: {excerpt}"},
	"upstream.dropped":         {Bad, "{upstream}: {count} of its tools left out: {reasons}"},
	"catalog.changed":          {Plain, "{tools} tools are offered now"},
	"approval.requested":       {Bad, "approval wanted: {subject}"},
	"approval.settled":         {Plain, "approval of {subject}: {status}"},
	"tool.held":                {Bad, "{upstream}.{name}: held until somebody approves its definition"},
	"tool.changed":             {Bad, "{upstream}.{name}: held, its definition has changed"},
	"tool.shadowed":            {Bad, "{upstream}.{name}: refused, its name passes for another's"},
	"pin.decided":              {Plain, "{upstream}.{name}: {state} by {by}"},
	"hook.failed":              {Bad, "hook {hook} of startup.lua: {error}"},
	"node.joined":              {Plain, "node {name}: joined"},
	"node.gone":                {Bad, "node {name}: gone"},
	"script.published":         {Good, "script {name}: published"},
	"script.invalidate":        {Plain, "script {hash}: replaced"},
	"artifact.created":         {Plain, "artifact {name}: made"},
	"key.created":              {Plain, "key {name}: made"},
	"key.revoked":              {Plain, "key {name}: revoked"},
	"chat.turn_started":        {Plain, "chat of {person}{user}: asked"},
}

// told are those that take more than filling in.
var told = map[string]func(facts) Sentence{
	"tool.call_ended": callEnded,
	"tool.flagged":    flagged,
	"job.progress":    func(f facts) Sentence { return Sentence{Plain, job(f) + ": " + percent(f) + " " + f.text("message")} },
	"job.paused": func(f facts) Sentence {
		return Sentence{Bad, job(f) + ": waits for an approval of " + f.text("subject")}
	},
	"job.finished":       jobFinished,
	"event.missed":       missed,
	"config.update":      configUpdated,
	"chat.turn_finished": turnEnded,
	"chat.turn_ended":    turnEnded,
}

var blank = regexp.MustCompile(`\{\w+\}`)

// Of puts an event of a type with its data into words.
func Of(kind string, data []byte) Sentence {
	f := facts{}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if decoder.Decode(&f) != nil {
		f = facts{}
	}
	if p, ok := phrases[kind]; ok {
		p.Text = blank.ReplaceAllStringFunc(p.Text, func(name string) string { return f.text(strings.Trim(name, "{}")) })
		return p
	}
	if tell, ok := told[kind]; ok {
		return tell(f)
	}
	family, what, _ := strings.Cut(kind, ".")
	switch family {
	case "job":
		return Sentence{Plain, job(f) + ": " + what}
	case "session":
		return Sentence{Plain, "session " + f.text("session") + ": " + what}
	}
	return Sentence{Mood: Plain}
}

func job(f facts) string {
	if name := f.text("name"); name != "" {
		return "job " + name
	}
	id := f.text("job_id")
	return "job " + id[:min(8, len(id))]
}

func percent(f facts) string {
	number, _ := f["fraction"].(json.Number)
	fraction, _ := number.Float64()
	return fmt.Sprintf("%.0f %%", fraction*100)
}

func callEnded(f facts) Sentence {
	name := strings.TrimPrefix(f.text("namespace")+"."+f.text("tool"), ".")
	if why := f.text("error"); why != "" {
		return Sentence{Bad, name + ": " + why}
	}
	return Sentence{Plain, name + ": answered after " + f.text("duration_ms")}
}

func jobFinished(f facts) Sentence {
	s := Sentence{Good, job(f) + ": " + f.text("status") + " after " + f.text("took_ms")}
	if f.text("status") != "complete" {
		s.Mood = Bad
	}
	if why := f.text("error"); why != "" {
		s.Text += ": " + why
	}
	return s
}

// missed says how many, where somebody could count them.
func missed(f facts) Sentence {
	if count := f.text("count"); count != "0" {
		return Sentence{Bad, count + " events missed"}
	}
	return Sentence{Bad, "events missed, nobody knows how many"}
}

// flagged says what is odd about a tool.
func flagged(f facts) Sentence {
	var odd []string
	flags, _ := f["flags"].([]any)
	for _, flag := range flags {
		if about, ok := flag.(map[string]any); ok {
			odd = append(odd, facts(about).text("text"))
		}
	}
	return Sentence{Plain, f.text("upstream") + "." + f.text("name") + ": " + strings.Join(odd, "; ")}
}

func configUpdated(f facts) Sentence {
	if f["restart_needed"] == true {
		return Sentence{Bad, "setting " + f.text("key") + ": changed, takes effect after a restart"}
	}
	return Sentence{Plain, "setting " + f.text("key") + ": changed"}
}

func turnEnded(f facts) Sentence {
	s := Sentence{Plain, "chat of " + f.text("person") + f.text("user") + ": answered after " + f.text("duration_ms")}
	if why := f.text("error") + f.text("error_type"); why != "" {
		s = Sentence{Bad, "chat of " + f.text("person") + f.text("user") + ": " + why}
	}
	return s
}
