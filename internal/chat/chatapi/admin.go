package chatapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/chat/servers"
	"github.com/luanette/luanette/internal/chat/spending"
	"github.com/luanette/luanette/internal/core/principal"
)

// Servers are the servers that an organisation or a person has added.
type Servers struct {
	Org     string       `json:"org"`
	UserID  string       `json:"user_id,omitempty"`
	Servers []ServerView `json:"servers"`
	// Warnings are what a change did that was not asked for.
	Warnings []string `json:"warnings,omitempty"`
}

// ServerView is a server as the API returns it, without its token.
type ServerView struct {
	servers.Server
	Status     string `json:"discovery_status,omitempty" doc:"ok, error or skipped"`
	Problem    string `json:"discovery_error,omitempty"`
	ToolsCount *int   `json:"tools_count,omitempty" doc:"how many of its tools may be used"`
}

// ServerList is a list of servers, or what GET returns.
type ServerList []ServerView

// UnmarshalJSON reads both forms.
func (l *ServerList) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return json.Unmarshal(text, (*[]ServerView)(l))
	}
	var shown Servers
	if err := httpjson.Decode(text, &shown); err != nil {
		return err
	}
	if shown.Servers == nil {
		return fault.New(fault.InvalidParams, "servers is missing").WithHint("send a list of servers, or an object with the field servers")
	}
	*l = shown.Servers
	return nil
}

// Overrides are texts that replace the default prompts.
type Overrides struct {
	Org       string        `json:"org"`
	UserID    string        `json:"user_id,omitempty"`
	Overrides agent.Prompts `json:"overrides"`
	Resolved  agent.Prompts `json:"resolved" doc:"the texts in effect"`
}

// Modes are the names of an organisation's modes.
type Modes struct {
	Modes []string `json:"modes"`
}

// ChosenMode is the mode that a person has chosen.
type ChosenMode struct {
	Mode string `json:"mode" doc:"empty: none"`
}

// Memory is what the agent remembers about a person.
type Memory struct {
	Sections []agent.Section `json:"sections"`
}

// discoverTime limits how long all servers together may take to list their tools.
const discoverTime = 15 * time.Second

func (d *Handler) servers(r *request) (Servers, error) {
	list, err := d.service.Servers.List(r.Context(), r.person)
	if err != nil {
		return Servers{}, err
	}
	shown := serversOf(r.person, list)
	if r.URL.Query().Get("discover") == "true" {
		d.discover(r.Context(), r.person, list, shown.Servers)
	}
	return shown, nil
}

func serversOf(p profile.Person, list []servers.Server) Servers {
	views := make([]ServerView, len(list))
	for i, s := range list {
		views[i] = ServerView{Server: s.Hidden()}
	}
	return Servers{Org: p.Org, UserID: p.User, Servers: views}
}

// discover lists the tools of all servers in parallel.
func (d *Handler) discover(ctx context.Context, p profile.Person, list []servers.Server, views []ServerView) {
	ctx, cancel := context.WithTimeout(ctx, discoverTime)
	defer cancel()
	var all sync.WaitGroup
	for i, s := range list {
		if !s.Enabled {
			views[i].Status = "skipped"
			continue
		}
		all.Go(func() {
			tools, err := d.service.Servers.Discover(ctx, p, s)
			if err != nil {
				views[i].Status, views[i].Problem = "error", err.Error()
				return
			}
			views[i].Status, views[i].ToolsCount = "ok", &tools
		})
	}
	all.Wait()
}

func (d *Handler) replaceServers(r *request, views ServerList) (Servers, error) {
	list := make([]servers.Server, len(views))
	for i, view := range views {
		list[i] = view.Server
	}
	list, err := d.service.Servers.Replace(r.Context(), r.person, list)
	return serversOf(r.person, list), err
}

// patchServer changes the given fields of one server. For POST, which also adds one, the
// id is in the body.
func (d *Handler) patchServer(r *request) (Servers, error) {
	body, err := r.body()
	if err != nil {
		return Servers{}, err
	}
	var s ServerView
	if err := httpjson.Decode(body, &s); err != nil {
		return Servers{}, err
	}
	id := cmp.Or(r.PathValue("server"), s.ID)
	list, dropped, err := d.service.Servers.Patch(r.Context(), r.person, id, body)
	shown := serversOf(r.person, list)
	if dropped {
		shown.Warnings = []string{"the token of " + id + " belonged to the old url and was removed; send authToken again"}
	}
	return shown, err
}

// putServer replaces one server.
func (d *Handler) putServer(r *request, view ServerView) (Servers, error) {
	s, id := view.Server, r.PathValue("server")
	if s.ID != "" && s.ID != id {
		return Servers{}, fault.New(fault.InvalidParams, "the body has the id %q, the path %q", s.ID, id)
	}
	s.ID = id
	list, err := d.service.Servers.Put(r.Context(), r.person, s)
	return serversOf(r.person, list), err
}

func (d *Handler) removeServer(r *request) (Removed, error) {
	return Removed{1}, d.service.Servers.Remove(r.Context(), r.person, r.PathValue("server"))
}

func (d *Handler) settings(r *request) (profile.Settings, error) {
	return d.service.Profiles.Settings.Of(r.Context(), r.person)
}

func (d *Handler) setSettings(r *request) (profile.Settings, error) {
	s, err := d.service.Profiles.Settings.Of(r.Context(), r.person) // omitted fields keep their value
	if err != nil {
		return s, err
	}
	if err := r.read(&s); err != nil {
		return s, err
	}
	return s, d.service.Profiles.Settings.Set(r.Context(), r.person, s)
}

func (d *Handler) resetSettings(r *request) (profile.Settings, error) {
	return profile.DefaultSettings, d.service.Profiles.Settings.Remove(r.Context(), r.person)
}

func (d *Handler) prompts(r *request) (Overrides, error) {
	own, resolved, err := d.service.Profiles.Resolved(r.Context(), r.person)
	return Overrides{Org: r.person.Org, UserID: r.person.User, Overrides: own, Resolved: resolved}, err
}

func (d *Handler) setPrompts(r *request, changes map[agent.Slot]*string) (Overrides, error) {
	if err := d.service.Profiles.ChangePrompts(r.Context(), r.person, changes); err != nil {
		return Overrides{}, err
	}
	return d.prompts(r)
}

func (d *Handler) resetPrompts(r *request) (Overrides, error) {
	if err := d.service.Profiles.Prompts.Remove(r.Context(), r.person); err != nil {
		return Overrides{}, err
	}
	return d.prompts(r)
}

func (d *Handler) modes(r *request) (Modes, error) {
	names, err := d.service.Profiles.Modes.Names(r.Context(), r.person.Org)
	return Modes{filled(names)}, err
}

func (d *Handler) mode(r *request) (profile.Mode, error) {
	return d.service.Profiles.Modes.Get(r.Context(), r.person.Org, r.PathValue("mode"))
}

func (d *Handler) setMode(r *request, m profile.Mode) (profile.Mode, error) {
	m.Name = r.PathValue("mode")
	if err := d.service.Profiles.Modes.Set(r.Context(), r.person.Org, m); err != nil {
		return m, err
	}
	return d.mode(r)
}

func (d *Handler) removeMode(r *request) (Removed, error) {
	return Removed{1}, d.service.Profiles.Modes.Remove(r.Context(), r.person.Org, r.PathValue("mode"))
}

func (d *Handler) chosenMode(r *request) (ChosenMode, error) {
	prefs, err := d.service.Profiles.Preferences.Of(r.Context(), r.person)
	return ChosenMode{prefs.Mode}, err
}

func (d *Handler) chooseMode(r *request, chosen ChosenMode) (ChosenMode, error) {
	if chosen.Mode != "" {
		if _, err := d.service.Profiles.Modes.Get(r.Context(), r.person.Org, chosen.Mode); err != nil {
			return chosen, err
		}
	}
	_, err := d.service.Profiles.Preferences.Change(r.Context(), r.person, func(p *profile.Preferences) error { p.Mode = chosen.Mode; return nil })
	return chosen, err
}

func (d *Handler) memory(r *request) (Memory, error) {
	sections, err := d.service.Profiles.Memory.Of(r.Context(), r.person)
	if err == nil {
		d.audit(r.Request, auditReadMemory, r.person, "")
	}
	return Memory{filled(sections)}, err
}

func (d *Handler) clearMemory(r *request) (Removed, error) {
	err := d.service.Profiles.Memory.Remove(r.Context(), r.person)
	if err == nil {
		d.audit(r.Request, auditDeleteMemory, r.person, "")
	}
	return Removed{1}, err
}

// UsageReporter reports what was used.
type UsageReporter interface {
	Report(ctx context.Context, q spending.Query) (spending.Report, error)
}

// nothingUsed is the UsageReporter of a service that counts nothing.
type nothingUsed struct{}

func (nothingUsed) Report(context.Context, spending.Query) (spending.Report, error) {
	return spending.Report{}, nil
}

// Usage is what an organisation's people have used.
type Usage struct {
	Org   string            `json:"org"`
	Days  int               `json:"days"`
	Users []spending.Person `json:"users"`
}

// UsageReport is what an organisation or a person has used, by day, person and turn.
type UsageReport struct {
	Org  string `json:"org"`
	User string `json:"user_id,omitempty" doc:"if it is of one person"`
	spending.Report
}

// usage is GET /api/v1/admin/orgs/{org}/usage.
func (d *Handler) usage(r *request) (Usage, error) {
	days, report, err := d.readUsage(r.Request, r.person)
	return Usage{Org: r.person.Org, Days: days, Users: filled(report.People)}, err
}

// usageReport is GET /api/v1/usage. A key of one person sees that person's usage; that of
// all people needs the scope org.
func (d *Handler) usageReport(r *request) (UsageReport, error) {
	who, query := principal.Of(r.Context()), r.URL.Query()
	p := profile.Person{Org: cmp.Or(query.Get("org"), who.Org, profile.DefaultOrg), User: cmp.Or(query.Get("user_id"), who.User)}
	if p.User != "" {
		if err := maySend(who, p); err != nil {
			return UsageReport{}, err
		}
	} else if !who.May(principal.Chat, p.Org) {
		return UsageReport{}, fault.New(fault.Denied, "%s may not see the usage of %s", who.Title(), p.Org)
	} else if !who.May(principal.Org, p.Org) {
		return UsageReport{}, fault.New(fault.InvalidParams, "%s may not see the usage of all users of %s", who.Title(), p.Org).
			WithHint("name one with user_id, or use a key with the scope org of the organisation %s", p.Org)
	}
	_, report, err := d.readUsage(r.Request, p)
	report.Days, report.People, report.Turns, report.Budgets = filled(report.Days), filled(report.People), filled(report.Turns), filled(report.Budgets)
	return UsageReport{Org: p.Org, User: p.User, Report: report}, err
}

// readUsage reads the usage of the days that a request asks for.
func (d *Handler) readUsage(r *http.Request, p profile.Person) (days int, report spending.Report, err error) {
	if days, err = number(r, "days", 30, 1, 3650); err != nil {
		return 0, report, err
	}
	turns, err := number(r, "turns", 100, 0, 1000)
	if err != nil {
		return 0, report, err
	}
	since := d.options.Clock.Now().UTC().AddDate(0, 0, 1-days)
	report, err = d.options.Usage.Report(r.Context(), spending.Query{Org: p.Org, User: p.User, Since: since, Turns: turns})
	return days, report, err
}

// filled returns a list that is not null in JSON.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
