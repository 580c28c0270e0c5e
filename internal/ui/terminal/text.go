package terminal

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// plain is text that is safe to write to a terminal: no escape sequences, no line
// breaks, no invisible characters that change the direction of text. All text on the
// screen has this type. A plain comes from JSON or from clean.
type plain string

// maxPlain is the longest text in bytes; a hostile server may send more.
const maxPlain = 4 << 10

// UnmarshalJSON cleans a JSON string. Other values stay as JSON text.
func (p *plain) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		text = string(raw)
	}
	*p = clean(text)
	return nil
}

// clean returns text as one safe line.
func clean(text string) plain {
	if len(text) > maxPlain {
		text = text[:maxPlain] + "…"
	}
	return plain(strings.Map(fewMarks(), strings.ToValidUTF8(text, string(utf8.RuneError))))
}

// maxMarks is how many combining marks may follow a character.
const maxMarks = 2

// fewMarks replaces harmful characters and drops combining marks after the first ones:
// terminals disagree about the width of long sequences.
func fewMarks() func(rune) rune {
	marks := 0
	return func(r rune) rune {
		if !unicode.Is(unicode.M, r) {
			marks = 0
			return harmless(r)
		}
		if marks++; marks > maxMarks || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}
}

// harmless replaces or removes a character that a terminal could interpret.
func harmless(r rune) rune {
	switch {
	case unicode.IsSpace(r): // line breaks, line and paragraph separators
		return ' '
	case unicode.IsControl(r):
		return utf8.RuneError
	case unicode.Is(unicode.Cf, r): // invisible: direction marks, joiners, tags
		return -1
	}
	return r
}

// lines splits a text into safe lines.
func lines(text string) []plain {
	const most = 2000
	var list []plain
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if len(list) == most {
			return append(list, "…")
		}
		list = append(list, clean(strings.ReplaceAll(line, "\t", "    ")))
	}
	return list
}

// number is a cell with a number.
func number(n int) cell { return cell{text: plain(strconv.Itoa(n)), order: float64(n)} }

// problems is a cell with a number that should be 0.
func problems(n int) cell {
	c := number(n)
	if n > 0 {
		c.style = red
	}
	return c
}

// lasting is a cell with a duration; empty for 0.
func lasting(d time.Duration) cell {
	c := cell{style: faint, order: float64(d)}
	if d > 0 {
		c.text = short(d)
	}
	return c
}

// moment is a cell with a time of day.
func moment(t, now time.Time) cell {
	return cell{clockTime(t, now), faint, float64(t.UnixMilli())}
}

// clockTime is the time of day in the user's time zone.
func clockTime(t, now time.Time) plain { return plain(t.In(now.Location()).Format(time.TimeOnly)) }

// seconds converts seconds since 1970.
func seconds(since float64) time.Time { return time.UnixMilli(int64(since * 1000)) }

// millis converts a number of milliseconds.
func millis(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

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

// progressBar draws a fraction as a bar with its percentage.
func progressBar(share float64) plain {
	const width = 10
	share = min(max(share, 0), 1)
	full := int(share*width + 0.5)
	return plain(fmt.Sprintf("%s%s %3.0f%%", strings.Repeat("█", full), strings.Repeat("░", width-full), share*100))
}

// sparkline draws the last values, one character each; no character for a series of
// zeros.
func sparkline(values []int, width int) plain {
	levels := []rune("▁▂▃▄▅▆▇█")
	values = values[max(len(values)-width, 0):]
	most := 0
	for _, v := range values {
		most = max(most, v)
	}
	if most == 0 {
		return ""
	}
	drawn := make([]rune, len(values))
	for i, v := range values {
		drawn[i] = ' '
		if v > 0 {
			drawn[i] = levels[(v*len(levels)-1)/most]
		}
	}
	return plain(drawn)
}

// counted is a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// cut truncates a text to a width.
func cut(text string, width int) string { return ansi.Truncate(text, max(width, 0), "…") }

// fill truncates or pads a text to a width.
func fill(text string, width int) string {
	text = cut(text, width)
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}

// aligned is a text in a column of a width.
func aligned(text string, width int, right bool) string {
	text = cut(text, width)
	pad := strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
	if right {
		return pad + text
	}
	return text + pad
}
