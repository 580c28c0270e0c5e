package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func (u *upstream) row(now time.Time) row {
	state, note := cell{u.State, red}, cell{u.LastTool, faint}
	switch u.State {
	case "connected":
		state.style = green
	case "asleep", "connecting", "starting":
		state.style = faint
	case "removed":
		state.style = yellow
	}
	switch {
	case !u.isConnected() && u.NextTryMS > 0:
		note = cell{plain(fmt.Sprintf("attempt %d in %s: %s", u.Attempt+1, short(u.untilRetry(now)), u.Error)), red}
	case u.isRemoved():
		note = cell{"removed but still configured: r restores it", yellow}
	case !u.isConnected() && u.Error != "":
		note = cell{u.Error, red}
	case len(u.Warnings) > 0:
		note = cell{u.Warnings[0], yellow}
	}
	tools := number(u.Tools)
	if u.Stale {
		tools.style = faint
	}
	errors := number(u.Errors)
	if u.Errors > 0 {
		errors.style = red
	}
	p50 := cell{"", faint}
	if u.P50 > 0 {
		p50.text = ms(u.P50)
	}
	return row{string(u.Name), []cell{{u.Name, bold}, state, tools, number(u.Calls), errors, p50, note}}
}

func (j *job) row(now time.Time) row {
	styles := map[plain]style{"complete": green, "failed": red, "cancelled": yellow, "waiting": yellow}
	note := cell{j.Message, faint}
	if j.Error != nil {
		note = cell{j.Error.Message, red}
	}
	progress, took := cell{"", normal}, cell{"", faint}
	if j.Status == "running" {
		progress.text = bar(j.Progress)
	}
	if j.Started > 0 {
		took.text = short(j.took(now))
	}
	return row{string(j.ID), []cell{{j.title(), bold}, {j.Status, styles[j.Status]}, progress, took, note}}
}

func (c *call) row(now time.Time) row {
	took, result := cell{ms(c.TookMS), faint}, cell{"ok", green}
	switch {
	case !c.Ended:
		took.text, result = short(now.Sub(c.Began)), cell{"running", yellow}
	case c.Kind != "":
		result = cell{c.Kind + ": " + c.Error, red}
	}
	key := strconv.FormatUint(c.Number, 10) + string(at(c.Node)) + " " + c.Began.String()
	return row{key, []cell{{clockTime(c.Began, now), faint}, {c.title() + at(c.Node), normal}, took, result}}
}

func (l *line) row(now time.Time) row {
	styles := map[plain]style{levelGood: green, levelBad: red, "WARN": yellow, "ERROR": red}
	key := strconv.FormatUint(l.seq, 10) + " " + l.Time.String()
	level := l.Level
	if level == levelInfo {
		level = "info"
	}
	return row{key, []cell{{clockTime(l.Time, now), faint}, {level, styles[l.Level]}, {l.Text + at(l.Node), normal}}}
}

func number(n int) cell { return cell{plain(strconv.Itoa(n)), normal} }

// clockTime is the time of day in the user's time zone.
func clockTime(t, now time.Time) plain { return plain(t.In(now.Location()).Format(time.TimeOnly)) }

// ms formats milliseconds.
func ms(n float64) plain { return short(time.Duration(n * float64(time.Millisecond))) }

// short formats a duration in at most seven characters.
func short(d time.Duration) plain {
	switch {
	case d < time.Millisecond:
		return plain(fmt.Sprintf("%d µs", d.Microseconds()))
	case d < 10*time.Millisecond:
		return plain(fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)))
	case d < time.Second:
		return plain(fmt.Sprintf("%d ms", d.Milliseconds()))
	case d < 10*time.Second:
		return plain(fmt.Sprintf("%.1f s", d.Seconds()))
	case d < 100*time.Second:
		return plain(fmt.Sprintf("%.0f s", d.Seconds()))
	case d < time.Hour:
		return plain(fmt.Sprintf("%.0f min", d.Minutes()))
	default:
		return plain(fmt.Sprintf("%.0f h", d.Hours()))
	}
}

// bar draws a fraction as a bar with its percentage.
func bar(share float64) plain {
	const width = 10
	share = min(max(share, 0), 1)
	full := int(share*width + 0.5)
	return plain(fmt.Sprintf("%s%s %3.0f%%", strings.Repeat("█", full), strings.Repeat("░", width-full), share*100))
}
