package chatapi

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/conversation"
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
	conversation.Server
	Status     string `json:"discovery_status,omitempty" doc:"ok, error or skipped"`
	Problem    string `json:"discovery_error,omitempty"`
	ToolsCount *int   `json:"tools_count,omitempty"`
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

func (d *Handler) servers(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	list, err := d.service.Servers(r.Context(), p)
	if err != nil {
		return err
	}
	return d.showServers(w, r, p, list)
}

func (d *Handler) showServers(w http.ResponseWriter, r *http.Request, p conversation.Person, list []conversation.Server, warnings ...string) error {
	views := make([]ServerView, len(list))
	for i, s := range list {
		views[i] = ServerView{Server: s.Hidden()}
	}
	if r.Method == http.MethodGet && r.URL.Query().Get("discover") == "true" {
		d.discover(r.Context(), p, list, views)
	}
	httpjson.JSON(w, http.StatusOK, Servers{Org: p.Org, UserID: p.User, Servers: views, Warnings: warnings})
	return nil
}

// discover lists the tools of all servers in parallel.
func (d *Handler) discover(ctx context.Context, p conversation.Person, list []conversation.Server, views []ServerView) {
	ctx, cancel := context.WithTimeout(ctx, discoverTime)
	defer cancel()
	var all sync.WaitGroup
	for i, s := range list {
		if !s.Enabled {
			views[i].Status = "skipped"
			continue
		}
		all.Go(func() {
			tools, err := d.service.Discover(ctx, p, s)
			if err != nil {
				views[i].Status, views[i].Problem = "error", err.Error()
				return
			}
			views[i].Status, views[i].ToolsCount = "ok", &tools
		})
	}
	all.Wait()
}

func (d *Handler) replaceServers(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	var list []conversation.Server
	if err := readJSON(w, r, &list); err != nil {
		return err
	}
	if list, err = d.service.ReplaceServers(r.Context(), p, list); err != nil {
		return err
	}
	return d.showServers(w, r, p, list)
}

// patchServer changes the given fields of one server. For POST, which also adds one, the
// id is in the body.
func (d *Handler) patchServer(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r, maxBody)
	if err != nil {
		return err
	}
	var s conversation.Server
	if err := httpjson.Decode(body, &s); err != nil {
		return err
	}
	id := cmp.Or(r.PathValue("server"), s.ID)
	list, dropped, err := d.service.PatchServer(r.Context(), p, id, body)
	if err != nil {
		return err
	}
	if dropped {
		return d.showServers(w, r, p, list, "the token of "+id+" belonged to the old url and was removed; send authToken again")
	}
	return d.showServers(w, r, p, list)
}

// putServer replaces one server.
func (d *Handler) putServer(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	var s conversation.Server
	if err := readJSON(w, r, &s); err != nil {
		return err
	}
	if id := r.PathValue("server"); s.ID != "" && s.ID != id {
		return fault.New(fault.InvalidParams, "the body has the id %q, the path %q", s.ID, id)
	}
	s.ID = r.PathValue("server")
	list, err := d.service.PutServer(r.Context(), p, s)
	if err != nil {
		return err
	}
	return d.showServers(w, r, p, list)
}

func (d *Handler) removeServer(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	if err := d.service.RemoveServer(r.Context(), p, r.PathValue("server")); err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, Removed{1})
	return nil
}

func (d *Handler) settings(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	s, err := d.service.Settings(r.Context(), p.Org)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, s)
	return nil
}

func (d *Handler) setSettings(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	s, err := d.service.Settings(r.Context(), p.Org) // omitted fields keep their value
	if err != nil {
		return err
	}
	if err := readJSON(w, r, &s); err != nil {
		return err
	}
	if err := d.service.SetSettings(r.Context(), p.Org, s); err != nil {
		return err
	}
	return d.settings(w, r)
}

func (d *Handler) resetSettings(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	if err := d.service.ResetSettings(r.Context(), p.Org); err != nil {
		return err
	}
	return d.settings(w, r)
}

func (d *Handler) prompts(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	own, resolved, err := d.service.Resolved(r.Context(), p)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, Overrides{Org: p.Org, UserID: p.User, Overrides: own, Resolved: resolved})
	return nil
}

func (d *Handler) setPrompts(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	var changes map[agent.Slot]*string
	if err := readJSON(w, r, &changes); err != nil {
		return err
	}
	if _, err := d.service.SetPrompts(r.Context(), p, changes); err != nil {
		return err
	}
	return d.prompts(w, r)
}

func (d *Handler) resetPrompts(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	if err := d.service.ResetPrompts(r.Context(), p); err != nil {
		return err
	}
	return d.prompts(w, r)
}

func (d *Handler) modes(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	names, err := d.service.Modes(r.Context(), p.Org)
	if err != nil {
		return err
	}
	if names == nil {
		names = []string{}
	}
	httpjson.JSON(w, http.StatusOK, Modes{names})
	return nil
}

func (d *Handler) mode(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	m, err := d.service.Mode(r.Context(), p.Org, r.PathValue("mode"))
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, m)
	return nil
}

func (d *Handler) setMode(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	var m conversation.Mode
	if err := readJSON(w, r, &m); err != nil {
		return err
	}
	m.Name = r.PathValue("mode")
	if err := d.service.SetMode(r.Context(), p.Org, m); err != nil {
		return err
	}
	return d.mode(w, r)
}

func (d *Handler) removeMode(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	if err := d.service.RemoveMode(r.Context(), p.Org, r.PathValue("mode")); err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, Removed{1})
	return nil
}

func (d *Handler) chosenMode(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	prefs, err := d.service.Preferences(r.Context(), p)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, ChosenMode{prefs.Mode})
	return nil
}

func (d *Handler) chooseMode(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	var chosen ChosenMode
	if err := readJSON(w, r, &chosen); err != nil {
		return err
	}
	if chosen.Mode != "" {
		if _, err := d.service.Mode(r.Context(), p.Org, chosen.Mode); err != nil {
			return err
		}
	}
	if _, err := d.service.SetPreferences(r.Context(), p, func(p *conversation.Preferences) { p.Mode = chosen.Mode }); err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, chosen)
	return nil
}

func (d *Handler) memory(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	sections, err := d.service.Memory(p).Load(r.Context())
	if err != nil {
		return err
	}
	d.audit(r, auditReadMemory, p, "")
	if sections == nil {
		sections = []agent.Section{}
	}
	httpjson.JSON(w, http.StatusOK, Memory{sections})
	return nil
}

func (d *Handler) clearMemory(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	if err := d.service.ClearMemory(r.Context(), p); err != nil {
		return err
	}
	d.audit(r, auditDeleteMemory, p, "")
	httpjson.JSON(w, http.StatusOK, Removed{1})
	return nil
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
func (d *Handler) usage(w http.ResponseWriter, r *http.Request) error {
	p, err := personOf(r)
	if err != nil {
		return err
	}
	days, report, err := d.readUsage(r, p)
	if err != nil {
		return err
	}
	httpjson.JSON(w, http.StatusOK, Usage{Org: p.Org, Days: days, Users: filled(report.People)})
	return nil
}

// usageReport is GET /api/v1/usage. A key of one person sees that person's usage; that of
// all people needs the scope org.
func (d *Handler) usageReport(w http.ResponseWriter, r *http.Request) error {
	who, query := principal.Of(r.Context()), r.URL.Query()
	p := conversation.Person{Org: cmp.Or(query.Get("org"), who.Org, conversation.DefaultOrg), User: cmp.Or(query.Get("user_id"), who.User)}
	if p.User != "" {
		if err := maySend(who, p); err != nil {
			return err
		}
	} else if !who.May(principal.Chat, p.Org) {
		return fault.New(fault.Denied, "%s may not see the usage of %s", who.Title(), p.Org)
	} else if !who.May(principal.Org, p.Org) {
		return fault.New(fault.InvalidParams, "%s may not see the usage of all users of %s", who.Title(), p.Org).
			WithHint("name one with user_id, or use a key with the scope org of the organisation %s", p.Org)
	}
	_, report, err := d.readUsage(r, p)
	if err != nil {
		return err
	}
	report.Days, report.People, report.Turns, report.Budgets = filled(report.Days), filled(report.People), filled(report.Turns), filled(report.Budgets)
	httpjson.JSON(w, http.StatusOK, UsageReport{Org: p.Org, User: p.User, Report: report})
	return nil
}

// readUsage reads the usage of the days that a request asks for.
func (d *Handler) readUsage(r *http.Request, p conversation.Person) (days int, report spending.Report, err error) {
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
