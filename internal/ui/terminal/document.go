package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// styled is a line of a document.
type styled struct {
	text  plain
	style style
}

func (l styled) draw(width int) string {
	return styles[l.style].Render(fill(" "+string(l.text), width))
}

// body writes a document for a width.
type body func(b *state, width int, now time.Time) []styled

// document is a page of text.
type document struct {
	name   plain
	body   body
	load   func(context.Context) (body, error) // nil: all of it is in the state
	reload lists                               // it is loaded again with any of these
	row    string                              // what the actions act on
	does   []action
	limit  time.Duration // of loading; 0: that of actions
	tail   bool          // lines are added at its end
	follow bool          // the end stays in sight
	top    int           // line at the top
	loads  int           // how often loading was started
	loaded int           // the number of the load whose text is shown
	filter plain
}

// documentLoaded is a document that was loaded.
type documentLoaded struct {
	document *document
	number   int
	body     body
	err      error
}

func (d *document) title() plain       { return d.name }
func (d *document) filterText() *plain { return &d.filter }
func (d *document) actions() []action  { return d.does }
func (d *document) needs() lists       { return d.reload }

// loadDocument loads a document.
func (m *model) loadDocument(d *document) tea.Cmd {
	d.loads++
	number := d.loads
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(m.ctx, cmp.Or(d.limit, actionTimeout))
		defer stop()
		b, err := d.load(ctx)
		return documentLoaded{d, number, b, err}
	}
}

// finishDocument stores a document that was loaded, unless a later load was faster.
// After an error the old text stays, if there is one.
func (m *model) finishDocument(msg documentLoaded) {
	d := msg.document
	switch {
	case msg.number < d.loaded:
	case msg.err == nil:
		d.body, d.loaded = msg.body, msg.number
	case d.body == nil:
		d.body = fixed([]styled{{advice(msg.err), red}})
	default:
		m.showError(msg.err)
	}
}

// fixed is the body of a document that does not change.
func fixed(lines []styled) body { return func(*state, int, time.Time) []styled { return lines } }

// lines are the lines that match the filter, wrapped.
func (d *document) lines(m *model, width int) []styled {
	if d.body == nil {
		return []styled{{"…", faint}}
	}
	var all []styled
	for _, l := range d.body(m.shown(), width-2, m.now()) {
		if d.filter != "" && !matches(string(d.filter), string(l.text)) {
			continue
		}
		for part := range strings.SplitSeq(ansi.Hardwrap(string(l.text), max(width-2, 1), true), "\n") {
			all = append(all, styled{plain(part), l.style})
		}
	}
	if len(all) == 0 && d.filter != "" {
		all = []styled{{"no lines match " + d.filter + "; esc shows all", faint}}
	}
	return all
}

func (d *document) draw(m *model, b box) []string {
	lines, height := d.lines(m, b.width), b.height-1
	last := max(len(lines)-height, 0)
	if d.follow {
		d.top = last
	}
	d.top = min(max(d.top, 0), last)
	place := ""
	if last > 0 {
		place = fmt.Sprintf(" %d%%", 100*d.top/last)
	}
	drawn := []string{titleRule(string(m.crumbs())+place+filterNote(d.filter), b.width, true)}
	for i := d.top; i < len(lines) && len(drawn) <= height; i++ {
		drawn = append(drawn, lines[i].draw(b.width))
	}
	for len(drawn) <= height {
		drawn = append(drawn, strings.Repeat(" ", b.width))
	}
	return drawn
}

// press scrolls, or runs an action.
func (d *document) press(m *model, key string) tea.Cmd {
	if step, ok := movement(key, max(m.bodyBox().height-1, 1)); ok {
		d.scroll(m, m.bodyBox(), step)
		return nil
	}
	command, _ := run(m, d.does, key, d.row)
	return command
}

func (d *document) click(*model, box, int, int) tea.Cmd { return nil }

// scroll moves the text. Scrolling up stops following, the end follows again.
func (d *document) scroll(m *model, b box, lines int) {
	last := max(len(d.lines(m, b.width))-(b.height-1), 0)
	d.top = min(max(d.top+lines, 0), last)
	d.follow = d.tail && d.top == last
}

// heading is the title of a part of a document, with an empty line before it.
func heading(text plain) []styled { return []styled{{}, {text, bold}} }

// field is a line with a name and a value, or none if the value is empty or zero.
func field(name plain, value any) []styled {
	text := clean(fmt.Sprint(value))
	if text == "" || text == "0" {
		return nil
	}
	return []styled{{plain(fmt.Sprintf("%-10s %s", name, text)), normal}}
}

// unstyled are lines without a style.
func unstyled(lines []plain) []styled {
	all := make([]styled, len(lines))
	for i, l := range lines {
		all[i].text = l
	}
	return all
}

// pretty indents JSON.
func pretty(raw json.RawMessage) []styled {
	var text bytes.Buffer
	if json.Indent(&text, raw, "", "  ") != nil {
		return unstyled(lines(string(raw)))
	}
	return unstyled(lines(text.String()))
}

// indented moves lines to the right.
func indented(all []styled) []styled {
	for i := range all {
		all[i].text = "  " + all[i].text
	}
	return all
}

// timeBar is an operation on a time axis.
type timeBar struct {
	label             plain
	from, took, total time.Duration
	problem           plain
	running           bool
	note              bool // only the label
}

// Widths of a waterfall.
const (
	tookWidth = 7
	minBar    = 10 // narrower bars are not drawn
)

// waterfall draws operations below each other, each with a bar at its time.
func waterfall(bars []timeBar, width int) (all []styled) {
	label := min(max(longest(bars), 12), max(width/2-tookWidth, 12))
	room := width - label - tookWidth - 2
	for _, b := range bars {
		if b.note {
			all = append(all, styled{b.label, faint})
			continue
		}
		text := fill(string(b.label), label) + " " + aligned(string(short(b.took)), tookWidth, true)
		if room >= minBar {
			text += " " + b.draw(room)
		}
		look := normal
		if b.problem != "" {
			look = red
		}
		if b.running {
			text, look = fill(string(b.label), label)+" running", yellow
		}
		all = append(all, styled{plain(strings.TrimRight(text, " ")), look})
		if b.problem != "" {
			all = append(all, styled{"  " + b.problem, red})
		}
	}
	return all
}

// longest is the width of the widest label.
func longest(bars []timeBar) int {
	most := 0
	for _, b := range bars {
		most = max(most, textWidth(string(b.label)))
	}
	return most
}

// draw draws the bar; the shortest is one character.
func (b timeBar) draw(width int) string {
	from := min(b.share(b.from, width), width-1)
	size := min(max(b.share(b.took, width), 1), width-from)
	return strings.Repeat(" ", from) + strings.Repeat("━", size)
}

// share is the part of a width that a time takes.
func (b timeBar) share(t time.Duration, width int) int {
	return int(min(max(float64(t)/float64(max(b.total, 1)), 0), 1) * float64(width))
}
