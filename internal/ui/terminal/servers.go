package terminal

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// upstream is an upstream as /api/v1/upstreams lists it.
type upstream struct {
	Name         plain   `json:"namespace"`
	Endpoint     plain   `json:"endpoint"`
	Transport    plain   `json:"transport,omitempty"`
	Protocol     plain   `json:"protocol,omitempty"`
	State        plain   `json:"state"`
	Tools        int     `json:"tool_count"`
	Stale        bool    `json:"stale,omitempty"`
	Error        plain   `json:"error,omitempty"`
	Hint         plain   `json:"hint,omitempty"`
	Attempt      int     `json:"attempt,omitempty"`
	NextTryMS    int64   `json:"next_try_ms,omitempty"`
	RefusingMS   int64   `json:"refusing_ms,omitempty"`
	Warnings     []plain `json:"warnings,omitempty"`
	Calls        int     `json:"call_count"`
	Errors       int     `json:"error_count"`
	InFlight     int     `json:"in_flight"`
	LastTool     plain   `json:"last_tool,omitempty"`
	LastLine     plain   `json:"last_line,omitempty"`
	P50          float64 `json:"p50_ms,omitempty"`
	P99          float64 `json:"p99_ms,omitempty"`
	Origin       plain   `json:"origin,omitempty"`
	ConfiguredAt plain   `json:"configured_at,omitempty"` // file and line

	loadedAt time.Time // when the server reported this
}

func loadServers(ctx context.Context, s *server, now time.Time) (store, error) {
	var response struct{ Upstreams []upstream }
	err := s.get(ctx, "/api/v1/upstreams", &response)
	for i := range response.Upstreams {
		response.Upstreams[i].loadedAt = now
	}
	return func(b *state) { b.Upstreams = response.Upstreams }, err
}

// nextTry says when the next connection attempt is.
func (u *upstream) nextTry(now time.Time) plain {
	left := u.loadedAt.Add(time.Duration(u.NextTryMS) * time.Millisecond).Sub(now)
	if left <= 0 {
		return "now"
	}
	return "in " + short(left)
}

// hasTried reports whether a server's next attempt was due, so that what is known of it is
// outdated. Of the attempts of a server that is disconnected for long there are few events.
func (b *state) hasTried(now time.Time) bool {
	return slices.ContainsFunc(b.Upstreams, func(u upstream) bool {
		next := max(time.Duration(u.NextTryMS)*time.Millisecond, time.Second) // 0: an attempt was in progress
		return slices.Contains([]plain{"reconnecting", "needs_auth", "failed"}, u.State) && !now.Before(u.loadedAt.Add(next))
	})
}

func (u *upstream) isConnected() bool { return u.State == "connected" }

// isRemoved reports whether a user removed it although the configuration has it.
func (u *upstream) isRemoved() bool { return u.State == "removed" }

// troubles are the states of servers, those that need a person first.
var troubles = []plain{"failed", "needs_auth", "untrusted", "reconnecting", "installing", "starting", "connecting", "removed", "connected", "asleep"}

func (u *upstream) stateCell() cell {
	c := cell{u.State, red, float64(len(troubles))}
	if at := slices.Index(troubles, u.State); at >= 0 {
		c.order = float64(at)
	}
	switch u.State {
	case "connected":
		c.style = green
	case "asleep", "connecting", "installing", "starting":
		c.style = faint
	case "removed":
		c.style = yellow
	}
	return c
}

// note is what matters most about the server now.
func (u *upstream) note(now time.Time) cell {
	switch {
	case !u.isConnected() && u.NextTryMS > 0:
		return cell{text: plain(fmt.Sprintf("attempt %d %s: %s", u.Attempt+1, u.nextTry(now), u.Error)), style: red}
	case u.isRemoved():
		return cell{text: "removed but still configured: r restores it", style: yellow}
	case !u.isConnected() && u.Error != "":
		return cell{text: u.Error, style: red}
	case u.RefusingMS > 0:
		return cell{text: "refuses calls for " + short(millis(float64(u.RefusingMS))), style: yellow}
	case len(u.Warnings) > 0:
		return cell{text: u.Warnings[0], style: yellow}
	}
	return cell{text: u.LastTool, style: faint}
}

// serversView lists the servers.
type serversView struct{}

func (serversView) name() string { return "servers" }

// sparkWidth is how many minutes of calls a sparkline shows.
const sparkWidth = 10

func (serversView) columns() []column {
	return []column{
		{title: "Name", width: 16},
		{title: "State", width: 12},
		{title: "Tools", width: 6, right: true, from: 64},
		{title: "Calls", width: 6, right: true, from: 50},
		{title: "Errors", width: 7, right: true, from: 64},
		{title: "P50", width: 7, right: true, from: 92},
		{title: plain(fmt.Sprintf("%d minutes", sparkWidth)), width: sparkWidth, from: 60},
		{title: "Last", from: 50},
	}
}

// rows are the servers, those with trouble first.
func (serversView) rows(b *state, _ scope, now time.Time) (rows []row) {
	for i := range b.Upstreams {
		u := &b.Upstreams[i]
		tools, p50 := number(u.Tools), lasting(millis(u.P50))
		if u.Stale {
			tools.style = faint
		}
		rows = append(rows, row{string(u.Name), []cell{
			{text: u.Name, style: bold}, u.stateCell(), tools, number(u.Calls), problems(u.Errors), p50,
			{text: sparkline(b.minutes[string(u.Name)], sparkWidth), style: accent}, u.note(now),
		}})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.cells[1].order, b.cells[1].order) })
	return rows
}

// open shows the server's tools.
func (serversView) open(m *model, _ scope, row string) tea.Cmd {
	return m.push(&table{view: toolsView{}, of: scope{server: plain(row)}})
}

func (serversView) actions(scope) []action {
	return []action{
		{key: "i", does: "details", do: (*model).serverDetails},
		{key: "r", does: "reconnect", do: (*model).reconnect},
		{key: "l", does: "stderr", do: (*model).showStderr},
		{key: "t", does: "traces", do: func(m *model, row string) tea.Cmd { return m.showTraces(scope{server: plain(row)}) }},
		{key: "x", does: "remove", do: (*model).removeServer},
	}
}

func (serversView) empty(scope) plain { return "none; add one with `luanette upstream add NAME URL`" }
func (serversView) needs() lists      { return lists{} }

// server finds a server by name.
func (b *state) server(name string) *upstream {
	for i := range b.Upstreams {
		if string(b.Upstreams[i].Name) == name {
			return &b.Upstreams[i]
		}
	}
	return nil
}

// serverDetails shows all that is known about a server.
func (m *model) serverDetails(name string) tea.Cmd {
	return m.push(&document{name: clean(name), row: name, does: toolsOfServer(scope{server: plain(name)}), body: func(b *state, width int, now time.Time) []styled {
		u := b.server(name)
		if u == nil {
			return []styled{{"This server was removed.", yellow}}
		}
		return append(u.facts(now), b.history(u, width)...)
	}})
}

// facts are the details of a server.
func (u *upstream) facts(now time.Time) []styled {
	all := slices.Concat(field("state", u.State), field("address", u.Endpoint), field("transport", u.Transport), field("protocol", u.Protocol),
		field("from", cmp.Or(u.ConfiguredAt, u.Origin)), field("tools", u.Tools), field("calls", u.Calls), field("errors", u.Errors),
		field("in flight", u.InFlight), field("last tool", u.LastTool))
	if u.P50 > 0 {
		all = slices.Concat(all, field("p50", short(millis(u.P50))), field("p99", short(millis(u.P99))))
	}
	if !u.isConnected() {
		all = slices.Concat(all, field("attempt", u.Attempt), coloured(field("error", u.Error), red), field("hint", u.Hint), field("last line", u.LastLine))
		if u.NextTryMS > 0 {
			all = append(all, field("next try", u.nextTry(now))...)
		}
	}
	for _, w := range u.Warnings {
		all = append(all, coloured(field("warning", w), yellow)...)
	}
	return all
}

// coloured gives lines a style.
func coloured(all []styled, s style) []styled {
	for i := range all {
		all[i].style = s
	}
	return all
}

// history draws the calls of the last hour, a character for each minute.
func (b *state) history(u *upstream, width int) []styled {
	drawn := sparkline(b.minutes[string(u.Name)], min(width, 60))
	if drawn == "" {
		return nil
	}
	return append(heading("Calls of the last hour, by minute"), styled{drawn, accent})
}

// reconnect connects a server now, or restores it if it was removed.
func (m *model) reconnect(name string) tea.Cmd {
	u := m.shown().server(name)
	if u == nil {
		return nil
	}
	if u.isRemoved() {
		return m.act(func(ctx context.Context) error {
			return m.server.SendInto(ctx, http.MethodPost, "/api/v1/upstreams/"+url.PathEscape(name)+"/restore", nil, nil)
		}, u.Name+" restored")
	}
	m.message = message{"reconnecting " + u.Name + " …", false}
	return m.callTool("tools_refresh", map[string]any{"namespace": name}, u.Name+" connected, tools refreshed")
}

// removeServer asks before it removes a server.
func (m *model) removeServer(name string) tea.Cmd {
	m.confirm("Remove "+clean(name)+"? Its tools can no longer be called.",
		choice{"y", "yes", m.callTool("mcp_disconnect", map[string]any{"namespace": name}, clean(name)+" removed")})
	return nil
}

// callPoint is the number of calls in one minute.
type callPoint struct{ Calls int }

// loadCallReport loads the calls of each server by minute.
func loadCallReport(ctx context.Context, s *server, _ time.Time) (store, error) {
	var response struct {
		Servers map[string]struct{ Points []callPoint }
		Tools   []toolCalls
	}
	err := s.get(ctx, "/api/v1/calls", &response)
	minutes := map[string][]int{}
	for name, series := range response.Servers {
		for _, p := range series.Points {
			minutes[name] = append(minutes[name], p.Calls)
		}
	}
	return func(b *state) { b.minutes, b.toolCalls = minutes, byName(response.Tools) }, ignoreMissing(err)
}

// showStderr follows what the server's program writes to standard error.
func (m *model) showStderr(name string) tea.Cmd {
	return m.push(&document{name: "stderr of " + clean(name), row: name, tail: true, follow: true, body: func(b *state, _ int, now time.Time) []styled {
		written := b.stderr[name]
		if len(written) == 0 {
			return []styled{{"Nothing written since the dashboard was started and within the events that the server keeps.", faint},
				{"A server with a URL has no standard error; :log " + clean(name) + " shows its events.", faint}}
		}
		all := make([]styled, len(written))
		for i := range written {
			all[i] = styled{clockTime(written[i].Time, now) + " " + written[i].Text + at(written[i].Node), normal}
		}
		return all
	}})
}

// serverNames are the names of all servers, for completion.
func (b *state) serverNames() []string {
	names := make([]string, len(b.Upstreams))
	for i := range b.Upstreams {
		names[i] = strings.TrimSpace(string(b.Upstreams[i].Name))
	}
	return names
}
