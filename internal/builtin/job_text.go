package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/script"
)

// Many clients show a model only the text of a result, so the texts of jobs have what the
// data has, as far as it is short enough to be read. These limits are in bytes.
const (
	mostJobText     = 16 << 10 // of all jobs of one result
	leastJobText    = 512      // of each of them
	mostOutcomeText = 160      // of one step of a journal
	mostJournalText = 32 << 10
)

// Text returns one line, and the beginning of the error.
func (v JobView) Text() string {
	text := v.line()
	if v.Error != nil {
		message, _, _ := strings.Cut(v.Error.Message, "\n")
		text += "\n  " + message
	}
	return text
}

// line returns a job in one line.
func (v JobView) line() string {
	text := fmt.Sprintf("Job %s: %s", v.JobID, v.Status)
	if v.StartedAt > 0 && v.CompletedAt > v.StartedAt {
		text += fmt.Sprintf(" after %v", time.Duration((v.CompletedAt-v.StartedAt)*1000)*time.Millisecond)
	}
	if about := v.about(); len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	if v.Status == string(job.Pending) && v.DueAt > 0 {
		text += ", due " + timeText(v.DueAt)
	}
	if v.Status == string(job.Running) && v.Progress > 0 {
		text += fmt.Sprintf(", %.0f %% %s", v.Progress*100, v.Message)
	}
	return text
}

// about says what runs, and whose it is.
func (v JobView) about() (about []string) {
	if v.Name != "" {
		about = append(about, v.Name)
	}
	if v.ScriptHash != "" {
		about = append(about, "script: "+v.ScriptHash[:min(12, len(v.ScriptHash))])
	}
	if v.By != "" {
		about = append(about, "by "+v.By)
	}
	if v.Owner != "" {
		about = append(about, "of "+v.Owner)
	}
	return about
}

// Text returns the job with its result or error and its output, in about limit bytes.
func (d jobData) text(limit int) string {
	var b strings.Builder
	b.WriteString(d.line())
	if d.Error != nil {
		b.WriteString("\nError: " + shortened(d.Error.text(), limit/2))
	}
	if len(d.Result) > 0 {
		b.WriteString("\nResult: " + shortened(script.Pretty(d.Result), limit/2))
	}
	if len(d.Output) > 0 {
		b.WriteString("\nOutput:\n  " + shortened(outputText(d.Output), limit/4))
	}
	return b.String()
}

func outputText(lines []JobLogLine) string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Text
	}
	return strings.Join(texts, "\n  ")
}

// shortened returns the beginning of a text, and how long it is.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s (%d bytes in all)", redact.Cut(text, limit), len(text))
}

// pollText returns the ended jobs in full, and the ids of the others.
func pollText(done []jobData, pending []string, timedOut bool) string {
	var b strings.Builder
	if timedOut {
		fmt.Fprintf(&b, "Poll timed out. %d completed, %d still pending.", len(done), len(pending))
	} else {
		fmt.Fprintf(&b, "Poll complete. %s finished.", count(len(done), "job"))
	}
	limit := max(leastJobText, mostJobText/max(1, len(done)))
	for i, d := range done {
		if b.Len() > 2*mostJobText {
			fmt.Fprintf(&b, "\n… and %d more: job_status shows each.", len(done)-i)
			break
		}
		b.WriteString("\n" + d.text(limit))
	}
	if len(pending) > 0 {
		b.WriteString("\nPending: " + shortened(strings.Join(pending, ", "), mostJobText/4))
	}
	return b.String()
}

// journalText returns one line for each step, with the beginning of its outcome.
func journalText(steps []stepData, from, total int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (showing %d)", count(total, "step"), len(steps))
	for i, step := range steps {
		if b.Len() > mostJournalText {
			fmt.Fprintf(&b, "\n… and %d more: pass from = %d.", total-from-i, from+i)
			return b.String()
		}
		b.WriteString("\n" + step.text())
	}
	if left := total - from - len(steps); left > 0 {
		fmt.Fprintf(&b, "\n… and %d more: pass from = %d.", left, from+len(steps))
	}
	return b.String()
}

// text returns the step with the beginning of its outcome.
func (d stepData) text() string {
	text := d.Text()
	if len(d.Outcome) == 0 {
		return text
	}
	raw, err := json.Marshal(d.Outcome)
	if err != nil {
		return text
	}
	return text + "  = " + shortened(string(raw[1:len(raw)-1]), mostOutcomeText) // without the brackets of the list
}
